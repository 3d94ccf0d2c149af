"""A turn: what may happen in it, what it may ask for, and how it ends.

Owns:  turn inputs and steps (the alphabet of decide/turn_step), the turn record and its terminal.
Rule 1: inputs are durable: replaying a turn's recorded inputs rebuilds its state exactly.
Rule 2: a turn ends by facts (the loop drained, failed or was aborted), never by reading its text.
"""

from enum import StrEnum
from typing import Final, TypeAlias

from holon.model.brief import FailureArtifact
from holon.model.conversation import AssistantBlock, ToolUseBlock
from holon.model.ids import AgentId, CallId, MessageId, TurnId, WorkItemId
from holon.model.instant import Instant
from holon.model.provider_attempt import AttemptTimeline, TokenUsage
from holon.model.record import Record
from holon.model.tool import ToolError


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


class ModelSpoke(Record, tag_field="kind", tag="model_spoke", frozen=True, kw_only=True):
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


TurnInput: TypeAlias = ModelSpoke | ModelFailed | ToolsReturned | OperatorInterjected


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
    crash_progress: int = 0  # how far it had come by then (decide/recovery_plan)
    terminal: TurnTerminal | None = None
