"""Durable change as one value: the commit and its closed union of changes.

Owns:  everything that can change a row. `decide/audit` says which events each change leaves.
Rule 1: a commit is atomic, and applying the same commit_id twice is the same as applying it once.
Rule 2: `expects` are checked in the same transaction; one that fails refuses the whole commit.
Rule 3: commit ids name the moment: `admit:<message>`, `claim:<message>:<generation>`,
        `round:<turn>:<n>`, `remind:<turn>:<n>`, `compact:<turn>:<n>`, `tool:<effect>:done`,
        `settle:<message>`, `fire:<timer>:<slot>:<count>`, `task:<task>:<status>`, `tick:<message>`,
        `wait:<wait>:<state>`, `control:<request>`, `archive:<agent>`, `trigger:<trigger>:<epoch>`,
        `deliver:<trigger>:<key>`.
"""

from typing import TypeAlias

from holon.model.agent import AgentIdentity
from holon.model.agent_status import AgentStatus
from holon.model.brief import BriefRecord, FailureArtifact, OperatorVisibility
from holon.model.closure import Closure
from holon.model.context_change import RememberContext
from holon.model.event import Event
from holon.model.expectation import Expect
from holon.model.ids import (
    AgentId,
    MessageId,
    TaskId,
    TimerId,
    TriggerId,
    TurnId,
    WaitId,
    WorkItemId,
)
from holon.model.instant import Instant
from holon.model.instruction_change import NoteInstructionChange
from holon.model.memory_change import MemoryChange
from holon.model.message import MessageEnvelope, MessageState
from holon.model.pace_change import (
    HoldMessage,
    HoldTurns,
    ReleaseTurns,
    RememberPace,
    ReviewHolds,
)
from holon.model.provider_attempt import TokenUsage
from holon.model.record import Record
from holon.model.skill_change import SkillChange
from holon.model.task import TaskRecord, TaskStatus
from holon.model.tool import ToolCallRecord, ToolCallState
from holon.model.transcript import TranscriptEntry
from holon.model.turn import SafePoint, ToolReceipt, TurnRecord, TurnTerminal
from holon.model.wait import WaitRecord, WaitState
from holon.model.wake import ExternalTrigger, TimerRecord, TriggerStatus, WakeDisposition, WakeHint
from holon.model.work_item import ActivationMemory, DeliverySummary, WorkItemRecord
from holon.model.workspace_change import WorkspaceChange


class CreateAgent(Record, tag=True, frozen=True, kw_only=True):
    """Bring an agent into being."""

    identity: AgentIdentity
    status: AgentStatus


class SetAgentStatus(Record, tag=True, frozen=True, kw_only=True):
    """Move an agent's posture; `new_generation` fences whoever held the lane."""

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
    """Give the agent a model of its own, or the default back."""

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
    """Hand a claimed message back to the queue, to wait there for a moment."""

    agent_id: AgentId
    message_id: MessageId
    turn_id: TurnId
    until: Instant


class ReleaseDeferred(Record, tag=True, frozen=True, kw_only=True):
    """Let every message the agent has put off be claimed now."""

    agent_id: AgentId


class SettleMessage(Record, tag=True, frozen=True, kw_only=True):
    """End a message. A processed one the model did not see is marked to be shown later.

    One that was taken without a claim says how often the oldest message has been passed over by
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
    """These earlier messages wait no longer to be shown to the model: they are now, or let go."""

    agent_id: AgentId
    message_ids: tuple[MessageId, ...]


class OpenTurn(Record, tag=True, frozen=True, kw_only=True):
    """Start a turn for a claimed message."""

    turn: TurnRecord


class ResumeTurn(Record, tag=True, frozen=True, kw_only=True):
    """Go on with an open turn under a new generation."""

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
    """Say that a tool call is about to run, before it runs."""

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
    """Tell the operator something, and how much it concerns them."""

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
    """A slot came due: move to the next slot of the grid, or complete when there is none."""

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
    """Hand parked hints over to a tick."""

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
    """Say something in the audit log that moves no row."""

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
    | RememberPace
    | HoldMessage
    | HoldTurns
    | ReleaseTurns
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
