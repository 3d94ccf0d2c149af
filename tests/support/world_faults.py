"""The faults of a simulated world: each seed draws its own mixture and frequency.

Owns:  disk faults and crashes. Faults end when the world says so, never by themselves.
"""

from random import Random
from typing import Final

from tests.support.manual_clock import ManualClock

SLOW_MS_MAX: Final = 20_000


class WorldFaults:
    """The swarm of faults of one seed."""

    def __init__(self, clock: ManualClock, chance: Random) -> None:
        self._clock = clock
        self._chance = chance
        self._slow_share = chance.choice((0.0, 0.1, 0.1, 0.4))
        self._full_share = chance.choice((0.0, 0.0, 0.01))
        self._break_share = chance.choice((0.0, 0.0, 0.002))
        self._mean_steps = chance.choice((60, 300, 1_500, 6_000))
        self._full_until_ns = 0
        self.active = True

    def delay_ms(self) -> int:
        """Most commits are quick; some take long."""
        if self.active and self._chance.random() < self._slow_share:
            return self._chance.randrange(1, SLOW_MS_MAX)
        return 0

    def is_full(self) -> bool:
        """The disk fills up now and then, for a while."""
        if self.active and self._chance.random() < self._full_share:
            self._full_until_ns = self._clock.monotonic_ns() + self._chance.randrange(10**10)
        return self.active and self._clock.monotonic_ns() < self._full_until_ns

    def breaks(self) -> bool:
        """The disk fails and nobody knows what it kept."""
        return self.active and self._chance.random() < self._break_share

    def steps_to_crash(self) -> int | None:
        """After how many steps of the loop the process dies, if it does."""
        if not self.active:
            return None
        return 1 + int(self._chance.expovariate(1 / self._mean_steps))
