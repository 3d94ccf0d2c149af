"""The system clock.

Owns:  reading the machine's time and sleeping by it.
Rule 1: a sleeper checks the wall clock at least every JUMP_NOTICED_MS, because setting the clock
        forwards, or suspending the machine, moves the wall clock but not the sleep.
Rule 2: a pause uses the monotonic clock only: no jump makes it longer or shorter.
Rule 3: durations come from the monotonic clock; the wall clock only names the moment.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import anyio

from holon.model.values import to_micros

JUMP_NOTICED_MS: Final = 2_000


class SystemClock:
    """Time as the operating system tells it. A test may hand in other readings."""

    def __init__(
        self,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        pause: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        self._wall_ns = wall_ns
        self._pause = pause

    def now(self) -> datetime:
        """Return the current instant in UTC, in whole microseconds."""
        # A float is exact enough for whole microseconds, and much quicker than adding to the epoch.
        return datetime.fromtimestamp(self._wall_ns() // 1_000 / 1_000_000, UTC)

    def monotonic_ns(self) -> int:
        """Return a reading that never goes back."""
        return time.monotonic_ns()

    async def sleep_until(self, deadline: datetime) -> None:
        """Return once the wall clock has reached the deadline, however it gets there."""
        due_ns = to_micros(deadline) * 1_000
        while (remaining_ns := due_ns - self._wall_ns()) > 0:
            await self._pause(min(remaining_ns, JUMP_NOTICED_MS * 1_000_000) / 1_000_000_000)

    async def sleep_for(self, ms: int) -> None:
        """Return once so much time has passed, whatever the wall clock does meanwhile."""
        await self._pause(max(0, ms) / 1_000)
