"""Segments of the log, by the state of the clock while they were written.

Owns:  the segments of the log within which the clock only moved forwards, and what their order
       proves about timestamps.
Rule 1: the log is in order of time, timestamps need not be. A timestamp is credible when the
        believed present has reached it, or is less than a day short of it, because the believed
        present may lag.
Rule 2: what follows a credible timestamp is no older than that. A timestamp that says otherwise was
        made while the clock was set back, and proves nothing.
Rule 3: the log is read once per process, then incrementally, in bounded pieces. Segments that were
        pruned since are still remembered.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from holon.adapters.sqlite.database.statements import Row, Statements
from holon.model.limits import CLOCK_TRUST_MS, HOUR_MS, MINUTE_MS

READ_COUNT: Final = 5_000  # events at a time
_STRETCHES_COUNT_MAX: Final = 10_000
_JITTER: Final = MINUTE_MS * 1_000  # commits are stamped when they are made, not when they go in
_SILENCE: Final = HOUR_MS * 1_000  # a step ahead that is longer may be one of the clock
_LEEWAY: Final = CLOCK_TRUST_MS * 1_000

LONG_AGO: Final = -(2**62)
FAR_AHEAD: Final = 2**62

# Moments after the first, up to and with the second.
Span: TypeAlias = tuple[int, int]
# An event: its log_seq and its stamp.
Place: TypeAlias = tuple[int, int]


class _Stretch(NamedTuple):
    """A part of the log, and between which stamps it was written."""

    first_seq: int
    last_seq: int
    low: int
    high: int


def horizon(present: int) -> int:
    """Return up to which stamp the log is believed, when this is the believed present."""
    return present + _LEEWAY


def _credible(stretch: _Stretch, believed: int) -> int:
    """Return the latest credible stamp of a stretch."""
    return LONG_AGO if stretch.low > believed else min(stretch.high, believed)


def is_behind(stamp: int, reached: int) -> bool:
    """Whether the clock had been set back when it gave a stamp, after it had reached another."""
    return stamp < reached - _JITTER


def without(whole: Span, taken: Iterable[Span]) -> Sequence[Span]:
    """Return what is left of a span; `taken` may overlap."""
    left = list[Span]()
    low, high = whole
    for taken_low, taken_high in sorted(taken):
        if taken_low > low:
            left.append((low, min(taken_low, high)))
        low = max(low, taken_high)
        if low >= high:
            return [span for span in left if span[0] < span[1]]
    return [*left, (low, high)]


class LogSegments:
    """The stretches of one log, on the writer's connection and thread."""

    def __init__(self, statements: Statements, sql: str) -> None:
        self._statements = statements
        self._sql = sql
        self._stretches = list[_Stretch]()
        self._seq = 0

    def catch_up(self) -> bool:
        """Read on by one piece; returns whether that was all."""
        found = self._statements.rows(self._sql, (self._seq, READ_COUNT))
        for log_seq, stamp in places(found):
            self._take(log_seq, stamp)
            self._seq = log_seq
        while len(self._stretches) > _STRETCHES_COUNT_MAX:
            # The oldest two become one: their events are the first to go.
            first, second = self._stretches[:2]
            low, high = min(first.low, second.low), max(first.high, second.high)
            self._stretches[:2] = [_Stretch(first.first_seq, second.last_seq, low, high)]
        return len(found) < READ_COUNT

    def _take(self, log_seq: int, stamp: int) -> None:
        if self._stretches:
            last = self._stretches[-1]
            if last.high - _JITTER <= stamp <= last.high + _SILENCE:
                low, high = min(last.low, stamp), max(last.high, stamp)
                self._stretches[-1] = _Stretch(last.first_seq, log_seq, low, high)
                return
        self._stretches.append(_Stretch(log_seq, log_seq, stamp, stamp))

    def reached(self, events: Sequence[Place], *, present: int) -> Sequence[int]:
        """Return the latest credible stamp that the log had reached with each of these events."""
        found = list[int]()
        highest, believed, before = LONG_AGO, horizon(present), 0
        for log_seq, stamp in events:
            while self._stretches[before].last_seq < log_seq:
                highest = max(highest, _credible(self._stretches[before], believed))
                before += 1
            if stamp <= believed:
                highest = max(highest, stamp)
            found.append(highest)
        return found

    def written_by(self, end: Place, reached: int, *, present: int) -> int | None:
        """Return the moment by which the log had come to a place; None when nothing says.

        That is its own stamp, or that of the first event behind it which is credible and no lower
        than what the log had `reached` before.
        """
        log_seq, stamp = end
        believed = horizon(present)
        if stamp <= believed and not is_behind(stamp, reached):
            return max(stamp, reached)
        for each in self._stretches:
            if each.last_seq > log_seq and each.low <= believed and each.high >= reached:
                return max(each.low, reached)
        return None

    def after(self, end: Place, *, below: int) -> Sequence[Span]:
        """Return where the clock stood after a place in the log, if it is below a stamp."""
        log_seq, stamp = end
        return [
            # Of a stretch that place is in, what comes after it is stamped later than it.
            (each.low - _JITTER if each.first_seq > log_seq else stamp, each.high + _JITTER)
            for each in self._stretches
            if each.last_seq > log_seq and each.low - _JITTER < below
        ]

    def in_the_past_since(self, moment: int, *, present: int) -> Sequence[Span]:
        """Return where the clock stood before a moment, though that had come already."""
        found = list[Span]()
        reached, believed = LONG_AGO, horizon(present)
        for each in self._stretches:
            if reached > moment and each.low <= moment:
                found.append((each.low - _JITTER, each.high + _JITTER))
            reached = max(reached, _credible(each, believed))
        return found


def places(rows: Iterable[Row]) -> list[Place]:
    """Return the events that rows name."""
    found = list[Place]()
    for log_seq, stamp in rows:
        assert isinstance(log_seq, int), "log_seq is a number"
        assert isinstance(stamp, int), "created_at is a number"
        found.append((log_seq, stamp))
    return found
