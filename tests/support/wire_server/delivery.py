"""One connection: read requests, deliver replies, with delivery faults.

Owns:  HTTP/1.1 on a socket, and the faults of delivery: held heads, held bodies, slow or tiny
       chunks, and connections cut at any byte.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import suppress

import h11

from holon.model.values import later
from holon.ports.clock import Clock
from tests.support.wire_server.answering import RecordedRequest, Reply
from tests.support.wire_server.faults import Fault

_READ_BYTES = 65_536


class ConnectionOver(Exception):
    """The connection was cut on purpose, or its client has left."""


class Connection:
    """A client that is connected."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clock: Clock
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._http = h11.Connection(h11.SERVER)

    async def read(self) -> RecordedRequest | None:
        """Return the next request, or None when the client is done."""
        if self._http.our_state is not h11.IDLE:
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return None
            self._http.start_next_cycle()
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            match event:
                case h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(_READ_BYTES))
                case h11.Request():
                    head = event
                case h11.Data():
                    body += event.data
                case h11.EndOfMessage() if head is not None:
                    return _recorded(head, bytes(body))
                case _:
                    return None

    async def bring(self, reply: Reply, request: RecordedRequest) -> None:
        """Send a reply as its fault demands."""
        try:
            await self._bring(reply)
        except (ConnectionError, ConnectionOver):
            request.left.set()
            raise ConnectionOver from None

    async def _bring(self, reply: Reply) -> None:
        fault = reply.fault
        if fault.head_gate is not None:
            await self._while_connected(fault.head_gate.passed())
        await self._pause(fault.head_after_ms)
        headers = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        headers += [(b"x-request-id", b"req_script"), (b"request-id", b"req_script")]
        if not reply.is_stream:
            headers.append((b"content-length", str(len(reply.body)).encode()))
        pipe = _Pipe(self._writer, fault)
        await pipe.send(self._http.send(h11.Response(status_code=reply.status, headers=headers)))
        sent = 0
        for piece in _pieces(reply):
            if fault.body_gate is not None and sent == fault.gate_at_byte:
                await self._while_connected(fault.body_gate.passed())
            await pipe.send(self._http.send(h11.Data(data=piece)))
            sent += len(piece)
            await self._pause(fault.between_ms)
        await pipe.send(self._http.send(h11.EndOfMessage()))

    async def _pause(self, wait_ms: int) -> None:
        if wait_ms:
            deadline = later(self._clock.now(), by_ms=wait_ms)
            await self._while_connected(self._clock.sleep_until(deadline))

    async def _while_connected(self, waiting: Awaitable[None]) -> None:
        """Wait, but no longer than the client does."""
        waits = asyncio.ensure_future(waiting)
        leaves = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait({waits, leaves}, return_when=asyncio.FIRST_COMPLETED)
            if not waits.done():
                raise ConnectionOver
        finally:
            for task in (waits, leaves):
                task.cancel()
            await asyncio.gather(waits, leaves, return_exceptions=True)

    async def close(self) -> None:
        """End the connection."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class _Pipe:
    """Counts bytes onto the wire, and cuts it where the fault says."""

    def __init__(self, writer: asyncio.StreamWriter, fault: Fault) -> None:
        self._writer = writer
        self._left = fault.cut_at_byte
        self._resets = fault.reset

    async def send(self, data: bytes | None) -> None:
        """Send bytes, up to the cut."""
        data = data or b""
        if self._left is not None and len(data) >= self._left:
            self._writer.write(data[: self._left])
            await self._writer.drain()
            if self._resets:
                self._writer.transport.abort()
            raise ConnectionOver
        if self._left is not None:
            self._left -= len(data)
        self._writer.write(data)
        await self._writer.drain()


def _recorded(head: h11.Request, body: bytes) -> RecordedRequest:
    return RecordedRequest(
        method=head.method.decode(),
        path=head.target.decode(),
        headers={name.decode().lower(): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )


def _pieces(reply: Reply) -> Iterator[bytes]:
    """The body in the pieces it is sent in; one of them begins where a gate stands."""
    gate_at = reply.fault.gate_at_byte if reply.fault.body_gate is not None else 0
    for part in (reply.body[:gate_at], reply.body[gate_at:]):
        start = 0
        while start < len(part):
            end = _end_of_piece(part, start, reply)
            yield part[start:end]
            start = end


def _end_of_piece(part: bytes, start: int, reply: Reply) -> int:
    if reply.fault.chunk_bytes is not None:
        return start + reply.fault.chunk_bytes
    if not reply.is_stream:
        return len(part)
    end = part.find(b"\n\n", start)
    return len(part) if end < 0 else end + 2
