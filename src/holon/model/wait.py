"""Waits: rows with identity.

Owns:  the one form in which anything waits, whoever asked for it.
Rule 1: a wait names its owner, what it waits for, the source that will end it, and a deadline.
Rule 2: active → triggered → resolved; active may also be cancelled or expire. A triggered wait is a
        promise already kept: replacing it must not drop what triggered it.
Rule 3: the commit that triggers a wait also queues the message that says so.
"""

from enum import StrEnum

from holon.model.ids import AgentId, MessageId, WaitId, WorkItemId
from holon.model.instant import Instant
from holon.model.record import Record


class WaitKind(StrEnum):
    """What will end the wait."""

    TASK = "task"
    EXTERNAL = "external"
    OPERATOR = "operator"
    TIMER = "timer"
    SYSTEM = "system"
    RECHECK = "recheck"  # a blocked item's reminder; it does not unblock anything
    REST = "rest"  # Sleep with a duration; anything may wake the agent earlier


class WaitState(StrEnum):
    """Where a wait stands."""

    ACTIVE = "active"
    TRIGGERED = "triggered"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_open(self) -> bool:
        """Whether the wait still stands between the agent and something."""
        return self in (WaitState.ACTIVE, WaitState.TRIGGERED)


class WaitRecord(Record, frozen=True, kw_only=True):
    """One wait. `source_id` is a task, timer or trigger id; the operator needs none."""

    id: WaitId
    agent_id: AgentId
    kind: WaitKind
    waiting_for: str
    created_at: Instant
    deadline_at: Instant | None
    state: WaitState = WaitState.ACTIVE
    work_item_id: WorkItemId | None = None
    source_id: str | None = None
    triggered_by: MessageId | None = None
    ended_at: Instant | None = None
