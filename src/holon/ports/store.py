"""Durable state, as the runtime is allowed to see it.

Contract (kept by tests/contract/store, run against every implementation):
- commits submitted together come out as if they had been submitted one by one, in their order;
- a commit is atomic, and applying the same commit_id twice is the same as applying it once, also
  after the store was opened again, for as long as pruning keeps the id;
- a commit of which an expectation fails, or that an invariant forbids, changes nothing, and says
  which it was and what is there; the commits beside it are not disturbed;
- every kind of change moves what its docstring says, and the reads show it;
- the events of a commit are logged as they were handed over, and no others; `event_seq` counts
  1, 2, 3 … per agent with no gap, also across restarts;
- an agent never has two claimed messages, nor two open turns; one that still has something to do is
  not archived;
- an idempotency key names one message of an agent and a surface, and a delivery key one delivery of
  a trigger; hints of one source are folded as decide/wake/hints folds them;
- after a commit, observers are told which agents it touched, once; of a refused or repeated one and
  of reading they are told nothing;
- `prune` removes the oldest first, in bounded steps that say whether there is more; it leaves what
  is unfinished, what no turn has shown yet, what a key may still be repeated for, and the newest
  event of each agent, and no gap behind the floor it reports;
- `close` finishes what was submitted. Then `submit` and `apply` raise StoreClosedError, and closing
  again does nothing. What was applied is there when the home is opened again.

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
