"""The append-only audit events, one class each.

Owns:  the envelope of an event, and the event classes that belong to no other room of the model.
       `kind` is the stable name on the wire.
Rule 1: events point to rows; they never copy bodies.
Rule 2: an event that moves an object names the object and its new state, so that folding the log
        gives the rows back (invariant I6).
"""

from typing import TypeAlias

import msgspec

from holon.model.agents import AgentEvent, AgentStatus
from holon.model.budgets import BudgetFreed, BudgetUsedUp, MessageHeld, SelfStartsEnded
from holon.model.events.briefs import BriefKind, FailureArtifact, OperatorVisibility
from holon.model.guidance import InstructionSourceChanged, SkillEvent
from holon.model.memory.records import MemoryEvent
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    Origin,
    Priority,
    TrustLevel,
)
from holon.model.record import Record
from holon.model.tasks import TaskKind, TaskStatus
from holon.model.turns.compaction import ContextEvent
from holon.model.turns.tools import ToolError
from holon.model.turns.turn import (
    ClosureOutcome,
    Continuation,
    SafePoint,
    StopReason,
    TerminalKind,
    WaitingReason,
)
from holon.model.values import AgentId, BriefId, Instant, MessageId, TaskId, TurnId, WorkItemId
from holon.model.wake import (
    CallbackDelivered,
    CallbackRefused,
    ExternalTriggerCreated,
    ExternalTriggerRevoked,
    ExternalTriggerRotated,
    SystemTickEmitted,
    TimerCancelled,
    TimerCreated,
    TimerFired,
    TimerRescheduled,
    WaitMoved,
    WaitOpened,
    WakeHintIgnored,
    WakeHintParked,
    WakeHintTriggered,
)
from holon.model.work import (
    CompletionReportMissing,
    CompletionReportPromoted,
    WorkItemFocusReleased,
    WorkItemPicked,
    WorkItemWritten,
    WorkReminderInjected,
    WorkReminderSkipped,
)
from holon.model.workspaces import WorkspaceEvent


class AgentCreated(Record, tag_field="kind", tag="agent_created", frozen=True, kw_only=True):
    """An agent came into being."""

    status: AgentStatus


class AgentStateChanged(
    Record, tag_field="kind", tag="agent_state_changed", frozen=True, kw_only=True
):
    """An agent's posture moved; `generation` is present when the lane was fenced with it."""

    status: AgentStatus
    reason: str
    generation: int | None = None


class MessageAdmitted(Record, tag_field="kind", tag="message_admitted", frozen=True, kw_only=True):
    """A message entered the queue."""

    message_id: MessageId
    message_kind: MessageKind
    origin: Origin
    trust: TrustLevel
    authority_class: AuthorityClass
    priority: Priority
    delivery_surface: DeliverySurface
    admission_context: AdmissionContext
    task_id: TaskId | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class MessageProcessingStarted(
    Record, tag_field="kind", tag="message_processing_started", frozen=True, kw_only=True
):
    """A lane took the message. This is what woke the agent."""

    message_id: MessageId
    generation: int


class MessageDeferred(Record, tag_field="kind", tag="message_deferred", frozen=True, kw_only=True):
    """The message went back to the queue and waits there for its moment."""

    message_id: MessageId
    turn_id: TurnId
    until: Instant


class MessageProcessed(
    Record, tag_field="kind", tag="message_processed", frozen=True, kw_only=True
):
    """The message ended as it should."""

    message_id: MessageId
    reason: str


class MessageAborted(
    Record, tag_field="kind", tag="message_processing_aborted", frozen=True, kw_only=True
):
    """The message's turn was ended from outside or could not continue."""

    message_id: MessageId
    reason: str


class MessageDropped(Record, tag_field="kind", tag="message_dropped", frozen=True, kw_only=True):
    """The message was voided before it ran."""

    message_id: MessageId
    reason: str


class InterjectionAdmitted(
    Record, tag_field="kind", tag="operator_interjection_admitted", frozen=True, kw_only=True
):
    """The message entered a running turn."""

    message_id: MessageId
    turn_id: TurnId
    point: SafePoint


class ContinuationResolved(
    Record, tag_field="kind", tag="continuation_resolved", frozen=True, kw_only=True
):
    """What a trigger amounted to, and why."""

    message_id: MessageId
    continuation: Continuation


class TurnStarted(Record, tag_field="kind", tag="turn_started", frozen=True, kw_only=True):
    """A turn opened."""

    turn_id: TurnId
    turn_index: int
    message_id: MessageId
    work_item_id: WorkItemId | None = None


class TurnResumed(Record, tag_field="kind", tag="recovery_turn_started", frozen=True, kw_only=True):
    """An open turn continues after a restart."""

    turn_id: TurnId
    resume_count: int


class TurnContextBuilt(
    Record, tag_field="kind", tag="turn_context_built", frozen=True, kw_only=True
):
    """The prompt of a turn was assembled; again when a restart resumes the turn."""

    turn_id: TurnId
    context_build_ms: int


class AssistantRoundRecorded(
    Record, tag_field="kind", tag="assistant_round_recorded", frozen=True, kw_only=True
):
    """The model answered."""

    turn_id: TurnId
    round: int
    stop_reason: StopReason
    tool_call_count: int
    usage: TokenUsage
    preview: str
    tool_names: tuple[str, ...] = ()  # what it called, each once, a few


