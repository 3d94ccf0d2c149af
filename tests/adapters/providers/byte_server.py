"""A server that answers with the bytes a test gives it, on 127.0.0.1.

Owns:  one connection after another: read a whole request, then do what the script says.
Rule 1: a step is bytes to send, or HOLD: keep the connection open and say nothing more.
Rule 2: the connection is closed after the last step.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import msgspec


class Hold(Enum):
    """The server falls silent with the connection open."""

    HOLD = "hold"


HOLD = Hold.HOLD
Step: TypeAlias = bytes | Hold


@dataclass(slots=True)
class Seen:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ByteServer:
    """Where the server listens and what it was sent."""

    url: str
    seen: list[Seen] = field(default_factory=list)


def head(status: str, *fields: str, kind: str = "application/json") -> bytes:
    """The head of a response that ends with the connection."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", "connection: close", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def json_response(status: str, value: object, *fields: str) -> bytes:
    """A whole JSON response."""
    body = msgspec.json.encode(value)
    return head(status, f"content-length: {len(body)}", *fields) + body


@asynccontextmanager
async def byte_server(
    steps: Sequence[Step], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ByteServer]:
    """Serve the same steps to every connection."""
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            served.seen.append(await _request(reader))
            for step in steps:
                if isinstance(step, Hold):
                    await reader.read()  # returns once the client is gone
                else:
                    writer.write(step)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, which is its right
        finally:
            writer.close()
            handlers.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    served = ByteServer(url=f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield served
    finally:
        server.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Seen:
    told = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in told[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(line=told[0], headers=headers, body=body)
