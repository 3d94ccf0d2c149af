"""Server-sent events: an incremental parser without IO.

Owns:  the one parser, for provider streams and for the runtime's own.
Rule 1: chunk boundaries do not matter: lines may end in CR, LF or CRLF, and a chunk may end inside
        a character, a CRLF or the byte order mark.
Rule 2: lines and events are capped; a stream beyond a cap, or one that is not UTF-8, is unreadable.
Rule 3: an event that is incomplete at the end of the stream is dropped, as the format requires.
"""

import re
from typing import Final

from holon.model.limits import SSE_EVENT_BYTES_MAX, SSE_LINE_BYTES_MAX
from holon.model.record import Record

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_DEFAULT_EVENT: Final = "message"


class UnreadableStreamError(Exception):
    """A line or an event is beyond its cap, or the stream is not UTF-8."""


class SseEvent(Record, frozen=True, kw_only=True):
    """One event of a stream. `id` is the last one the stream named, on this event or before it."""

    event: str = _DEFAULT_EVENT
    data: str = ""
    id: str | None = None


class SseParser:
    """Parses bytes in chunks, and returns events as they complete.

    With `bare_ids`, an id without data is an event too: a runtime sends it for filtered events.
    """

    def __init__(
        self,
        *,
        line_bytes_max: int = SSE_LINE_BYTES_MAX,
        event_bytes_max: int = SSE_EVENT_BYTES_MAX,
        bare_ids: bool = False,
    ) -> None:
        self._line_bytes_max = line_bytes_max
        self._event_bytes_max = event_bytes_max
        self._bare_ids = bare_ids
        self._head: bytes | None = b""  # a possible beginning of a byte order mark
        self._line = bytearray()  # an incomplete line
        self._after_cr = False  # a following LF belongs to the CR before it
        self._event = ""
        self._data: list[str] = []
        self._event_bytes = 0
        self._id: str | None = None
        self._names_id = False  # whether the current event has an id of its own

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Parse the next bytes and return the events they complete."""
        piece = self._without_mark(piece)
        events: list[SseEvent] = []
        start = 0
        if self._after_cr and piece:
            start = int(piece[0] == 0x0A)
            self._after_cr = False
        for end in _LINE_END.finditer(piece, start):
            self._grow(piece, start, end.start())
            event = self._end_line()
            if event is not None:
                events.append(event)
            start = end.end()
        self._grow(piece, start, len(piece))
        self._after_cr = piece.endswith(b"\r") if piece else self._after_cr
        return events

    def _without_mark(self, piece: bytes) -> bytes:
        if self._head is None:
            return piece
        head = self._head + piece
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _grow(self, piece: bytes, start: int, end: int) -> None:
        if len(self._line) + end - start > self._line_bytes_max:
            raise UnreadableStreamError(
                f"the stream holds a line of more than {self._line_bytes_max} bytes"
            )
        self._line += memoryview(piece)[start:end]

    def _end_line(self) -> SseEvent | None:
        if not self._line:
            return self._end_event()
        self._event_bytes += len(self._line)
        if self._event_bytes > self._event_bytes_max:
            raise UnreadableStreamError(
                f"the stream holds an event of more than {self._event_bytes_max} bytes"
            )
        try:
            line = self._line.decode()
        except UnicodeDecodeError:
            raise UnreadableStreamError("the stream is not UTF-8") from None
        self._line.clear()
        self._take_field(line)
        return None

    def _take_field(self, line: str) -> None:
        if line.startswith(":"):
            self._event_bytes -= len(line.encode())  # a comment belongs to no event
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
            self._names_id = True

    def _end_event(self) -> SseEvent | None:
        event = SseEvent(
            event=self._event or _DEFAULT_EVENT, data="\n".join(self._data), id=self._id
        )
        is_event = bool(self._data) or (self._bare_ids and self._names_id)
        self._event = ""
        self._data.clear()
        self._event_bytes = 0
        self._names_id = False
        return event if is_event else None
