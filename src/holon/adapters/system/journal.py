"""The service journal: JSON lines, rate limited, redacted, bounded.

Owns:  the format and bounds of a line, the counting of suppressed lines in time windows, and the
       handling of lines that cannot be written.
Rule 1: the first few equal lines are written, and the first of each event; what follows within the
        window is counted and reported as one line when the window ends.
Rule 2: memory is bounded: when full, lines are counted by event only.
Rule 3: nothing is suppressed silently: every count is reported, at the latest when the log is
        closed.
Rule 4: every text is redacted first and shortened afterwards: half a secret must not remain.
Rule 5: a line is one object of at most JOURNAL_LINE_BYTES_MAX.
Rule 6: the journal accepts lines from any thread. Disk failures are counted, and reported by the
        first line that can be written again.
"""

import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple, Protocol

import msgspec

from holon.model.errors import HolonError
from holon.model.limits import (
    JOURNAL_EVENT_COUNT_MAX,
    JOURNAL_FIELD_CHARS_MAX,
    JOURNAL_KEYS_COUNT_MAX,
    JOURNAL_LINE_BYTES_MAX,
    JOURNAL_MESSAGE_CHARS_MAX,
    JOURNAL_READ_CHARS_MAX,
    JOURNAL_SAME_COUNT_MAX,
    JOURNAL_TRACE_CHARS_MAX,
    JOURNAL_WINDOW_MS,
)
from holon.model.record import Record
from holon.model.text_size import cut
from holon.model.values import Instant
from holon.ports.clock import Clock
from holon.ports.journal import About, LogLevel, Redactor

_ORDER: Final = tuple(LogLevel)
_MS_NS: Final = 1_000_000
_CUT: Final = "…"


class SuppressedLines(NamedTuple):
    """Lines that were not written."""

    event: str
    message: str  # empty: several messages of the event
    level: LogLevel
    lines_count: int


class _Window(msgspec.Struct):
    since_ms: int
    level: LogLevel
    seen_count: int = 0
    held_count: int = 0


