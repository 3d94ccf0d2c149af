"""A store whose disk is full, broken or slow on demand.

Owns:  faults between the runtime and a healthy store.
Rule 1: full and swamped mean nothing was written; a swamped writer fails at once. Broken means an
        unknown outcome; whether the commit was written is part of the fault.
Rule 2: a delay holds back the acknowledgement, not the write.
Rule 3: a fault lasts until it is cleared, and can be limited to commits by the prefix of their id.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum

from holon.model.commits import AuditedCommit, CommitOutcome
from holon.model.errors import StoreBrokenError, StoreBusyError, StoreError, StoreFullError
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.values import later
from holon.ports.clock import Clock
from holon.ports.reads import StoreReads
from holon.ports.store import CommitObserver, Store, Ticket


class DiskFault(StrEnum):
    """What is wrong with the disk."""

    NONE = "none"
    FULL = "full"
    SWAMPED = "swamped"
    BROKEN_AND_LOST = "broken_and_lost"
    BROKEN_BUT_KEPT = "broken_but_kept"


class FaultStore:
    """Hands everything on, through a disk that may misbehave."""

    def __init__(self, inner: Store, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self.fault = DiskFault.NONE
        self.only = ""
        self.delay_ms = 0
        self.refused_count = 0
        self.handed_on: list[str] = []  # ids of the commits that went to the store, in order

    @property
    def reads(self) -> StoreReads:
        """The queries decisions and surfaces need."""
        return self._inner.reads

    @property
    def problems(self) -> Sequence[StoreError]:
        """What the store itself has to say."""
        return self._inner.problems

    async def look(self) -> None:
        """Look at what the store lies on."""
        await self._inner.look()

    def submit(self, commit: AuditedCommit) -> Ticket:
        """Hand a commit to the writer, or to its fate."""
        fault = self.fault if commit.commit_id.startswith(self.only) else DiskFault.NONE
        if fault is not DiskFault.NONE:
            self.refused_count += 1
        if fault is DiskFault.SWAMPED:
            raise _error_of(fault)
        lost = fault in (DiskFault.FULL, DiskFault.BROKEN_AND_LOST)
        inner = None if lost else self._inner.submit(commit)
        if inner is not None:
            self.handed_on.append(commit.commit_id)
        return _FaultyTicket(inner, fault, self._pause)

    async def apply(self, commit: AuditedCommit) -> CommitOutcome:
        """Submit a commit and wait for its outcome."""
        return await self.submit(commit).outcome()

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every commit, with the agents it touched."""
        self._inner.observe(observer)

    async def prune(self, policy: RetentionPolicy, *, now: datetime) -> PruneReport:
        """Remove a batch of old rows, if the disk lets itself be written."""
        if self.fault is not DiskFault.NONE and not self.only:
            raise _error_of(self.fault)
        return await self._inner.prune(policy, now=now)

    async def close(self) -> None:
        """Let go of the files."""
        await self._inner.close()

    async def _pause(self) -> None:
        if self.delay_ms:
            await self._clock.sleep_until(later(self._clock.now(), by_ms=self.delay_ms))


class _FaultyTicket:
    """A commit on its way through a bad disk; without `inner` it never got there."""

    def __init__(
        self, inner: Ticket | None, fault: DiskFault, pause: Callable[[], Awaitable[None]]
    ) -> None:
        self._inner = inner
        self._fault = fault
        self._pause = pause

    async def outcome(self) -> CommitOutcome:
        """Return the outcome, or raise what the disk says."""
        await self._pause()
        outcome = await self._inner.outcome() if self._inner is not None else None
        if outcome is None or self._fault is not DiskFault.NONE:
            raise _error_of(self._fault)
        return outcome


def _error_of(fault: DiskFault) -> StoreError:
    if fault is DiskFault.FULL:
        return StoreFullError("the disk is full, as the test says")
    if fault is DiskFault.SWAMPED:
        return StoreBusyError("too much waits for the disk, as the test says")
    return StoreBrokenError("the disk broke, as the test says")
