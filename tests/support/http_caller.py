"""An HTTP client that sends exactly what a test says.

Owns:  one request per connection, over TCP or a unix socket, with any path, header or body; and
       reading a stream.
Rule 1: requests are sent verbatim: duplicate headers and odd paths stay as written.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import h11
import msgspec
from anyio.abc import ByteStream

from holon.http.exchange import Header
from holon.model.values import JsonValue

_RECEIVE_BYTES: Final = 65_536
_PATIENCE_S: Final = 30.0
JSON: Final[Header] = (b"content-type", b"application/json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a server said."""

    status: int
    headers: tuple[Header, ...]
    body: bytes

    def json(self) -> JsonValue:
        """The body, read as JSON."""
        return msgspec.json.decode(self.body)

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Somebody who calls a server, with standing headers of their own."""

    host: str = "127.0.0.1"
    port: int = 0
    socket_path: Path | None = None
    standing: tuple[Header, ...] = ()

    async def announce(self, path: str, *, headers: Sequence[Header] = ()) -> Answer:
        """Post a head that announces a body, send none of it, and return the answer."""
        wire = h11.Connection(h11.CLIENT)
        name = f"{self.host}:{self.port}".encode()
        lines = [(b"host", name), *self.standing, *headers, (b"content-length", b"10")]
        with anyio.fail_after(_PATIENCE_S):
            async with await self._connected() as stream:
                head = wire.send(h11.Request(method="POST", target=path, headers=lines))
                await stream.send(head or b"")
                return await _answer(stream, wire)

    async def send(
        self, method: str, path: str, *, body: bytes = b"", headers: Sequence[Header] = ()
    ) -> Answer:
        """Send a request and return its answer."""
        wire = h11.Connection(h11.CLIENT)
        name = f"{self.host}:{self.port}" if self.socket_path is None else "localhost"
        lines: list[Header] = [(b"host", name.encode()), (b"connection", b"close")]
        lines += [*self.standing, *headers]
        if body or method not in ("GET", "HEAD"):
            lines.append((b"content-length", str(len(body)).encode()))
        request = h11.Request(method=method, target=path, headers=lines)
        with anyio.fail_after(_PATIENCE_S):
            async with await self._connected() as stream:
                sent = [wire.send(request), wire.send(h11.Data(data=body))]
                sent.append(wire.send(h11.EndOfMessage()))
                await _write(stream, b"".join(part for part in sent if part))
                return await _answer(stream, wire)

    async def get(self, path: str) -> Answer:
        """Ask for something."""
        return await self.send("GET", path)

    async def post(
        self, path: str, value: JsonValue = None, *, headers: Sequence[Header] = ()
    ) -> Answer:
        """Post a value as JSON; nothing at all without one."""
        if value is None:
            return await self.send("POST", path, headers=headers)
        return await self.send(
            "POST", path, body=msgspec.json.encode(value), headers=[JSON, *headers]
        )

    async def patch(self, path: str, value: JsonValue) -> Answer:
        """Send a change as JSON."""
        return await self.send("PATCH", path, body=msgspec.json.encode(value), headers=[JSON])

    @asynccontextmanager
    async def stream(
        self, path: str, *, headers: Sequence[Header] = ()
    ) -> AsyncIterator["StreamedAnswer"]:
        """Ask for a stream, and read it frame by frame while the block runs."""
        wire = h11.Connection(h11.CLIENT)
        name = f"{self.host}:{self.port}" if self.socket_path is None else "localhost"
        lines: list[Header] = [(b"host", name.encode()), *self.standing, *headers]
        request = h11.Request(method="GET", target=path, headers=lines)
        async with await self._connected() as stream:
            sent = [wire.send(request), wire.send(h11.EndOfMessage())]
            await stream.send(b"".join(part for part in sent if part))
            yield StreamedAnswer(stream=stream, wire=wire)

    async def _connected(self) -> ByteStream:
        if self.socket_path is not None:
            return await anyio.connect_unix(self.socket_path)
        return await anyio.connect_tcp(self.host, self.port)


class Frame(NamedTuple):
    """One frame of a stream; a comment has nothing but its text in `data`."""

    id: str | None
    event: str | None
    data: str

    def json(self) -> JsonValue:
        """The data, read as JSON."""
        return msgspec.json.decode(self.data)


@dataclass(kw_only=True, slots=True)
class StreamedAnswer:
    """A stream that is being read."""

    stream: ByteStream
    wire: h11.Connection
    status: int = 0
    _body: bytes = b""

    async def frame(self) -> Frame | None:
        """The next frame, or nothing when the stream has ended."""
        with anyio.fail_after(_PATIENCE_S):
            while b"\n\n" not in self._body:
                match self.wire.next_event():
                    case h11.Response(status_code=code):
                        self.status = code
                    case h11.Data(data=data):
                        self._body += data
                    case h11.EndOfMessage() | h11.ConnectionClosed():
                        return None
                    case _:
                        await self._receive()
        text, _, self._body = self._body.partition(b"\n\n")
        return _frame(text.decode())

    async def event(self) -> Frame:
        """The next frame that is an event."""
        while (frame := await self.frame()) is not None:
            if frame.event is not None:
                return frame
        raise AssertionError("the stream ended")

    async def _receive(self) -> None:
        try:
            self.wire.receive_data(await self.stream.receive(_RECEIVE_BYTES))
        except anyio.EndOfStream:
            self.wire.receive_data(b"")


def _frame(text: str) -> Frame:
    if text.startswith(":"):
        return Frame(None, None, text[1:].strip())
    parts = dict(line.split(": ", 1) for line in text.splitlines())
    return Frame(parts.get("id"), parts.get("event"), parts.get("data", ""))


async def _write(stream: ByteStream, data: bytes) -> None:
    try:
        await stream.send(data)
    except anyio.BrokenResourceError:
        return  # refused before the body was read; the answer is still to be had


async def _answer(stream: ByteStream, wire: h11.Connection) -> Answer:
    status, body = 0, b""
    headers: tuple[Header, ...] = ()
    while True:
        match wire.next_event():
            case h11.Response(status_code=code, headers=given):
                status, headers = code, tuple(given)
            case h11.Data(data=data):
                body += data
            case h11.EndOfMessage() | h11.ConnectionClosed():
                return Answer(status=status, headers=headers, body=body)
            case _:  # what was read so far says no more
                try:
                    wire.receive_data(await stream.receive(_RECEIVE_BYTES))
                except anyio.EndOfStream:
                    wire.receive_data(b"")
