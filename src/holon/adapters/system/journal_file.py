"""The journal of a service, as lines of JSON.

Owns:  what a line looks like, its bounds, and what becomes of lines that cannot be written.
Rule 1: every text is cleaned of secrets first and cut afterwards: half a secret is one too many.
Rule 2: a line is one object and never longer than JOURNAL_LINE_BYTES_MAX, whatever it is about.
Rule 3: a journal may be written to from any thread. Trouble with the disk is counted, and told by
        the first line that can be written again.
"""

import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Final, Protocol

import msgspec

from holon.adapters.system.line_flood import HeldBack, LineFlood
from holon.model.errors import HolonError
from holon.model.instant import Instant
from holon.model.limits import (
    JOURNAL_FIELD_CHARS_MAX,
    JOURNAL_LINE_BYTES_MAX,
    JOURNAL_MESSAGE_CHARS_MAX,
    JOURNAL_READ_CHARS_MAX,
    JOURNAL_TRACE_CHARS_MAX,
)
from holon.model.record import Record
from holon.model.text_size import cut
from holon.ports.clock import Clock
from holon.ports.journal import About, LogLevel
from holon.ports.redactor import Redactor

_ORDER: Final = tuple(LogLevel)
_MS_NS: Final = 1_000_000
_CUT: Final = "…"


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
    """Writes what it is told to a log, and what matters to whoever watches."""

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
        self._flood = LineFlood()
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
        said = self._cleaned(message, JOURNAL_MESSAGE_CHARS_MAX)
        event = self._cleaned(event, JOURNAL_FIELD_CHARS_MAX)
        line = JournalLine(
            at=self._clock.now(),
            level=level,
            event=event,
            message=said,
            pid=os.getpid(),
            about={name: self._field(v) for name, v in about.items() if v is not None},
            trace=self._cleaned_end(trace),
        )
        now_ms = self._clock.monotonic_ns() // _MS_NS
        with self._writing:
            for held in self._flood.over(now_ms=now_ms):
                self._write(self._told(held))
            if self._flood.admits(event, said, level, now_ms=now_ms):
                self._write(line)

    def sweep(self) -> None:
        """Tell of what was held back, where its window is over."""
        with self._writing:
            for held in self._flood.over(now_ms=self._clock.monotonic_ns() // _MS_NS):
                self._write(self._told(held))

    def close(self) -> None:
        """Tell of everything that was held back. The log stays its owner's to close."""
        with self._writing:
            for held in self._flood.rest():
                self._write(self._told(held))

    def _told(self, held: HeldBack) -> JournalLine:
        what = f"{held.event}: {held.message}" if held.message else held.event
        return JournalLine(
            at=self._clock.now(),
            level=held.level,
            event="repeated",
            message=f"{held.lines_count} more of {what}",
            pid=os.getpid(),
            about={"of": held.event, "count": held.lines_count},
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
        with suppress(OSError):  # whoever watched may have gone
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
    told = line.encoded()
    while len(told) >= JOURNAL_LINE_BYTES_MAX:
        trace, half = line.trace, len(line.message) // 2
        if len(trace) > JOURNAL_FIELD_CHARS_MAX:
            line = msgspec.structs.replace(line, trace=_CUT + trace[len(trace) // 2 :])
        elif half > JOURNAL_FIELD_CHARS_MAX:
            line = msgspec.structs.replace(line, message=line.message[:half] + _CUT)
        else:
            line = msgspec.structs.replace(line, about={}, trace="")
        told = line.encoded()
    return told + b"\n"