class ProviderRoundCompleted(
    Record, tag_field="kind", tag="provider_round_completed", frozen=True, kw_only=True
):
    """The time and tokens of a round, and every attempt it took. No text of it."""

    turn_id: TurnId
    round: int
    token_usage: TokenUsage
    context_build_ms: int
    provider_round_ms: int
    provider_started_at: Instant
    provider_completed_at: Instant
    timeline: AttemptTimeline | None = None


class MaxOutputRecovery(
    Record, tag_field="kind", tag="max_output_tokens_recovery", frozen=True, kw_only=True
):
    """A cut answer is being continued."""

    turn_id: TurnId


class ToolStarted(Record, tag_field="kind", tag="tool_started", frozen=True, kw_only=True):
    """A tool is about to run."""

    effect_id: str
    turn_id: TurnId
    tool_name: str


class ToolExecuted(Record, tag_field="kind", tag="tool_executed", frozen=True, kw_only=True):
    """A tool did what was asked."""

    effect_id: str
    turn_id: TurnId
    tool_name: str
    duration_ms: int


class ToolExecutionFailed(
    Record, tag_field="kind", tag="tool_execution_failed", frozen=True, kw_only=True
):
    """A tool did not; an interrupted one may or may not have had its effect."""

    effect_id: str
    turn_id: TurnId
    tool_name: str
    error_kind: str
    duration_ms: int | None = None  # of one that ran
    interrupted: bool = msgspec.field(default_factory=bool)
    tool_error: ToolError | None = None


class TurnEnded(Record, tag_field="kind", tag="turn_terminal", frozen=True, kw_only=True):
    """A turn settled."""

    turn_id: TurnId
    turn_index: int
    terminal: TerminalKind
    duration_ms: int
    usage: TokenUsage
    reason: str | None = None


class RuntimeErrorRecorded(
    Record, tag_field="kind", tag="runtime_error", frozen=True, kw_only=True
):
    """A turn failed, with everything needed to see why."""

    failure: FailureArtifact
    turn_id: TurnId | None = None
    timeline: AttemptTimeline | None = None
    token_usage: TokenUsage | None = None


class ProviderDeferred(
    Record, tag_field="kind", tag="provider_deferred", frozen=True, kw_only=True
):
    """No provider will answer before a moment it named; the turn was put off, not failed."""

    failure: FailureArtifact
    turn_id: TurnId
    until: Instant
    timeline: AttemptTimeline | None = None
    token_usage: TokenUsage | None = None


class ClosureDecided(Record, tag_field="kind", tag="closure_decided", frozen=True, kw_only=True):
    """How the pass ended."""

    outcome: ClosureOutcome
    waiting_reason: WaitingReason | None = None
    work_item_id: WorkItemId | None = None


class BriefCreated(Record, tag_field="kind", tag="brief_created", frozen=True, kw_only=True):
    """The operator has something to read."""

    brief_id: BriefId
    brief_kind: BriefKind
    work_item_id: WorkItemId | None = None
    related_message_id: MessageId | None = None
    turn_id: TurnId | None = None
    visibility: OperatorVisibility | None = None  # absent in events of older versions


class TaskCreated(Record, tag_field="kind", tag="task_created", frozen=True, kw_only=True):
    """A background task exists."""

    task_id: TaskId
    task_kind: TaskKind
    status: TaskStatus


class TaskStatusUpdated(
    Record, tag_field="kind", tag="task_status_updated", frozen=True, kw_only=True
):
    """A background task moved on."""

    task_id: TaskId
    status: TaskStatus


class ControlApplied(Record, tag_field="kind", tag="control_applied", frozen=True, kw_only=True):
    """An operator's control request took effect."""

    action: str
    request_id: str


Event: TypeAlias = (
    AgentCreated
    | AgentStateChanged
    | AgentEvent
    | MessageAdmitted
    | MessageProcessingStarted
    | MessageDeferred
    | MessageProcessed
    | MessageAborted
    | MessageDropped
    | InterjectionAdmitted
    | ContinuationResolved
    | TurnStarted
    | TurnResumed
    | TurnContextBuilt
    | AssistantRoundRecorded
    | ProviderRoundCompleted
    | MaxOutputRecovery
    | ToolStarted
    | ToolExecuted
    | ToolExecutionFailed
    | TurnEnded
    | RuntimeErrorRecorded
    | ProviderDeferred
    | ClosureDecided
    | BriefCreated
    | WorkItemWritten
    | WorkItemPicked
    | WorkItemFocusReleased
    | CompletionReportPromoted
    | CompletionReportMissing
    | WorkReminderInjected
    | WorkReminderSkipped
    | TaskCreated
    | TaskStatusUpdated
    | TimerCreated
    | TimerFired
    | TimerRescheduled
    | TimerCancelled
    | WakeHintParked
    | WakeHintTriggered
    | WakeHintIgnored
    | ExternalTriggerCreated
    | ExternalTriggerRotated
    | ExternalTriggerRevoked
    | CallbackDelivered
    | CallbackRefused
    | WaitOpened
    | WaitMoved
    | SystemTickEmitted
    | MessageHeld
    | SelfStartsEnded
    | BudgetUsedUp
    | BudgetFreed
    | WorkspaceEvent
    | ContextEvent
    | SkillEvent
    | MemoryEvent
    | InstructionSourceChanged
    | ControlApplied
)


class AuditEvent(Record, frozen=True, kw_only=True):
    """One event of one agent. `event_seq` is gapless per agent; `log_seq` orders all agents.

    `turn_id` is the turn whose commit wrote an event that names no turn itself.
    """

    log_seq: int
    agent_id: AgentId
    event_seq: int
    created_at: Instant
    event: Event
    turn_id: TurnId | None = None
