"""An HTTP/1.1 response as it comes from a socket.

Owns:  the head of a response, and where its body begins, how it is packed, and where it ends.
Rule 1: what is not proper HTTP raises NotHttpError; an end that comes too early, EOFError.
Rule 2: a body that was packed although nobody asked is unpacked piece by piece, so that its reader
        can stop at its cap.
"""

import asyncio
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, SupportsIndex

PIECE_BYTES: Final = 64 * 1024
INTERIM_COUNT_MAX: Final = 8  # heads that only say an answer will come
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n\0]*)?")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\r\n")
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})


class NotHttpError(Exception):
    """What came is not an HTTP response."""


class ResponseHead(NamedTuple):
    """What a response says before its body."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    length: int | None  # of the body; None when it is told otherwise
    is_chunked: bool
    keeps_alive: bool


class ByteSource(asyncio.StreamReader):
    """What a server sends, and how much of it nobody has taken yet."""

    unread_bytes = 0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Take in what the socket brings."""
        assert isinstance(data, bytes | bytearray | memoryview)
        self.unread_bytes += len(data)
        super().feed_data(data)

    async def some(self, bytes_max: int) -> bytes:
        """Return what is there, once something is; nothing at the end."""
        return self._taken(await self.read(bytes_max))

    async def line(self, end: bytes = b"\r\n") -> bytes:
        """Return everything up to an end and with it."""
        return self._taken(await self.readuntil(end))

    async def exactly(self, count: int) -> bytes:
        """Return so many bytes."""
        return self._taken(await self.readexactly(count))

    def _taken(self, data: bytes) -> bytes:
        self.unread_bytes -= len(data)
        return data


async def read_head(source: ByteSource) -> ResponseHead:
    """Return the head of the answer; heads that only announce one are passed over."""
    for _ in range(INTERIM_COUNT_MAX):
        head = _parsed(await source.line(b"\r\n\r\n"))
        if head.status >= 200:
            return head
    raise NotHttpError("nothing but interim responses")


def _parsed(text: bytes) -> ResponseHead:
    first, *lines = text[:-4].split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise NotHttpError("no status line")
    headers: dict[str, str] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise NotHttpError("a broken header")
        name, value = field[1].decode("ascii").lower(), field[2].strip(b" \t").decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return _framed(int(status[2]), headers, is_old=status[1] == b"0")


def _framed(status: int, headers: Mapping[str, str], *, is_old: bool) -> ResponseHead:
    coding = headers.get("transfer-encoding", "").lower()
    if coding not in ("", "chunked"):
        raise NotHttpError("an unknown transfer coding")
    lengths = {each.strip() for each in headers.get("content-length", "").split(",")} - {""}
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(each) for each in lengths):
        raise NotHttpError("a broken length")
    is_chunked = coding == "chunked"
    length = None if is_chunked or not lengths else int(lengths.pop())
    if status in (204, 304):
        length = 0
    asked = headers.get("connection", "").lower()
    is_bounded = (length is not None) or (is_chunked and "content-length" not in headers)
    keeps_alive = is_bounded and not is_old and "close" not in asked
    return ResponseHead(status, headers, length, is_chunked, keeps_alive)


class ResponseBody:
    """The body behind a head, in pieces, until the end the head has announced."""

    def __init__(self, head: ResponseHead, source: ByteSource) -> None:
        self._head = head
        self._source = source
        self._missing = head.length or 0  # of the body, or of the chunk that is being read
        packed = head.headers.get("content-encoding", "").lower() in _PACKED
        self._unpacking = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None
        self.is_over = False

    @property
    def keeps_alive(self) -> bool:
        """Whether it was read to its end, with the connection ready for the next request."""
        return self.is_over and self._head.keeps_alive

    async def __anext__(self) -> bytes:
        piece = await (self._next() if self._unpacking is None else self._unpacked())
        if not piece:
            self.is_over = True
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Nothing is held that would have to be let go."""

    async def _unpacked(self) -> bytes:
        unpacking = self._unpacking
        assert unpacking is not None
        try:
            while piece := unpacking.unconsumed_tail or await self._next():
                if unpacking.eof:  # it would be kept for nobody, and no cap would count it
                    raise NotHttpError("something behind the end of a packed body")
                if unpacked := unpacking.decompress(piece, PIECE_BYTES):
                    return unpacked
        except zlib.error as error:
            raise NotHttpError("a body that cannot be unpacked") from error
        return b""

    async def _next(self) -> bytes:
        """Return the next piece as it was sent; nothing at the end."""
        if self._head.is_chunked:
            return await self._next_of_chunk()
        if self._head.length is None:
            return await self._source.some(PIECE_BYTES)
        return await self._counted() if self._missing else b""

    async def _counted(self) -> bytes:
        piece = await self._source.some(min(self._missing, PIECE_BYTES))
        if not piece:
            raise EOFError("the connection ended before the body did")
        self._missing -= len(piece)
        return piece

    async def _next_of_chunk(self) -> bytes:
        if not self._missing:
            self._missing = await self._chunk_bytes()
        if not self._missing:
            while await self._source.line() != b"\r\n":
                pass  # what may still be said behind the last chunk
            return b""
        piece = await self._counted()
        if not self._missing and await self._source.exactly(2) != b"\r\n":
            raise NotHttpError("a chunk that is longer than it says")
        return piece

    async def _chunk_bytes(self) -> int:
        line = _CHUNK.fullmatch(await self._source.line())
        if line is None:
            raise NotHttpError("a chunk without a size")
        return int(line[1], 16)
