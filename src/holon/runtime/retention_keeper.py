"""Keeps the database within its bounds, a small step at a time.

Owns:  when retention runs: at intervals, and early when many commits have come in.
Rule 1: a step is bounded, so that commits of agents never wait long behind it.
"""

from typing import Final

from holon.model.errors import StoreFullError
from holon.model.instant import later
from holon.model.limits import RETENTION_COMMITS_COUNT, RETENTION_INTERVAL_MS
from holon.ports.failpoint import Failpoint
from holon.runtime.alarm import Alarm
from holon.runtime.services import Services


class RetentionKeeper:
    """Runs retention for one host."""

    def __init__(self, services: Services) -> None:
        self._services: Final = services
        self._alarm = Alarm(services.clock)
        self._groups_seen = 0

    def commit_applied(self) -> None:
        """Count what comes in; a burst is a reason to look early."""
        self._groups_seen += 1
        if self._groups_seen >= RETENTION_COMMITS_COUNT:
            self._alarm.nudge()

    async def run(self) -> None:
        """Prune for ever."""
        clock = self._services.clock
        while True:
            await self._alarm.wait(until=later(clock.now(), by_ms=RETENTION_INTERVAL_MS))
            self._groups_seen = 0
            await self.prune_all()

    async def prune_all(self) -> None:
        """Prune until the policy is met."""
        more = True
        while more:
            try:
                report = await self._services.store.prune(
                    self._services.retention, now=self._services.clock.now()
                )
            except StoreFullError:
                return  # the next interval tries again
            more = report.more
            await self._services.failpoints.reach(Failpoint.RETENTION_BETWEEN_BATCHES)
