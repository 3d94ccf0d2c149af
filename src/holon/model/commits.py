"""Durable change as one value: the commit, its expectations and the closed union of changes.

Owns:  expectations (compare-and-set), changes, commit outcomes, and the audited form of a commit:
       each change with the events it leaves in the audit log and the marks it leaves for memory
       search.
Rule 1: an expectation names one row and what the decision saw in it. If the row has moved on, the
        whole commit is refused and the caller decides again from fresh rows.
Rule 2: a commit is atomic, and applying the same commit_id twice is the same as applying it once.
Rule 3: `expects` are checked in the same transaction as the changes are written.
Rule 4: a commit id names what happens once: `admit:<message>`, `claim:<message>:<generation>`,
        `round:<turn>:<n>`, `remind:<turn>:<n>`, `compact:<turn>:<n>`, `tool:<effect>:done`,
        `settle:<message>`, `fire:<timer>:<slot>:<count>`, `task:<task>:<status>`, `tick:<message>`,
        `wait:<wait>:<state>`, `control:<request>`, `archive:<agent>`, `trigger:<trigger>:<epoch>`,
        `deliver:<trigger>:<key>`.
Rule 5: events and marks are computed before a commit reaches a store (decide/events/audit). A store
        writes rows, compares expectations, allocates sequence numbers, and decides nothing.
Rule 6: a commit stays in this process; it is never serialized and has no wire form.
"""

from typing import TypeAlias

import msgspec

from holon.model.agents import AgentIdentity, AgentStatus
from holon.model.budgets import HoldMessage, PauseTurns, ReviewHolds, UnpauseTurns, UpdateTurnRate
from holon.model.events.briefs import BriefRecord, FailureArtifact, OperatorVisibility
from holon.model.events.event import Event
from holon.model.guidance import NoteInstructionChange, SkillChange
from holon.model.memory.index import MemoryMark
from holon.model.memory.records import MemoryChange
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageEnvelope, MessageState
from holon.model.record import Record
from holon.model.tasks import TaskRecord, TaskStatus
from holon.model.turns.compaction import RememberContext
from holon.model.turns.tools import ToolCallRecord, ToolCallState
from holon.model.turns.transcript import TranscriptEntry
from holon.model.turns.turn import Closure, SafePoint, ToolReceipt, TurnRecord, TurnTerminal
from holon.model.values import (
    AgentId,
    Instant,
    MessageId,
    TaskId,
    TimerId,
    TriggerId,
    TurnId,
    WaitId,
    WorkItemId,
)
from holon.model.wake import (
    ExternalTrigger,
    TimerRecord,
    TriggerStatus,
    WaitRecord,
    WaitState,
    WakeDisposition,
    WakeHint,
)
from holon.model.work import ActivationMemory, DeliverySummary, WorkItemRecord
from holon.model.workspaces import WorkspaceChange


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
    """The item was not written since."""

    work_item_id: WorkItemId
    revision: int


class WorkItemWaitsForOnly(Record, tag=True, frozen=True, kw_only=True):
    """The item has exactly this many open waits: none was opened since."""

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
    """A row had moved on; nothing was changed. `found` describes the row's present state."""

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


class CreateAgent(Record, tag=True, frozen=True, kw_only=True):
    """Bring an agent into being."""

    identity: AgentIdentity
    status: AgentStatus


class SetAgentStatus(Record, tag=True, frozen=True, kw_only=True):
    """Move an agent's posture; `new_generation` fences the lane that held it."""

    agent_id: AgentId
    status: AgentStatus
    reason: str
    sleeping_until: Instant | None = None
    new_generation: int | None = None
    wake_reason: str | None = None


class FocusWorkItem(Record, tag=True, frozen=True, kw_only=True):
    """Point the agent's focus at an item, or at nothing."""

    agent_id: AgentId
    work_item_id: WorkItemId | None


class SetModelOverride(Record, tag=True, frozen=True, kw_only=True):
    """Set or clear an agent's model override."""

    agent_id: AgentId
    model: str | None


class ArchiveAgent(Record, tag=True, frozen=True, kw_only=True):
    """Keep an agent for its history only. Refused while any row of it is unfinished."""

    agent_id: AgentId
    reason: str


class QueueMessage(Record, tag=True, frozen=True, kw_only=True):
    """Put an admitted message into its queue. Keys make repeats harmless, by unique index."""

    message: MessageEnvelope
    idempotency_key: str | None = None
    body_digest: str | None = None
    tick_key: str | None = None


