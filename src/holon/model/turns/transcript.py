"""The transcript: the durable inputs of a turn, in order.

Owns:  transcript entries. Folding them rebuilds the turn after a crash.
Rule 1: entries are appended, never changed; `position` is gapless within a turn.
Rule 2: tool results are not entries: each is stored once, with its call, and `TurnLog` joins them.
"""

from typing import TypeAlias

from holon.model.events.briefs import FailureArtifact
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.queue import MessageEnvelope
from holon.model.record import Record
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.turn import (
    ModelAnswered,
    OperatorInterjected,
    RoundTiming,
    ToolReceipt,
    TurnRecord,
)
from holon.model.values import AgentId, Instant, MessageId, TurnId, WorkItemId


class IncomingMessage(Record, tag_field="kind", tag="incoming_message", frozen=True, kw_only=True):
    """The message the turn answers, with earlier messages the model has not seen yet."""

    message: MessageEnvelope
    unseen: tuple[MessageEnvelope, ...] = ()


class AssistantRound(Record, tag_field="kind", tag="assistant_round", frozen=True, kw_only=True):
    """One model round."""

    round: int
    spoke: ModelAnswered
    timing: RoundTiming | None = None


class RuntimeFailure(Record, tag_field="kind", tag="runtime_failure", frozen=True, kw_only=True):
    """Why the turn failed, or was deferred until `retry_at`, as text and as structure."""

    failure: FailureArtifact
    retry_at: Instant | None = None
    timeline: AttemptTimeline | None = None
    token_usage: TokenUsage | None = None


class ContinuationPrompt(
    Record, tag_field="kind", tag="continuation_prompt", frozen=True, kw_only=True
):
    """A runtime nudge to continue after a cut answer, or after a checkpoint."""

    text: str
    after_checkpoint: bool = False


class TurnCompaction(Record, tag_field="kind", tag="turn_compaction", frozen=True, kw_only=True):
    """From here on the rounds up to `through_round`, and all earlier turns, are shown as recaps.

    The lines of both recaps are kept as they were made, so that a resumed turn shows
    the very same bytes. `request` asks the model for a checkpoint; `delta` asks only for what
    is new since the one before.
    """

    through_round: int
    generation: int
    history: tuple[str, ...] = ()
    recap: tuple[str, ...] = ()
    request: str | None = None
    delta: bool = False


class WorkReminder(Record, tag_field="kind", tag="work_reminder", frozen=True, kw_only=True):
    """The runtime reminded the model of the item it works on."""

    work_item_id: WorkItemId
    after_round: int
    text: str


class Interjection(Record, tag_field="kind", tag="interjection", frozen=True, kw_only=True):
    """An operator message that entered the running turn."""

    message_id: MessageId
    interjected: OperatorInterjected


TranscriptData: TypeAlias = (
    IncomingMessage
    | AssistantRound
    | RuntimeFailure
    | ContinuationPrompt
    | WorkReminder
    | Interjection
    | TurnCompaction
)


class TranscriptEntry(Record, frozen=True, kw_only=True):
    """One entry of a turn's transcript."""

    agent_id: AgentId
    turn_id: TurnId
    position: int
    created_at: Instant
    data: TranscriptData


class RecordedCall(Record, frozen=True, kw_only=True):
    """A tool call with its receipt, once it has one."""

    call: ToolCallRecord
    receipt: ToolReceipt | None = None


class TurnLog(Record, frozen=True, kw_only=True):
    """Everything durable about one turn: enough to resume it after a crash."""

    turn: TurnRecord
    entries: tuple[TranscriptEntry, ...] = ()
    calls: tuple[RecordedCall, ...] = ()
