"""The least HTTP client that keeps its connection: what a bench loads a server with.

Owns:  one request at a time on one connection, and the body of its answer. It believes the server,
       also that a connection ends with an answer: a body nobody wants is not read.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Self

READ_BYTES_MAX = 1024 * 1024


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes

    @property
    def value(self) -> Any:
        """The body, as the JSON it is."""
        return json.loads(self.body)


class HttpLine:
    """One connection to a server on this machine."""

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self._port = port
        named = {"host": f"127.0.0.1:{port}", **(headers or {})}
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, limit=READ_BYTES_MAX
        )

    async def __aexit__(self, *raised: object) -> None:
        if self._writer is not None:
            self._writer.close()

    async def get(self, path: str) -> Answer:
        """Read something."""
        return await self._ask(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())

    async def post(self, path: str, value: object = None) -> Answer:
        """Send JSON, and return what came back."""
        body = b"{}" if value is None else json.dumps(value).encode()
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        return await self._ask(f"POST {path} HTTP/1.1\r\n{self._headers}{head}".encode() + body)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the lines of an answer that does not end."""
        assert self._writer is not None
        assert self._reader is not None
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())
        await self._reader.readuntil(b"\r\n\r\n")
        while line := await self._reader.readline():
            yield line

    async def _ask(self, request: bytes) -> Answer:
        if self._writer is None:
            await self._connect()
        assert self._writer is not None
        assert self._reader is not None
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        named = head.lower().partition(b"content-length:")[2]
        length = int(named.partition(b"\r\n")[0] or b"0")
        body = await self._reader.readexactly(length) if length else b""
        if b"\r\nconnection: close" in head.lower():
            self._writer.close()
            self._writer = None  # the next request opens another: who stays silent is let go
        return Answer(int(head[9:12]), body)
