"""Turns: inputs, steps, closure and the reasons why a turn starts or ends.

Owns:  turn inputs and steps (the alphabet of decide/turns/step), the turn record and its terminal;
       the answer and progress forms every wire yields; closures and their reasons; trigger kinds,
       continuation classes and the resolution record.
Rule 1: inputs are durable: replaying a turn's recorded inputs rebuilds its state exactly.
Rule 2: a turn ends by facts (the loop drained, failed or was aborted), never by reading its text.
Rule 3: progress is a preview for observers. It is never stored and never acted on; only the
        finished answer counts.
Rule 4: the tool uses of an answer have distinct call ids: results are matched by them.
Rule 5: a waiting reason exists only on Waiting, a work signal only on Continuable; the types allow
        nothing else.
Rule 6: closure is the source of truth about outcome; agent status only says what the loop is doing.
Rule 7: a liveness-only trigger never reaches the model; every other class does. `Reentry` and
        `LivenessOnly` are separate shapes, so "liveness only but visible" cannot be written.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from holon.model.events.briefs import FailureArtifact
from holon.model.providers.attempts import AttemptTimeline, TokenUsage, TransportDiagnostics
from holon.model.record import Record, no_entries
from holon.model.turns.conversation import AssistantBlock, ToolUseBlock
from holon.model.turns.tools import ToolError
from holon.model.values import AgentId, CallId, Instant, MessageId, TurnId, WorkItemId


class StopReason(StrEnum):
    """Why the model stopped speaking."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"


class SafePoint(StrEnum):
    """The four places where an operator may be let into a running turn."""

    BEFORE_PROVIDER_CONTINUATION = "before_provider_continuation"
    AFTER_PROVIDER_ROUND = "after_provider_round"
    BEFORE_TOOL_EXECUTION = "before_tool_execution"
    AFTER_TOOL_RESULTS = "after_tool_results"


class RoundTiming(Record, frozen=True, kw_only=True):
    """Where the time of one round went."""

    context_build_ms: int
    provider_round_ms: int
    started_at: Instant
    completed_at: Instant


class ToolReceipt(Record, frozen=True, kw_only=True):
    """What came back from one tool call, as the model will read it."""

    call_id: CallId
    name: str
    content: str
    is_error: bool = False
    error_kind: str | None = None
    error: ToolError | None = None  # what `content` renders, within the same bounds
    ends_turn: bool = False  # the tool asked to end the turn (Sleep)
    sleep_reason: str | None = None
    completes_work_item_id: WorkItemId | None = None


class ModelAnswered(Record, tag_field="kind", tag="model_spoke", frozen=True, kw_only=True):
    """The provider answered one round. The model was not offered what was `withheld` from it."""

    blocks: tuple[AssistantBlock, ...]
    stop_reason: StopReason
    usage: TokenUsage
    timeline: AttemptTimeline | None = None
    withheld: tuple[str, ...] = ()  # names of tools


class ModelFailed(Record, tag_field="kind", tag="model_failed", frozen=True, kw_only=True):
    """Every attempt at this round failed. `retry_at` is the moment a provider named for later."""

    failure: FailureArtifact
    timeline: AttemptTimeline | None = None
    retry_at: Instant | None = None


class ToolsReturned(Record, tag_field="kind", tag="tools_returned", frozen=True, kw_only=True):
    """Every call of the round has its receipt, in call order."""

    receipts: tuple[ToolReceipt, ...]


class OperatorInterjected(
    Record, tag_field="kind", tag="operator_interjected", frozen=True, kw_only=True
):
    """An operator message entered at a safe point."""

    message_id: MessageId
    text: str
    point: SafePoint


TurnInput: TypeAlias = ModelAnswered | ModelFailed | ToolsReturned | OperatorInterjected


class CallModel(Record, tag_field="kind", tag="call_model", frozen=True, kw_only=True):
    """Ask the provider for the next round. `nudge` is a continuation prompt, when one is due."""

    nudge: str | None = None
    after_checkpoint: bool = False  # the nudge follows a checkpoint, and not a cut answer


