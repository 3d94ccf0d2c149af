"""What must still hold when a commit is applied, and what came of applying it.

Owns:  expectations (compare-and-set) and commit outcomes.
Rule 1: an expectation names one row and what the decision saw in it. If the row has moved on, the
        whole commit is refused and the caller decides again from fresh rows.
"""

from typing import TypeAlias

from holon.model.agent_status import AgentStatus
from holon.model.ids import AgentId, MessageId, TaskId, TimerId, WaitId, WorkItemId
from holon.model.instant import Instant
from holon.model.message import MessageState
from holon.model.record import Record
from holon.model.wait import WaitState


class AgentGeneration(Record, tag=True, frozen=True, kw_only=True):
    """The lane still holds the agent: the fence."""

    agent_id: AgentId
    generation: int


class AgentAdmits(Record, tag=True, frozen=True, kw_only=True):
    """The agent exists, is not archived and is not stopped."""

    agent_id: AgentId


class AgentInStatus(Record, tag=True, frozen=True, kw_only=True):
    """The agent is in one of these postures."""

    agent_id: AgentId
    statuses: tuple[AgentStatus, ...]


class AgentAbsent(Record, tag=True, frozen=True, kw_only=True):
    """No agent has this id yet."""

    agent_id: AgentId


class MessageInState(Record, tag=True, frozen=True, kw_only=True):
    """The message stands where the decision saw it."""

    message_id: MessageId
    state: MessageState


class TimerAtSlot(Record, tag=True, frozen=True, kw_only=True):
    """The timer is active and this slot is its next."""

    timer_id: TimerId
    slot: Instant


class WaitInState(Record, tag=True, frozen=True, kw_only=True):
    """The wait stands where the decision saw it."""

    wait_id: WaitId
    state: WaitState


class WorkItemAtRevision(Record, tag=True, frozen=True, kw_only=True):
    """Nobody has written the item since."""

    work_item_id: WorkItemId
    revision: int


class WorkItemWaitsForOnly(Record, tag=True, frozen=True, kw_only=True):
    """The item has exactly this many open waits: nobody has opened one since."""

    work_item_id: WorkItemId
    wait_count: int


class TaskNotTerminal(Record, tag=True, frozen=True, kw_only=True):
    """The task has not ended: the first terminal status wins."""

    task_id: TaskId


class WakeHintAtRevision(Record, tag=True, frozen=True, kw_only=True):
    """No newer signal of this source has come in."""

    agent_id: AgentId
    source_key: str
    revision: int


Expect: TypeAlias = (
    AgentGeneration
    | AgentAdmits
    | AgentInStatus
    | AgentAbsent
    | MessageInState
    | TimerAtSlot
    | WaitInState
    | WorkItemAtRevision
    | WorkItemWaitsForOnly
    | TaskNotTerminal
    | WakeHintAtRevision
)


class Applied(Record, tag=True, frozen=True, kw_only=True):
    """The commit is durable. `replayed` means it already was."""

    replayed: bool = False


class ExpectationFailed(Record, tag=True, frozen=True, kw_only=True):
    """A row had moved on; nothing was changed. `found` says what is there now."""

    expect: Expect
    found: str


class KeyAlreadyUsed(Record, tag=True, frozen=True, kw_only=True):
    """The idempotency key belongs to an earlier message; nothing was changed."""

    message_id: MessageId
    same_body: bool


class ConstraintRefused(Record, tag=True, frozen=True, kw_only=True):
    """An invariant of the schema forbids the result; nothing was changed."""

    constraint: str


CommitOutcome: TypeAlias = Applied | ExpectationFailed | KeyAlreadyUsed | ConstraintRefused
