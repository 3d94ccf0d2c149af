"""A writer that writes on the event loop, with delays and faults on demand.

Owns:  the simulation's replacement of the writer thread. The SQL, the groups and the transactions
       are the real ones; only the thread is gone, so that a seed decides everything.
Rule 1: a commit and its acknowledgement are two steps, so a crash may fall between them.
Rule 2: observers are called in a fixed order, so that a seed replays exactly.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol, TypeVar

import apsw

from holon.adapters.sqlite.writer.commit_writer import CommitWriter, Result
from holon.model.commits import AuditedCommit, CommitOutcome
from holon.model.errors import StoreBrokenError, StoreClosedError, StoreError, StoreFullError
from holon.model.values import AgentId
from holon.ports.store import CommitObserver
from tests.support.manual_clock import ManualClock

T = TypeVar("T")


class CommitFaults(Protocol):
    """What may go wrong with a group of commits."""

    def delay_ms(self) -> int:
        """How long the disk takes."""
        ...

    def is_full(self) -> bool:
        """Whether the disk is full right now."""
        ...

    def breaks(self) -> bool:
        """Whether the disk fails with the outcome unknown."""
        ...


class NoFaults:
    """A disk without surprises."""

    def delay_ms(self) -> int:
        """No delay."""
        return 0

    def is_full(self) -> bool:
        """Never full."""
        return False

    def breaks(self) -> bool:
        """Never broken."""
        return False


class InlineTicket:
    """A commit on its way."""

    def __init__(self) -> None:
        self._done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    def settle(self, result: Result) -> None:
        """The outcome is known."""
        if not self._done.done():
            self._done.set_result(result)

    async def outcome(self) -> CommitOutcome:
        """Return the outcome, or raise what the disk said."""
        result = await asyncio.shield(self._done)
        if isinstance(result, StoreError):
            raise result
        return result


class InlineWriter:
    """Writes groups of commits on the loop."""

    def __init__(
        self, connection: apsw.Connection, clock: ManualClock, faults: CommitFaults
    ) -> None:
        self._writer = CommitWriter(connection)
        self._clock = clock
        self._faults = faults
        self._waiting: list[tuple[AuditedCommit, InlineTicket]] = []
        self._observers: list[CommitObserver] = []
        self._under_way = False
        self._is_closed = False
        self.on_group: Callable[[list[AuditedCommit], list[Result]], None] | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the real writer underneath gave up."""
        return self._writer.broken is not None

    @property
    def refused(self) -> StoreFullError | None:
        """A simulated disk is asked again by whoever needs it."""
        return None

    async def look(self) -> None:
        """There are no files to look at."""

    def submit(self, commit: AuditedCommit) -> InlineTicket:
        """Queue a commit; the group it falls into is written soon."""
        if self._is_closed:
            raise StoreClosedError("the store is closed")
        ticket = InlineTicket()
        self._waiting.append((commit, ticket))
        if not self._under_way:
            self._under_way = True
            self._schedule()
        return ticket

    def _schedule(self) -> None:
        delay = self._faults.delay_ms()
        if delay:
            due = self._clock.now() + timedelta(milliseconds=delay)
            self._clock.call_at(due, self._write)
        else:
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        group, self._waiting = self._waiting, []
        commits = [commit for commit, _ in group]
        results, touched = self._apply(commits)
        if self.on_group is not None:
            self.on_group(commits, results)
        asyncio.get_running_loop().call_soon(self._acknowledge, group, results, touched)

    def _apply(self, commits: list[AuditedCommit]) -> tuple[list[Result], list[AgentId]]:
        if self._faults.is_full():
            full: Result = StoreFullError("the simulated disk is full")
            return [full] * len(commits), []
        applied = self._writer.apply_group(commits)
        if self._faults.breaks():
            broken: Result = StoreBrokenError("the simulated disk broke; the outcome is unknown")
            return [broken] * len(commits), []
        return applied.results, sorted(applied.touched)

    def _acknowledge(
        self,
        group: list[tuple[AuditedCommit, InlineTicket]],
        results: list[Result],
        touched: list[AgentId],
    ) -> None:
        for (_, ticket), result in zip(group, results, strict=True):
            ticket.settle(result)
        if touched:
            for observer in self._observers:
                observer(touched)
        if self._waiting:
            self._schedule()
        else:
            self._under_way = False

    async def run(self, job: Callable[[], T]) -> T:
        """Do maintenance at once; groups never overlap it."""
        return job()

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every group."""
        self._observers.append(observer)

    async def close(self) -> None:
        """Take nothing more; the connection belongs to the world."""
        self._is_closed = True
