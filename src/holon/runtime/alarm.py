"""Waiting for whichever comes first: a nudge or a moment.

Owns:  the alarm services sleep on. A nudge that comes while nobody waits is kept, never lost.
"""

from datetime import datetime

import anyio

from holon.ports.clock import Clock


class Alarm:
    """A level-triggered nudge with an optional deadline."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nudged = anyio.Event()

    @property
    def is_nudged(self) -> bool:
        """Whether a nudge is kept for the next who goes to sleep."""
        return self._nudged.is_set()

    def nudge(self) -> None:
        """Wake the sleeper, now or the next time it goes to sleep."""
        self._nudged.set()

    async def wait(self, *, until: datetime | None) -> None:
        """Return once nudged, or at `until`; consume the nudge before anything is read."""
        if until is None:
            await self._nudged.wait()
        elif not self._nudged.is_set():
            async with anyio.create_task_group() as race:
                race.start_soon(self._ring_at, until, race.cancel_scope)
                await self._nudged.wait()
                race.cancel_scope.cancel()
        self._nudged = anyio.Event()

    async def _ring_at(self, moment: datetime, race: anyio.CancelScope) -> None:
        await self._clock.sleep_until(moment)
        race.cancel()
