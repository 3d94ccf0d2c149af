"""A clock that moves only when a test says so.

Owns:  virtual time: integer nanoseconds for the wall clock and for the monotonic clock.
Rule 1: time stands still while code runs; only `advance`, `advance_to_next` and `jump` move it.
Rule 2: waiters of one moment are released in the order they began to wait. Nothing else decides.
Rule 3: `jump` moves the wall clock alone, either way, as an operator who sets the clock does.
        Waiters that are then due are released; the others wait for the new wall clock. A waiter for
        a duration, and not for a moment, is moved along with the wall clock.
"""

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from holon.model.values import from_micros, to_micros

DAWN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MS_NS: Final = 1_000_000


class Appointment:
    """Something that happens when the wall reaches a moment, unless it is cancelled first."""

    def __init__(
        self, due_ns: int, order: int, callback: Callable[[], None], *, is_span: bool
    ) -> None:
        self.due_ns = due_ns
        self.order = order
        self.is_span = is_span  # waits for time to pass, wherever the wall is set to meanwhile
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget it."""
        self.callback = None

    def __lt__(self, other: "Appointment") -> bool:
        return (self.due_ns, self.order) < (other.due_ns, other.order)


class ManualClock:
    """Virtual time for tests and for the simulation."""

    def __init__(self, start: datetime = DAWN, *, monotonic_ns: int = 0) -> None:
        self._wall_ns = to_micros(start) * 1_000
        self._monotonic_ns = monotonic_ns
        self._waiting: list[Appointment] = []
        self._order = 0

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        return from_micros(self._wall_ns // 1_000)

    def monotonic_ns(self) -> int:
        """Return a reading that `jump` does not touch."""
        return self._monotonic_ns

    async def sleep_until(self, deadline: datetime) -> None:
        """Return once the wall has reached the deadline; at once when it already has."""
        if self.now() < deadline:
            await _kept(partial(self._appoint, to_micros(deadline) * 1_000, is_span=False))

    async def sleep_for(self, ms: int) -> None:
        """Return once so much time has passed; at once when that is none."""
        if ms > 0:
            await _kept(partial(self._appoint, self._wall_ns + ms * _MS_NS, is_span=True))

    def call_at(self, deadline: datetime, callback: Callable[[], None]) -> Appointment:
        """Call back when the wall is moved to the deadline or past it."""
        return self._appoint(to_micros(deadline) * 1_000, callback, is_span=False)

    def _appoint(self, due_ns: int, callback: Callable[[], None], *, is_span: bool) -> Appointment:
        self._order += 1
        appointment = Appointment(due_ns, self._order, callback, is_span=is_span)
        heapq.heappush(self._waiting, appointment)
        return appointment

    def next_deadline(self) -> datetime | None:
        """Return the moment the earliest waiter waits for."""
        earliest = self._earliest()
        return None if earliest is None else from_micros(earliest.due_ns // 1_000)

    def advance_to_next(self) -> bool:
        """Move to the earliest waiter and release that one; False when nobody waits."""
        earliest = self._earliest()
        if earliest is None:
            return False
        self._release(earliest)
        return True

    def advance(self, ms: int) -> None:
        """Let time pass, releasing each waiter at its own moment on the way."""
        target_ns = self._wall_ns + ms * _MS_NS
        while (earliest := self._earliest()) is not None and earliest.due_ns <= target_ns:
            self._release(earliest)
        self._pass_until(target_ns)

    def jump(self, ms: int) -> None:
        """Set the wall clock forwards or back; no time passes."""
        self._wall_ns += ms * _MS_NS
        for appointment in self._waiting:
            if appointment.is_span:
                appointment.due_ns += ms * _MS_NS
        heapq.heapify(self._waiting)
        while (earliest := self._earliest()) is not None and earliest.due_ns <= self._wall_ns:
            self._release(earliest)

    def forget_appointments(self) -> None:
        """Drop every waiter, as the end of their process does."""
        self._waiting.clear()

    def _pass_until(self, moment_ns: int) -> None:
        by_ns = max(0, moment_ns - self._wall_ns)
        self._wall_ns += by_ns
        self._monotonic_ns += by_ns

    def _earliest(self) -> Appointment | None:
        while self._waiting and self._waiting[0].callback is None:
            heapq.heappop(self._waiting)
        return self._waiting[0] if self._waiting else None

    def _release(self, earliest: Appointment) -> None:
        self._pass_until(earliest.due_ns)
        heapq.heappop(self._waiting)
        assert earliest.callback is not None
        earliest.callback()


async def _kept(appoint: Callable[[Callable[[], None]], Appointment]) -> None:
    """Wait for an appointment; who is cancelled cancels it."""
    arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    appointment = appoint(lambda: _arrive(arrived))
    try:
        await arrived
    finally:
        appointment.cancel()


def _arrive(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)