class ClaimMessage(Record, tag=True, frozen=True, kw_only=True):
    """Take a queued message for the lane of this generation."""

    agent_id: AgentId
    message_id: MessageId
    generation: int
    passed_over: int


class DeferMessage(Record, tag=True, frozen=True, kw_only=True):
    """Return a claimed message to the queue, to wait there for a moment."""

    agent_id: AgentId
    message_id: MessageId
    turn_id: TurnId
    until: Instant


class ReleaseDeferred(Record, tag=True, frozen=True, kw_only=True):
    """Let every message the agent has put off be claimed now."""

    agent_id: AgentId


class SettleMessage(Record, tag=True, frozen=True, kw_only=True):
    """End a message. A processed one the model did not see is marked to be shown later.

    One that was taken without a claim records how often the oldest message has been passed over by
    then.
    """

    agent_id: AgentId
    message_id: MessageId
    state: MessageState
    reason: str
    unseen: bool = False
    turn_id: TurnId | None = None
    point: SafePoint | None = None
    passed_over: int | None = None


class MarkSeen(Record, tag=True, frozen=True, kw_only=True):
    """These messages no longer wait to be shown to the model: they are now, or were dropped."""

    agent_id: AgentId
    message_ids: tuple[MessageId, ...]


class OpenTurn(Record, tag=True, frozen=True, kw_only=True):
    """Start a turn for a claimed message."""

    turn: TurnRecord


class ResumeTurn(Record, tag=True, frozen=True, kw_only=True):
    """Resume an open turn under a new generation."""

    agent_id: AgentId
    turn_id: TurnId
    message_id: MessageId
    generation: int
    resume_count: int
    crash_count: int = 0
    crash_progress: int = 0


class AppendTranscript(Record, tag=True, frozen=True, kw_only=True):
    """Add one entry to a turn's transcript."""

    entry: TranscriptEntry


class StartToolCall(Record, tag=True, frozen=True, kw_only=True):
    """Record that a tool call is about to run, before it runs."""

    call: ToolCallRecord


class FinishToolCall(Record, tag=True, frozen=True, kw_only=True):
    """Give a started call its one result."""

    agent_id: AgentId
    turn_id: TurnId
    effect_id: str
    tool_name: str
    state: ToolCallState
    receipt: ToolReceipt
    duration_ms: int | None = None  # nothing when the call did not run, or not to its end


class SettleTurn(Record, tag=True, frozen=True, kw_only=True):
    """End a turn."""

    agent_id: AgentId
    turn_id: TurnId
    terminal: TurnTerminal
    usage: TokenUsage
    round_count: int
    cost_micros: int = 0  # as far as prices are known


class RecordClosure(Record, tag=True, frozen=True, kw_only=True):
    """Record how the pass ended."""

    agent_id: AgentId
    closure: Closure


class AppendBrief(Record, tag=True, frozen=True, kw_only=True):
    """Give the operator a brief, and how much it concerns them."""

    brief: BriefRecord
    visibility: OperatorVisibility = OperatorVisibility.TURN_RESULT


class PutWorkItem(Record, tag=True, frozen=True, kw_only=True):
    """Write a work item; its revision must follow the stored one."""

    item: WorkItemRecord


class AppendDeliverySummary(Record, tag=True, frozen=True, kw_only=True):
    """Keep the report of a completed item."""

    summary: DeliverySummary


class RememberActivation(Record, tag=True, frozen=True, kw_only=True):
    """Count an offer of work that may or may not lead anywhere."""

    memory: ActivationMemory


class CreateTask(Record, tag=True, frozen=True, kw_only=True):
    """Record a background task."""

    task: TaskRecord


class AdvanceTask(Record, tag=True, frozen=True, kw_only=True):
    """Move a task forward."""

    agent_id: AgentId
    task_id: TaskId
    status: TaskStatus
    result_summary: str | None = None
    exit_status: int | None = None
    failure: FailureArtifact | None = None


class CreateTimer(Record, tag=True, frozen=True, kw_only=True):
    """Arm a timer."""

    timer: TimerRecord


class FireTimer(Record, tag=True, frozen=True, kw_only=True):
    """A slot came due: move to the next slot of the grid, or complete when none is left."""

    agent_id: AgentId
    timer_id: TimerId
    slot: Instant
    next_fire_at: Instant | None
    late_by_ms: int = 0