class RunTools(Record, tag_field="kind", tag="run_tools", frozen=True, kw_only=True):
    """Run these calls in order; `refused` ones are answered without running."""

    calls: tuple[ToolUseBlock, ...]
    refused: tuple[ToolReceipt, ...] = ()


class Completion(Record, frozen=True, kw_only=True):
    """An item a round completed, and the words of that round if they are its report."""

    work_item_id: WorkItemId
    report: str | None = None
    is_alone: bool = True  # whether the round completed no other item


class Finish(Record, tag_field="kind", tag="finish", frozen=True, kw_only=True):
    """The turn is over. With `deferred_until` its failure only puts it off."""

    last_text: str = ""
    failure: FailureArtifact | None = None
    deferred_until: Instant | None = None
    sleep_reason: str | None = None
    slept: bool = False
    completions: tuple[Completion, ...] = ()
    made_progress: bool = False


TurnStep: TypeAlias = CallModel | RunTools | Finish


class TerminalKind(StrEnum):
    """How a turn ended. Every kind but `completed` and `deferred` is a failure for closure."""

    COMPLETED = "completed"
    DEFERRED = "deferred"  # no provider would answer yet; the message waits for its moment
    ABORTED = "aborted"
    BASELINE_OVER_BUDGET = "baseline_over_budget"
    DEFERRED_TO_FALLBACK = "deferred_to_fallback"
    PROVIDER_FAILED_NEEDS_RECOVERY = "provider_failed_needs_recovery"


ENDED_WELL: Final = frozenset({TerminalKind.COMPLETED, TerminalKind.DEFERRED})


class TurnTerminal(Record, frozen=True, kw_only=True):
    """The settled end of a turn."""

    turn_id: TurnId
    turn_index: int
    kind: TerminalKind
    completed_at: Instant
    duration_ms: int
    reason: str | None = None
    last_assistant_message: str | None = None


class TurnRecord(Record, frozen=True, kw_only=True):
    """One turn: the message it answers and the work it is bound to."""

    turn_id: TurnId
    agent_id: AgentId
    turn_index: int
    message_id: MessageId
    opened_at: Instant
    work_item_id: WorkItemId | None = None
    resume_count: int = 0
    crash_count: int = 0  # starts in a row that found it had the processor when the last one ended
    crash_progress: int = 0  # how far it had come by then (decide/turns/recovery)
    terminal: TurnTerminal | None = None


class ModelAnswer(Record, frozen=True, kw_only=True):
    """One round, whole."""

    blocks: tuple[AssistantBlock, ...]
    stop_reason: StopReason
    usage: TokenUsage | None = None
    diagnostics: TransportDiagnostics | None = None


class TextGrew(Record, tag_field="kind", tag="text_grew", frozen=True, kw_only=True):
    """The model's answer grew by some text."""

    text: str


class ThinkingGrew(Record, tag_field="kind", tag="thinking_grew", frozen=True, kw_only=True):
    """The model thought a little more."""

    text: str


class CallGrew(Record, tag_field="kind", tag="call_grew", frozen=True, kw_only=True):
    """The model is writing a tool call; `fragment` is a piece of its arguments."""

    call_id: str
    name: str
    fragment: str


AnswerProgress: TypeAlias = TextGrew | ThinkingGrew | CallGrew


class ClosureOutcome(StrEnum):
    """The four names an outcome has on the wire."""

    COMPLETED = "completed"
    CONTINUABLE = "continuable"
    WAITING = "waiting"
    FAILED = "failed"


class WaitingReason(StrEnum):
    """What a waiting agent waits for."""

    AWAITING_OPERATOR_INPUT = "awaiting_operator_input"
    AWAITING_EXTERNAL_CHANGE = "awaiting_external_change"
    AWAITING_TASK_RESULT = "awaiting_task_result"
    AWAITING_TIMER = "awaiting_timer"


class ReactivationMode(StrEnum):
    """How persisted work is to be taken up again."""

    CONTINUE_ACTIVE = "continue_active"
    ACTIVATE_QUEUED = "activate_queued"


