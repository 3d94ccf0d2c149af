"""Mutants in what becomes of timers and of history when the wall clock is set."""

from datetime import datetime

from holon.decide.timer_grid import put_forward, set_back
from holon.model.wake import TimerRecord
from holon.runtime.retention_keeper import RetentionKeeper
from holon.runtime.timer_wheel import TimerWheel
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

    plant_function(put_forward, stay)


def plant_c3() -> None:
    """Let retention go by the wall clock, wherever that is set."""

    async def trusting(self: RetentionKeeper) -> datetime:
        return self._clock.now()

    plant_method(RetentionKeeper, "_trusted_now", trusting)


def plant_c4() -> None:
    """Hear of a clock that was set back only when something else happens."""

    async def doze(self: TimerWheel) -> None:
        del self

    plant_method(TimerWheel, "_watch_clock", doze)