class LineRateLimiter:
    """Decides line by line. Moments are monotonic milliseconds and never go back."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], _Window] = {}

    def admits(self, event: str, message: str, level: LogLevel, *, now_ms: int) -> bool:
        """Whether the line may be written; one that may not is counted."""
        for key, count_max in (
            ((event, message), JOURNAL_SAME_COUNT_MAX),
            ((event, ""), JOURNAL_EVENT_COUNT_MAX),
        ):
            window = self._window(key, level, now_ms)
            if window is None:
                continue
            window.seen_count += 1
            if window.seen_count > count_max:
                window.held_count += 1
                return False
        return True

    def over(self, *, now_ms: int) -> list[SuppressedLines]:
        """Close the windows that are over and return what they held back."""
        return self._closed(now_ms - JOURNAL_WINDOW_MS)

    def rest(self) -> list[SuppressedLines]:
        """Close every window and return what they held back."""
        return self._closed(None)

    def _closed(self, until_ms: int | None) -> list[SuppressedLines]:
        due: list[tuple[str, str]] = []
        for key, window in self._windows.items():  # in the order in which they were opened
            if until_ms is not None and window.since_ms > until_ms:
                break
            due.append(key)
        closed = [(key, self._windows.pop(key)) for key in due]
        return [
            SuppressedLines(event, message, window.level, window.held_count)
            for (event, message), window in closed
            if window.held_count
        ]

    def _window(self, key: tuple[str, str], level: LogLevel, now_ms: int) -> _Window | None:
        window = self._windows.get(key)
        if window is None:
            if key[1] and len(self._windows) >= JOURNAL_KEYS_COUNT_MAX:
                return None
            window = self._windows[key] = _Window(now_ms, level)
        return window


class Appendable(Protocol):
    """Where lines go; may raise OSError or HolonError."""

    def append(self, line: bytes) -> None:
        """Write one line."""
        ...


class JournalLine(Record, frozen=True, kw_only=True):
    """One line. Ids and counts, which stand in `about`, are written beside the others."""

    at: Instant
    level: LogLevel
    event: str
    message: str
    pid: int
    about: Mapping[str, str | int] = {}
    trace: str = ""

    def encoded(self) -> bytes:
        """The line as JSON."""
        head = {"at": self.at, "level": self.level, "event": self.event, "message": self.message}
        tail = {"pid": self.pid, "trace": self.trace} if self.trace else {"pid": self.pid}
        return msgspec.json.encode({**head, **self.about, **tail})


Echo = Callable[[JournalLine], None]


def unheard(line: JournalLine) -> None:
    """Nobody sits in front of it."""


class JournalFile:
    """Writes lines to a log, and important ones to a watcher."""

    def __init__(
        self,
        log: Appendable,
        *,
        redactor: Redactor,
        clock: Clock,
        level: LogLevel = LogLevel.INFO,
        echo: Echo = unheard,
    ) -> None:
        self._log = log
        self._redactor = redactor
        self._clock = clock
        self._floor = _ORDER.index(level)
        self._echo = echo
        self._flood = LineRateLimiter()
        self._writing = Lock()
        self._lost_count = 0

    def note(
        self,
        event: str,
        message: str,
        *,
        level: LogLevel = LogLevel.INFO,
        error: BaseException | None = None,
        **about: About,
    ) -> None:
        """Write one line; with an error, its traceback beside it."""
        if self.leaves_out(level):
            return
        trace = "" if error is None else "".join(traceback.format_exception(error))
        self.put(level, event, message, trace=trace, about=about)

    def leaves_out(self, level: LogLevel) -> bool:
        """Whether lines of this level are not written."""
        return _ORDER.index(level) < self._floor

    def put(
        self,
        level: LogLevel,
        event: str,
        message: str,
        *,
        trace: str = "",
        about: Mapping[str, About],
    ) -> None:
        """Write one line whose traceback is already text."""
        text = self._cleaned(message, JOURNAL_MESSAGE_CHARS_MAX)
        event = self._cleaned(event, JOURNAL_FIELD_CHARS_MAX)
        line = JournalLine(
            at=self._clock.now(),
            level=level,
            event=event,
            message=text,
            pid=os.getpid(),
            about={name: self._field(v) for name, v in about.items() if v is not None},
            trace=self._cleaned_end(trace),
        )
        now_ms = self._clock.monotonic_ns() // _MS_NS
        with self._writing:
            for suppressed in self._flood.over(now_ms=now_ms):
                self._write(self._repeat_line(suppressed))
            if self._flood.admits(event, text, level, now_ms=now_ms):
                self._write(line)

    def sweep(self) -> None:
        """Tell of what was held back, where its window is over."""
        with self._writing:
            for held in self._flood.over(now_ms=self._clock.monotonic_ns() // _MS_NS):
                self._write(self._repeat_line(held))

    def close(self) -> None:
        """Tell of everything that was held back. The log stays its owner's to close."""
        with self._writing:
            for held in self._flood.rest():
                self._write(self._repeat_line(held))

    def _repeat_line(self, suppressed: SuppressedLines) -> JournalLine:
        subject = (
            f"{suppressed.event}: {suppressed.message}" if suppressed.message else suppressed.event
        )
        return JournalLine(
            at=self._clock.now(),
            level=suppressed.level,
            event="repeated",
            message=f"{suppressed.lines_count} more of {subject}",
            pid=os.getpid(),
            about={"of": suppressed.event, "count": suppressed.lines_count},
        )

    def _write(self, line: JournalLine) -> None:
        """With the lock held."""
        try:
            if self._lost_count:
                self._log.append(_encoded(self._told_of_lost()))
                self._lost_count = 0
            self._log.append(_encoded(line))
        except (OSError, HolonError):
            self._lost_count += 1
        with suppress(OSError):  # the watcher may have exited
            self._echo(line)

    def _told_of_lost(self) -> JournalLine:
        return JournalLine(
            at=self._clock.now(),
            level=LogLevel.WARNING,
            event="lines_lost",
            message=f"{self._lost_count} lines before this one could not be written",
            pid=os.getpid(),
            about={"count": self._lost_count},
        )

    def _field(self, value: str | int) -> str | int:
        if isinstance(value, int):
            return value
        return self._cleaned(value, JOURNAL_FIELD_CHARS_MAX)

    def _cleaned(self, text: str, chars_max: int) -> str:
        clean = self._redactor.redact(_sound(text[:JOURNAL_READ_CHARS_MAX]))
        return cut(clean, chars_max=chars_max)

    def _cleaned_end(self, text: str) -> str:
        """The end of a traceback says most: where it happened, and what."""
        clean = self._redactor.redact(_sound(text[-JOURNAL_READ_CHARS_MAX:])).rstrip("\n")
        if len(clean) <= JOURNAL_TRACE_CHARS_MAX:
            return clean
        return _CUT + clean[1 - JOURNAL_TRACE_CHARS_MAX :]


def _sound(text: str) -> str:
    """The text with a mark for what UTF-8 cannot say, such as a byte of a strange file name."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _encoded(line: JournalLine) -> bytes:
    """The line within its bound: escapes may make a text several times as long as it is."""
    encoded = line.encoded()
    while len(encoded) >= JOURNAL_LINE_BYTES_MAX:
        trace, half = line.trace, len(line.message) // 2
        if len(trace) > JOURNAL_FIELD_CHARS_MAX:
            line = msgspec.structs.replace(line, trace=_CUT + trace[len(trace) // 2 :])
        elif half > JOURNAL_FIELD_CHARS_MAX:
            line = msgspec.structs.replace(line, message=line.message[:half] + _CUT)
        else:
            line = msgspec.structs.replace(line, about={}, trace="")
        encoded = line.encoded()
    return encoded + b"\n"
