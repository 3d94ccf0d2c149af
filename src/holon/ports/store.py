"""Durable state, as the runtime is allowed to see it.

Contract (kept by tests/contract/test_store.py, run against every implementation):
- `submit` keeps order: of two commits, the one submitted first is applied first;
- what comes in is an audited commit: a store writes its rows, events and marks, compares what it
  expects and gives out numbers; it decides nothing;
- a commit is atomic, and applying the same commit_id twice is the same as applying it once;
- a ticket's outcome is known only after the commit is durable; a refused commit changed nothing;
- an agent never has two claimed messages, nor two open turns;
- within a priority band, messages keep the order they were admitted in;
- `event_seq` counts 1, 2, 3 … per agent with no gap, also across restarts;
- after a commit, observers are told which agents it touched, once, on the event loop.

Errors: StoreFullError and its StoreBusyError (nothing was written; may be tried again),
StoreBrokenError (unknown; stop), StoreClosedError. `submit` raises StoreBusyError and
StoreClosedError at once; everything else comes out of the ticket.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from holon.model.commits import AuditedCommit, CommitOutcome
from holon.model.errors import StoreError
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.values import AgentId
from holon.ports.reads import StoreReads

CommitObserver: TypeAlias = Callable[[Collection[AgentId]], None]


class Ticket(Protocol):
    """A submitted commit on its way to disk."""

    async def outcome(self) -> CommitOutcome:
        """Return what came of the commit, once that is durable."""
        ...


class Store(Protocol):
    """Where everything durable lives."""

    @property
    def reads(self) -> StoreReads:
        """The queries decisions and surfaces need."""
        ...

    @property
    def problems(self) -> Sequence[StoreError]:
        """What a person should look at, though the store goes on: no room, a log too long."""
        ...

    async def look(self) -> None:
        """Look at what the store lies on; raises StoreError as a commit would."""
        ...

    def submit(self, commit: AuditedCommit) -> Ticket:
        """Hand a commit to the writer without waiting for it."""
        ...

    async def apply(self, commit: AuditedCommit) -> CommitOutcome:
        """Submit a commit and wait for its outcome."""
        ...

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every commit, with the agents it touched."""
        ...

    async def prune(self, policy: RetentionPolicy, *, now: datetime) -> PruneReport:
        """Remove one bounded batch of what the policy no longer keeps."""
        ...

    async def close(self) -> None:
        """Finish what was submitted and let go of the files."""
        ...
