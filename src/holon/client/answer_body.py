"""Reading an answer of HTTP/1.1.

Owns:  its head, and its body by whichever of the three ways it is framed.
Rule 1: every line and every number is bounded; what does not fit is no answer of ours.
Rule 2: a body that breaks off is an error, unless the end of the connection is its only end.
"""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LINE_BYTES_MAX: Final = 65_536
_HEADERS_COUNT_MAX: Final = 128
_SIZE_CHARS_MAX: Final = 16


class NotHttpError(Exception):
    """What came is not an answer of HTTP/1.1."""


def read_head(incoming: io.BufferedReader) -> tuple[int, Mapping[str, str]]:
    """Return the status, and the headers by their names in lower case."""
    first = _line(incoming)
    version, _, rest = first.partition(" ")
    status, _, _ = rest.partition(" ")
    if not version.startswith("HTTP/1.") or len(status) != 3 or not status.isdecimal():
        raise NotHttpError("it does not speak HTTP" if first else "it hung up without a word")
    headers: dict[str, str] = {}
    while line := _line(incoming):
        name, colon, value = line.partition(":")
        if not colon or len(headers) >= _HEADERS_COUNT_MAX:
            raise NotHttpError("its headers cannot be read")
        headers[name.strip().lower()] = value.strip()
    return int(status), headers


def _line(incoming: io.BufferedReader) -> str:
    line = incoming.readline(_LINE_BYTES_MAX)
    if line and not line.endswith(b"\n"):
        raise NotHttpError("a line of it does not end")
    return line.decode("latin-1").rstrip("\r\n")


class AnswerBody(io.RawIOBase):
    """A body as a stream of its bytes, without the framing."""

    def __init__(self, incoming: io.BufferedReader, headers: Mapping[str, str]) -> None:
        super().__init__()
        self._incoming = incoming
        self._is_chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        length = headers.get("content-length")
        if length is not None and not _is_number(length):
            raise NotHttpError("its length cannot be read")
        # Bytes left of the body or of the chunk under way; None: up to the end of the connection.
        self._left = 0 if self._is_chunked else None if length is None else int(length)
        self._is_over = False

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read what is there, at least a byte of it; 0 at the end."""
        view = memoryview(buffer)
        if self._is_chunked and not self._left and not self._is_over:
            self._next_chunk()
        if self._is_over or self._left == 0:
            return 0
        wanted = len(view) if self._left is None else min(len(view), self._left)
        found = self._incoming.read1(wanted)
        if not found and self._left is not None:
            raise ConnectionResetError("it hung up in the middle of an answer")
        view[: len(found)] = found
        if self._left is not None:
            self._left -= len(found)
            if self._is_chunked and self._left == 0 and _line(self._incoming):
                raise NotHttpError("a piece of it has another size than it says")
        return len(found)

    def _next_chunk(self) -> None:
        size, _, _ = _line(self._incoming).partition(";")
        if not size:
            raise ConnectionResetError("it hung up in the middle of an answer")
        if len(size) > _SIZE_CHARS_MAX or not all(
            char in "0123456789abcdefABCDEF" for char in size
        ):
            raise NotHttpError("the size of a piece cannot be read")
        self._left = int(size, 16)
        if self._left == 0:
            self._is_over = True
            while _line(self._incoming):
                continue


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _SIZE_CHARS_MAX
