"""A commit together with what it means: the form in which a store takes it.

Owns:  each change of a commit with the events it leaves in the audit log and the marks it leaves
       for memory search.
Rule 1: all of it is decided before it reaches a store (decide/audit). A store writes rows, compares
        what is expected, gives out sequence numbers, and decides nothing.
Rule 2: it is handed over in this process and never written down as such; it has no form on a wire.
"""

import msgspec

from holon.model.commit import Change, Commit
from holon.model.event import Event
from holon.model.expectation import Expect
from holon.model.ids import AgentId, TurnId
from holon.model.instant import Instant
from holon.model.memory_mark import MemoryMark


class LoggedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, the log it goes to, and the turn it belongs to if it names none itself."""

    agent_id: AgentId
    event: Event
    turn_id: TurnId | None = None


class AuditedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change and what it leaves besides its rows."""

    change: Change
    events: tuple[LoggedEvent, ...]
    marks: tuple[MemoryMark, ...]


class AuditedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes true together, with everything that goes with it."""

    commit: Commit
    changes: tuple[AuditedChange, ...]  # those of the commit, in their order

    @property
    def commit_id(self) -> str:
        """The name under which it is applied once."""
        return self.commit.commit_id

    @property
    def at(self) -> Instant:
        """The moment it is of."""
        return self.commit.at

    @property
    def expects(self) -> tuple[Expect, ...]:
        """What must still hold when it is applied."""
        return self.commit.expects