class RescheduleTimer(Record, tag=True, frozen=True, kw_only=True):
    """Have a timer wait for another moment, because the wall clock was set."""

    agent_id: AgentId
    timer_id: TimerId
    slot: Instant
    next_fire_at: Instant


class CancelTimer(Record, tag=True, frozen=True, kw_only=True):
    """Stop a timer for good."""

    agent_id: AgentId
    timer_id: TimerId


class ParkWakeHint(Record, tag=True, frozen=True, kw_only=True):
    """Keep a wake hint; a repeat of the same source replaces its body and counts up."""

    hint: WakeHint


class TakeWakeHints(Record, tag=True, frozen=True, kw_only=True):
    """Deliver parked hints with a tick."""

    agent_id: AgentId
    source_keys: tuple[str, ...]


class CreateTrigger(Record, tag=True, frozen=True, kw_only=True):
    """Give an agent its external trigger. An agent that has one is refused a second."""

    trigger: ExternalTrigger


class MoveTrigger(Record, tag=True, frozen=True, kw_only=True):
    """Rotate a trigger (the next epoch, active) or revoke it, unless it was moved meanwhile."""

    agent_id: AgentId
    external_trigger_id: TriggerId
    from_epoch: int
    epoch: int
    status: TriggerStatus


class DeliverTrigger(Record, tag=True, frozen=True, kw_only=True):
    """Count a delivery and keep its hint, folded into the one its source has parked.

    Deliveries commute, so no two of them need to wait for each other. `delivery_key` is
    remembered with a digest of the content, and a second delivery under the same key is refused.
    """

    hint: WakeHint
    external_trigger_id: TriggerId
    epoch: int
    disposition: WakeDisposition
    delivery_key: str | None = None
    content_digest: str | None = None


class OpenWait(Record, tag=True, frozen=True, kw_only=True):
    """Start waiting."""

    wait: WaitRecord


class MoveWait(Record, tag=True, frozen=True, kw_only=True):
    """Trigger, resolve, cancel or expire a wait."""

    agent_id: AgentId
    wait_id: WaitId
    state: WaitState
    by: str
    triggered_by: MessageId | None = None


class RecordEvent(Record, tag=True, frozen=True, kw_only=True):
    """Append an event to the audit log that moves no row."""

    agent_id: AgentId
    event: Event


Change: TypeAlias = (
    CreateAgent
    | SetAgentStatus
    | FocusWorkItem
    | SetModelOverride
    | ArchiveAgent
    | QueueMessage
    | ClaimMessage
    | DeferMessage
    | ReleaseDeferred
    | SettleMessage
    | MarkSeen
    | OpenTurn
    | ResumeTurn
    | AppendTranscript
    | StartToolCall
    | FinishToolCall
    | SettleTurn
    | RecordClosure
    | AppendBrief
    | PutWorkItem
    | AppendDeliverySummary
    | RememberActivation
    | CreateTask
    | AdvanceTask
    | CreateTimer
    | FireTimer
    | RescheduleTimer
    | CancelTimer
    | ParkWakeHint
    | TakeWakeHints
    | CreateTrigger
    | MoveTrigger
    | DeliverTrigger
    | OpenWait
    | MoveWait
    | UpdateTurnRate
    | HoldMessage
    | PauseTurns
    | UnpauseTurns
    | ReviewHolds
    | WorkspaceChange
    | SkillChange
    | RememberContext
    | NoteInstructionChange
    | MemoryChange
    | RecordEvent
)


class Commit(Record, frozen=True, kw_only=True):
    """What becomes true together."""

    commit_id: str
    at: Instant
    changes: tuple[Change, ...]
    expects: tuple[Expect, ...] = ()


class LoggedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, the log it goes to, and the turn it belongs to if it names none itself."""

    agent_id: AgentId
    event: Event
    turn_id: TurnId | None = None


class AuditedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change with the events and marks it leaves."""

    change: Change
    events: tuple[LoggedEvent, ...]
    marks: tuple[MemoryMark, ...]


class AuditedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes true together, with everything that goes with it."""

    commit: Commit
    changes: tuple[AuditedChange, ...]  # those of the commit, in their order

    @property
    def commit_id(self) -> str:
        """The id under which it is applied once."""
        return self.commit.commit_id

    @property
    def at(self) -> Instant:
        """The time it was decided."""
        return self.commit.at

    @property
    def expects(self) -> tuple[Expect, ...]:
        """What must still hold when it is applied."""
        return self.commit.expects
