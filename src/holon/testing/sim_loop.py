"""An event loop in which time is virtual, order is shuffled and the process may die at any step.

Owns:  the loop of the simulation: a seed decides which ready callback runs first, and when nothing
       is ready the clock jumps to whoever waits next.
Rule 1: nobody ready and nobody waiting is a deadlock, and an error.
Rule 2: a simulated crash leaves the loop at once, between two callbacks; nothing gets to clean up.
"""

import asyncio
import contextlib
import warnings
from collections import deque
from collections.abc import Coroutine
from random import Random
from typing import Any

from holon.testing.manual_clock import ManualClock


class SimulatedCrash(KeyboardInterrupt):
    """The process is gone. A KeyboardInterrupt, because asyncio lets nothing hold one back."""


class SimulatedDeadlockError(Exception):
    """Nothing can ever happen again."""


class _IdleSelector:
    """Stands where a loop waits for the world; here waiting moves the clock instead."""

    def __init__(self, loop: "SimLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None or timeout > 0:
            self._loop.idle()
        return []

    def close(self) -> None:
        """Nothing was opened."""


class SimLoop(asyncio.BaseEventLoop):
    """A seeded loop over virtual time."""

    _ready: "deque[asyncio.Handle]"

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        super().__init__()
        self._clock = clock
        self._chance = chance
        self._selector = _IdleSelector(self)
        self.crash_at_step: int | None = None
        self.step_count = 0

    def time(self) -> float:
        """Seconds since the loop began, for the few who ask the loop instead of the clock."""
        return self._clock.monotonic_ns() / 1e9

    def idle(self) -> None:
        """Nothing is ready: let time pass until somebody is."""
        if not self._clock.advance_to_next():
            raise SimulatedDeadlockError("nothing is ready and nobody waits for a moment")

    def _run_once(self) -> None:
        self.step_count += 1
        if self.crash_at_step is not None and self.step_count >= self.crash_at_step:
            raise SimulatedCrash(f"at step {self.step_count}")
        if len(self._ready) > 1:
            waiting = list(self._ready)
            self._chance.shuffle(waiting)
            self._ready.clear()
            self._ready.extend(waiting)
        super()._run_once()  # type: ignore[misc]  # asyncio keeps the body of its loop private

    def _process_events(self, event_list: list[object]) -> None:
        """No file descriptor is ever watched."""

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody needs to be woken."""

    def run_life(self, life: Coroutine[Any, Any, None]) -> None:
        """Run to the end of `life`, or raise SimulatedCrash and bury what is left."""
        asyncio.set_event_loop(self)
        try:
            self.run_until_complete(life)
        finally:
            self._bury()
            asyncio.set_event_loop(None)
            self.close()

    def _bury(self) -> None:
        """Drop every task where it stands, as a killed process would."""
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is dead, not lost
            with contextlib.suppress(BaseException), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # some never got to their start
                task.get_coro().close()
        self._ready.clear()
        self._clock.forget_appointments()
