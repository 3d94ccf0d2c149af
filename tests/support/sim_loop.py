"""An event loop with virtual time, shuffled order, and crashes at any step.

Owns:  the loop of the simulation: a seed decides which ready callback runs first, and when nothing
       is ready the clock jumps to the next waiter.
Rule 1: no ready callback and no waiter is a deadlock, and an error.
Rule 2: a simulated crash leaves the loop at once, between two callbacks; no cleanup code runs.
Rule 3: nothing depends on memory addresses. Cancellation iterates over sets of tasks and scopes, so
        both are hashed by their number.
"""

import asyncio
import contextlib
import inspect
import logging
import math
import warnings
from collections import deque
from collections.abc import Coroutine, Iterator
from itertools import count
from random import Random
from typing import Any, Final

from anyio._backends import _asyncio as anyio_asyncio

from tests.support.manual_clock import ManualClock

_AWAITS_ON_THE_WAY_OUT_MAX: Final = 16


class SimulatedCrash(KeyboardInterrupt):
    """The process is gone. A KeyboardInterrupt, because asyncio lets nothing hold one back."""


class SimulatedDeadlockError(Exception):
    """Nothing can ever happen again."""


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set is the same in every run."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, number: int, **how: Any) -> None:
        self._number = number  # first, because the loop's own set wants it at once
        super().__init__(coro, **how)

    def __hash__(self) -> int:
        return self._number


class _NumberedScope(anyio_asyncio.CancelScope):
    """A cancel scope whose place in a set is the same in every run."""

    __slots__ = ("_number",)
    numbers = count()

    def __init__(self, deadline: float = math.inf, shield: bool = False) -> None:
        self._number = next(_NumberedScope.numbers)
        super().__init__(deadline, shield)

    def __hash__(self) -> int:
        return self._number


@contextlib.contextmanager
def _numbered_scopes() -> Iterator[None]:
    """Have every cancel scope numbered from 0, for as long as a life takes."""
    original, anyio_asyncio.CancelScope = anyio_asyncio.CancelScope, _NumberedScope  # type: ignore[misc]
    _NumberedScope.numbers = count()
    try:
        yield
    finally:
        anyio_asyncio.CancelScope = original  # type: ignore[misc]


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
        self._task_numbers = count()
        self.set_task_factory(self._numbered_task)
        self.crash_at_step: int | None = None
        self.step_count = 0

    def _numbered_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, **how: Any
    ) -> "asyncio.Task[Any]":
        return _NumberedTask(coro, number=next(self._task_numbers), loop=loop, **how)

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
            with _numbered_scopes():
                self.run_until_complete(life)
        finally:
            self._bury()
            asyncio.set_event_loop(None)
            self.close()

    def _bury(self) -> None:
        """Drop every task where it stands, as a killed process would.

        Closing a coroutine runs what it would do on its way out. Without a loop that comes to
        nothing, and what it says about that is nobody's business. What anyio knows of a task holds
        on to the task, so it is told to forget: else no world would ever leave the memory.
        """
        logging.disable(logging.CRITICAL)
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is dead, not lost
            outer = task.get_coro()
            inner = _wrapped_in(outer)
            _close(outer)
            if inner is not None:
                _close(inner)
        logging.disable(logging.NOTSET)
        for task in [each for each in anyio_asyncio._task_states if each.get_loop() is self]:
            del anyio_asyncio._task_states[task]
        self._ready.clear()
        self._clock.forget_appointments()


def _wrapped_in(coroutine: Any) -> Any:
    """What the coroutine of a task runs, if anyio made the task.

    Where the task never began, closing it may leave this one as it was (from Python 3.13 on), and
    it would complain of that when it is collected, in whatever test is running by then.
    """
    inner = getattr(inspect.getcoroutinelocals(coroutine).get("self"), "_coro", None)
    return inner if inspect.iscoroutine(inner) else None


def _close(coroutine: Any) -> None:
    for _ in range(_AWAITS_ON_THE_WAY_OUT_MAX):
        with contextlib.suppress(BaseException), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # some never began
            coroutine.close()
            return
