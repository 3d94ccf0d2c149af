"""HTTP/1.1 responses: an incremental parser without IO.

Owns:  the head of a response, and where its body begins and ends. Both built-in clients use it:
       that of local providers, and that of a runtime.
Rule 1: malformed HTTP raises NotHttpError; a connection that ends too early, ConnectionResetError.
        Nothing is guessed.
Rule 2: chunk boundaries do not matter; the head and every line are bounded.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

HEAD_BYTES_MAX: Final = 64 * 1024
RECEIVE_BYTES: Final = 64 * 1024  # a suitable size for one socket read
_HEADERS_COUNT_MAX: Final = 128
_INTERIM_COUNT_MAX: Final = 8  # heads of interim (1xx) responses
_BEGINNING: Final = b"HTTP/1."
_HEAD_END: Final = b"\r\n\r\n"
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n\0]*)?")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?")


class NotHttpError(Exception):
    """The bytes are not an HTTP response."""


class ResponseHead(NamedTuple):
    """The status and headers of a response."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    length: int | None  # of the body; None when chunked or open-ended
    is_chunked: bool
    keeps_alive: bool


class ResponseParser:
    """Parses bytes in chunks: first the head, then the body without its framing."""

    def __init__(self) -> None:
        self.head: ResponseHead | None = None
        self.is_over = False  # the body is complete
        self._unread = b""
        self._interim_count = 0
        self._missing = 0  # bytes of the body, or of the current chunk
        self._in_chunk = False  # inside a chunk, or before its line end
        self._in_trailer = False

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection is ready for the next request."""
        is_whole = self.is_over and not self._unread
        return is_whole and self.head is not None and self.head.keeps_alive

    def feed(self, data: bytes) -> bytes:
        """Parse more bytes, none at the end of the connection; return new bytes of the body."""
        if not data:
            return self._end()
        self._unread += data
        while self.head is None:
            if not self._take_head():
                return b""
        if self.is_over:
            return b""
        if self.head.is_chunked:
            return self._take_chunks()
        if self.head.length is None:
            piece, self._unread = self._unread, b""
            return piece
        piece, self._unread = self._unread[: self._missing], self._unread[self._missing :]
        self._missing -= len(piece)
        self.is_over = not self._missing
        return piece

    def _end(self) -> bytes:
        if self.head is None or not (self.is_over or self._is_open_ended(self.head)):
            raise ConnectionResetError("the connection was closed in the middle of a response")
        self.is_over = True
        return b""

    @staticmethod
    def _is_open_ended(head: ResponseHead) -> bool:
        return head.length is None and not head.is_chunked

    def _take_head(self) -> bool:
        """Parse a head if it is complete."""
        unread = self._unread
        if unread[: len(_BEGINNING)] != _BEGINNING[: len(unread)]:
            raise NotHttpError("this is not an HTTP response")
        end = unread.find(_HEAD_END)
        if max(end, len(unread) if end < 0 else 0) > HEAD_BYTES_MAX:
            raise NotHttpError("the head is too long")
        if end < 0:
            return False
        self._unread = unread[end + len(_HEAD_END) :]
        head = parsed_head(unread[:end])
        if head.status >= 200:
            self.head = head
            self._missing = head.length or 0
            self.is_over = head.length == 0
            return True
        self._interim_count += 1
        if self._interim_count == _INTERIM_COUNT_MAX:
            raise NotHttpError("too many interim responses")
        return bool(self._unread)

    def _take_chunks(self) -> bytes:
        data, at, pieces = self._unread, 0, list[bytes]()
        while not self.is_over and at < len(data):
            if self._missing:
                piece = data[at : at + self._missing]
                at += len(piece)
                self._missing -= len(piece)
                pieces.append(piece)
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > HEAD_BYTES_MAX:
                    raise NotHttpError("a chunk line is too long")
                break
            self._take_line(data[at:end])
            at = end + 2
        self._unread = data[at:]
        return b"".join(pieces)

    def _take_line(self, line: bytes) -> None:
        """Parse a line between two chunks."""
        if self._in_trailer:
            self.is_over = not line
        elif self._in_chunk:
            if line:
                raise NotHttpError("a chunk is longer than its size")
            self._in_chunk = False
        else:
            size = _CHUNK.fullmatch(line)
            if size is None:
                raise NotHttpError("a chunk without a size")
            self._missing = int(size[1], 16)
            self._in_chunk = self._missing > 0
            self._in_trailer = not self._in_chunk


def parsed_head(text: bytes) -> ResponseHead:
    """Parse a head, without the empty line that ends it."""
    first, *lines = text.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise NotHttpError("this is not an HTTP response")
    if len(lines) > _HEADERS_COUNT_MAX:
        raise NotHttpError("too many headers")
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
        length, is_chunked = 0, False
    connection = headers.get("connection", "").lower()
    is_bounded = (length is not None) or (is_chunked and "content-length" not in headers)
    keeps_alive = is_bounded and not is_old and "close" not in connection
    return ResponseHead(status, headers, length, is_chunked, keeps_alive)
