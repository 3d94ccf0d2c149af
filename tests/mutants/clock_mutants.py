"""Mutants in what becomes of timers and of history when the wall clock is set."""

from collections.abc import Sequence
from datetime import datetime

from holon.adapters.sqlite.log_segments import LogSegments, Place, Span
from holon.adapters.sqlite.retention import _aged, _Moments
from holon.decide.events.retention import confirmed_time
from holon.decide.wake.timers import advanced_slot, set_back
from holon.model.wake import TimerRecord
from holon.runtime.events.retention import RetentionKeeper
from holon.runtime.wake.dispatcher import TimerDispatcher
from tests.mutants.planting import plant_function, plant_method


def plant_c1() -> None:
    """Leave timers where a clock that stood ahead has put them."""

    def stay(timer: TimerRecord, *, now: datetime) -> datetime | None:
        del timer, now
        return None

    plant_function(set_back, stay)


def plant_c2() -> None:
    """Fire what was moved back as soon as the clock comes forward again."""

    def stay(timer: TimerRecord, *, now: datetime) -> datetime | None:
        del timer, now
        return None

    plant_function(advanced_slot, stay)


def plant_c3() -> None:
    """Let retention go by the wall clock, wherever that is set."""

    async def trusting(self: RetentionKeeper) -> datetime:
        return self._clock.now()

    plant_method(RetentionKeeper, "_trusted_now", trusting)


def plant_c4() -> None:
    """Hear of a clock that was set back only when something else happens."""

    async def doze(self: TimerDispatcher) -> None:
        del self

    plant_method(TimerDispatcher, "_watch_clock", doze)


def plant_c5() -> None:
    """Take rows by their stamps alone, though the clock stood there again later."""

    def nowhere(self: LogSegments, end: Place, *, below: int) -> Sequence[Span]:
        del self, end, below
        return ()

    plant_method(LogSegments, "after", nowhere)


def plant_c6() -> None:
    """Forget keys that were given while the clock stood in the past."""

    def never(self: LogSegments, moment: int, *, present: int) -> Sequence[Span]:
        del self, moment, present
        return ()

    plant_method(LogSegments, "in_the_past_since", never)


def plant_c7() -> None:
    """Cut the log up to the last event that looks old."""

    def lax(events: Sequence[Place], reached: object, moments: _Moments) -> Sequence[Place]:
        del reached
        old = [number for number, (_, at) in enumerate(events, start=1) if at <= moments.aged]
        return events[: max(old, default=0)]

    plant_function(_aged, lax)


def plant_c8() -> None:
    """Believe any wall clock at a start before anything has ended."""
    honest = confirmed_time

    def trusting(
        newest: Sequence[datetime | None], *, oldest: datetime | None, now: datetime
    ) -> datetime:
        if all(moment is None for moment in newest):
            return now
        return honest(newest, oldest=oldest, now=now)

    plant_function(confirmed_time, trusting)