class WorkSignalStatus(StrEnum):
    """Whether the signalled item is the focus or waits in the queue."""

    ACTIVE = "active"
    QUEUED = "queued"


class RuntimePosture(StrEnum):
    """Whether the agent is up or resting."""

    AWAKE = "awake"
    SLEEPING = "sleeping"


class WorkSignal(Record, frozen=True, kw_only=True):
    """Persisted work that warrants a runtime-owned follow-up."""

    work_item_id: WorkItemId
    status: WorkSignalStatus
    reactivation_mode: ReactivationMode


class Completed(Record, tag_field="outcome", tag="completed", frozen=True, kw_only=True):
    """The last turn ended and nothing asks for more."""

    runtime_posture: RuntimePosture = RuntimePosture.SLEEPING
    evidence: tuple[str, ...] = ()


class Continuable(Record, tag_field="outcome", tag="continuable", frozen=True, kw_only=True):
    """The pass settled; persisted work still warrants a follow-up without a new trigger."""

    work_signal: WorkSignal
    runtime_posture: RuntimePosture = RuntimePosture.AWAKE
    evidence: tuple[str, ...] = ()


class Waiting(Record, tag_field="outcome", tag="waiting", frozen=True, kw_only=True):
    """Something outside the agent must happen first. A system wait has no reason to show."""

    waiting_reason: WaitingReason | None = None
    runtime_posture: RuntimePosture = RuntimePosture.SLEEPING
    evidence: tuple[str, ...] = ()


class Failed(Record, tag_field="outcome", tag="failed", frozen=True, kw_only=True):
    """The last turn did not end well."""

    summary: str
    runtime_posture: RuntimePosture = RuntimePosture.SLEEPING
    evidence: tuple[str, ...] = ()


Closure: TypeAlias = Completed | Continuable | Waiting | Failed


def outcome_of(closure: Closure) -> ClosureOutcome:
    """Return the wire name of a closure."""
    match closure:
        case Completed():
            return ClosureOutcome.COMPLETED
        case Continuable():
            return ClosureOutcome.CONTINUABLE
        case Waiting():
            return ClosureOutcome.WAITING
        case Failed():
            return ClosureOutcome.FAILED


def waiting_reason_of(closure: Closure) -> WaitingReason | None:
    """Return what a closure waits for, if it waits for something nameable."""
    return closure.waiting_reason if isinstance(closure, Waiting) else None


class TriggerKind(StrEnum):
    """The normalized reason an agent is activated."""

    OPERATOR_INPUT = "operator_input"
    TASK_RESULT = "task_result"
    EXTERNAL_EVENT = "external_event"
    TIMER_FIRE = "timer_fire"
    INTERNAL_FOLLOWUP = "internal_followup"
    SYSTEM_TICK = "system_tick"


class ReentryClass(StrEnum):
    """Why a trigger may reach the model."""

    RESUME_EXPECTED_WAIT = "resume_expected_wait"
    RESUME_OVERRIDE = "resume_override"
    LOCAL_CONTINUATION = "local_continuation"


class Reentry(Record, tag_field="kind", tag="reentry", frozen=True, kw_only=True):
    """The trigger starts a model turn."""

    continuation_class: ReentryClass
    trigger_kind: TriggerKind
    prior_outcome: ClosureOutcome
    prior_waiting_reason: WaitingReason | None = None
    matched_waiting_reason: bool = msgspec.field(default_factory=bool)
    evidence: tuple[str, ...] = msgspec.field(default_factory=no_entries)


class LivenessOnly(Record, tag_field="kind", tag="liveness_only", frozen=True, kw_only=True):
    """The trigger is recorded and shown later; no model turn starts now."""

    trigger_kind: TriggerKind | None
    prior_outcome: ClosureOutcome
    prior_waiting_reason: WaitingReason | None = None
    evidence: tuple[str, ...] = msgspec.field(default_factory=no_entries)


Continuation: TypeAlias = Reentry | LivenessOnly
