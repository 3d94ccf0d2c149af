"""A store that crashes the process around one chosen commit.

Owns:  the crash of a simulated process just before or just after a commit is durable.
Rule 1: the commit is chosen by its number, counted from 1 over all lives that share the plan, or by
        the prefix of its id. A plan strikes once.
Rule 2: "before" means the writer never got the commit; "after" means it is durable and not yet
        acknowledged. Either way the loop is left before anything else can happen.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from holon.model.commits import AuditedCommit, CommitOutcome
from holon.model.errors import StoreError
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.ports.reads import StoreReads
from holon.ports.store import CommitObserver, Store, Ticket
from tests.support.sim_loop import SimLoop, SimulatedCrash


class Side(StrEnum):
    """On which side of the commit the process dies."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(slots=True)
class CrashPlan:
    """Where to die. `commit_ids` are the commits seen so far, in the order of submission."""

    at: int | str
    side: Side
    has_struck: bool = False
    commit_ids: list[str] = field(default_factory=list)

    def strikes(self, commit: AuditedCommit) -> bool:
        """Count a commit; whether it is the one."""
        self.commit_ids.append(commit.commit_id)
        if self.has_struck:
            return False
        self.has_struck = (
            len(self.commit_ids) == self.at
            if isinstance(self.at, int)
            else commit.commit_id.startswith(self.at)
        )
        return self.has_struck


class CrashStore:
    """Hands everything on, until the plan strikes."""

    def __init__(self, inner: Store, plan: CrashPlan) -> None:
        self._inner = inner
        self._plan = plan

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
        """Hand a commit on, or die around it."""
        if not self._plan.strikes(commit):
            return self._inner.submit(commit)
        if self._plan.side is Side.BEFORE:
            die(f"before {commit.commit_id}")
            return _LostTicket()
        return _DeadlyTicket(self._inner.submit(commit), commit.commit_id)

    async def apply(self, commit: AuditedCommit) -> CommitOutcome:
        """Submit a commit and wait for its outcome."""
        return await self.submit(commit).outcome()

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every commit, with the agents it touched."""
        self._inner.observe(observer)

    async def prune(self, policy: RetentionPolicy, *, now: datetime) -> PruneReport:
        """Remove one bounded batch of what the policy no longer keeps."""
        return await self._inner.prune(policy, now=now)

    async def close(self) -> None:
        """Let go of the files."""
        await self._inner.close()


class _LostTicket:
    """A commit whose process is gone."""

    async def outcome(self) -> CommitOutcome:
        return await _never()


class _DeadlyTicket:
    """A commit that becomes durable, which nobody lives to hear."""

    def __init__(self, inner: Ticket, name: str) -> None:
        self._durable = asyncio.ensure_future(self._wait_and_die(inner, name))

    @staticmethod
    async def _wait_and_die(inner: Ticket, name: str) -> CommitOutcome:
        await inner.outcome()
        die(f"after {name}")
        return await _never()

    async def outcome(self) -> CommitOutcome:
        return await asyncio.shield(self._durable)


def _never() -> "asyncio.Future[CommitOutcome]":
    return asyncio.get_running_loop().create_future()


def die(why: str) -> None:
    """Leave the simulated loop before its next step; on any other loop, raise SimulatedCrash."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimLoop):
        raise SimulatedCrash(why)
    loop.crash_at_step = 0
