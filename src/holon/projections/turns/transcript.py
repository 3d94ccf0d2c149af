"""Transcript view: what happened, turn by turn, in order.

Owns:  the transcript as operators read it: incoming messages, model output, tool results, failures,
       and every provider attempt.
Rule 1: entries are in the order in which they happened; tool results follow their round, and
        messages the model had not seen come before the one it answers.
Rule 2: every text is bounded and says when it was cut; a turn with very many entries shows its
        beginning and its end, and counts what it omits.
Rule 3: thinking is not shown: it belongs to the provider that produced it.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from holon.decide.text.bounded import BoundedText, bounded
from holon.decide.wake.triggers import without_addresses
from holon.model.events.briefs import FailureArtifact
from holon.model.limits import ID_CHARS_MAX, SURFACE_ENTRIES_COUNT_MAX
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    JsonBody,
    MessageBody,
    MessageEnvelope,
    Origin,
    TrustLevel,
)
from holon.model.record import Record
from holon.model.turns.conversation import text_of, tool_uses_of
from holon.model.turns.tools import ToolCallState, ToolError
from holon.model.turns.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
    RecordedCall,
    RuntimeFailure,
    TranscriptEntry,
    TurnCompaction,
    TurnLog,
    WorkReminder,
)
from holon.model.turns.turn import RoundTiming, StopReason, ToolReceipt
from holon.model.values import AgentId, CallId, Instant, JsonValue, MessageId, TurnId, WorkItemId
from holon.projections.agents.summary import TurnEndView, turn_end_view


class ToolResultStatus(StrEnum):
    """Whether a call succeeded."""

    SUCCESS = "success"
    ERROR = "error"


class ToolErrorView(Record, frozen=True, kw_only=True):
    """Why a call failed, and what to do about it."""

    kind: str
    message: str
    retryable: bool
    recovery_hint: str | None = None
    field: str | None = None
    details: JsonValue = None


class ToolResultView(Record, frozen=True, kw_only=True):
    """One call and its result. `status` is set once the call has ended."""

    call_id: CallId
    tool_name: str
    state: ToolCallState
    input_preview: str
    started_at: Instant
    truncated: bool
    finished_at: Instant | None = None
    duration_ms: int | None = None
    status: ToolResultStatus | None = None
    result_preview: str | None = None
    error_kind: str | None = None
    error: ToolErrorView | None = None


class RoundData(Record, frozen=True, kw_only=True):
    """Data of a round besides its text."""

    token_usage: TokenUsage


class TranscriptEntryView(Record, frozen=True, kw_only=True):
    """One entry of a turn. Fields that do not apply to its kind are omitted."""

    id: str
    kind: str
    created_at: Instant
    truncated: bool
    text: str | None = None
    round: int | None = None
    related_message_id: MessageId | None = None
    message_kind: str | None = None
    origin: Origin | None = None
    trust: TrustLevel | None = None
    authority_class: AuthorityClass | None = None
    delivery_surface: DeliverySurface | None = None
    admission_context: AdmissionContext | None = None
    stop_reason: StopReason | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    token_usage: TokenUsage | None = None
    data: RoundData | None = None
    tool_names: tuple[str, ...] = ()
    tool_results: tuple[ToolResultView, ...] = ()
    timing: RoundTiming | None = None
    provider_attempt_timeline: AttemptTimeline | None = None
    failure: FailureArtifact | None = None
    retry_at: Instant | None = None


class TurnView(Record, frozen=True, kw_only=True):
    """One turn. Without `terminal` it is still open."""

    turn_id: TurnId
    agent_id: AgentId
    turn_index: int
    message_id: MessageId
    opened_at: Instant
    resume_count: int
    entries: tuple[TranscriptEntryView, ...]
    omitted_entry_count: int
    work_item_id: WorkItemId | None = None
    terminal: TurnEndView | None = None


class TranscriptPage(Record, frozen=True, kw_only=True):
    """Turns, newest first. `next_before` is the cursor of the next page."""

    turns: tuple[TurnView, ...]
    limit: int
    next_before: int | None = None


def transcript_page(logs: Sequence[TurnLog], *, limit: int) -> TranscriptPage:
    """Return a page of turns, newest first."""
    oldest = logs[-1].turn.turn_index if logs else 1
    return TranscriptPage(
        turns=tuple(turn_view(log) for log in logs),
        limit=limit,
        next_before=oldest if oldest > 1 and len(logs) >= limit else None,
    )


def turn_view(log: TurnLog) -> TurnView:
    """Return the view of one turn."""
    turn = log.turn
    entries = tuple(_entries(log))
    omitted_count = max(0, len(entries) - SURFACE_ENTRIES_COUNT_MAX)
    if omitted_count:
        half = SURFACE_ENTRIES_COUNT_MAX // 2
        entries = (*entries[:half], *entries[-(SURFACE_ENTRIES_COUNT_MAX - half) :])
    return TurnView(
        turn_id=turn.turn_id,
        agent_id=turn.agent_id,
        turn_index=turn.turn_index,
        message_id=turn.message_id,
        opened_at=turn.opened_at,
        resume_count=turn.resume_count,
        entries=entries,
        omitted_entry_count=omitted_count,
        work_item_id=turn.work_item_id,
        terminal=None if turn.terminal is None else turn_end_view(turn.terminal),
    )


def _entries(log: TurnLog) -> Iterator[TranscriptEntryView]:
    for entry in log.entries:
        if isinstance(entry.data, IncomingMessage):
            for number, message in enumerate(entry.data.unseen):
                view = _message_view(entry, message)
                yield msgspec.structs.replace(view, id=f"{view.id}:unseen:{number}")
        yield _entry_view(entry)
        if isinstance(entry.data, AssistantRound):
            number = entry.data.round
            calls = tuple(each for each in log.calls if each.call.round == number)
            if calls:
                yield _results_view(entry, number, calls)


def _entry_view(entry: TranscriptEntry) -> TranscriptEntryView:
    data = entry.data
    match data:
        case IncomingMessage(message=message):
            return _message_view(entry, message)
        case AssistantRound():
            return _round_view(entry, data)
        case RuntimeFailure():
            return msgspec.structs.replace(
                _titled(entry, data.failure.summary),
                failure=data.failure,
                retry_at=data.retry_at,
                provider_attempt_timeline=data.timeline,
                token_usage=data.token_usage,
            )
        case ContinuationPrompt(text=text) | WorkReminder(text=text):
            return _titled(entry, text)
        case TurnCompaction(request=request):
            return _titled(entry, request or "The conversation was shortened.")
        case Interjection(message_id=message_id, interjected=interjected):
            view = _titled(entry, interjected.text)
            return msgspec.structs.replace(view, related_message_id=message_id)


def _message_view(entry: TranscriptEntry, message: MessageEnvelope) -> TranscriptEntryView:
    return msgspec.structs.replace(
        _titled(entry, _text_of(message.body)),
        related_message_id=message.id,
        message_kind=message.kind.value,
        origin=message.origin,
        trust=message.trust,
        authority_class=message.authority_class,
        delivery_surface=message.delivery_surface,
        admission_context=message.admission_context,
    )


def _round_view(entry: TranscriptEntry, data: AssistantRound) -> TranscriptEntryView:
    spoke = data.spoke
    # Zero usage means that the provider reported none; it is omitted, not shown as zero.
    usage = spoke.usage if spoke.usage.total_tokens else None
    return msgspec.structs.replace(
        _titled(entry, text_of(spoke.blocks)),
        round=data.round,
        stop_reason=spoke.stop_reason,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        token_usage=usage,
        data=None if usage is None else RoundData(token_usage=usage),
        tool_names=tuple(use.name[:ID_CHARS_MAX] for use in tool_uses_of(spoke.blocks)),
        timing=data.timing,
        provider_attempt_timeline=spoke.timeline,
    )


def _results_view(
    entry: TranscriptEntry, number: int, calls: tuple[RecordedCall, ...]
) -> TranscriptEntryView:
    views = tuple(_result_view(each) for each in calls)
    ends = [each.call.finished_at for each in calls if each.call.finished_at is not None]
    return TranscriptEntryView(
        id=f"{entry.turn_id}:{entry.position}:tools",
        kind="tool_results",
        created_at=max(ends, default=calls[0].call.started_at),
        truncated=any(view.truncated for view in views),
        round=number,
        tool_results=views,
    )


def _result_view(recorded: RecordedCall) -> ToolResultView:
    call, receipt = recorded.call, recorded.receipt
    shown_input = bounded(without_addresses(_json_text(call.input)))
    result = None if receipt is None else bounded(receipt.content)
    duration = None if call.finished_at is None else call.finished_at - call.started_at
    return ToolResultView(
        call_id=call.call_id,
        tool_name=call.name[:ID_CHARS_MAX],
        state=call.state,
        input_preview=shown_input.text,
        started_at=call.started_at,
        truncated=shown_input.truncated or (result is not None and result.truncated),
        finished_at=call.finished_at,
        duration_ms=None if duration is None else max(0, round(duration.total_seconds() * 1_000)),
        status=None if receipt is None else _status_of(receipt),
        result_preview=None if result is None else result.text,
        error_kind=None if receipt is None else receipt.error_kind,
        error=None if receipt is None or receipt.error is None else _error_view(receipt.error),
    )


def _status_of(receipt: ToolReceipt) -> ToolResultStatus:
    return ToolResultStatus.ERROR if receipt.is_error else ToolResultStatus.SUCCESS


def _error_view(error: ToolError) -> ToolErrorView:
    return ToolErrorView(
        kind=error.kind,
        message=error.message,
        retryable=error.retryable,
        recovery_hint=error.hint,
        field=error.field,
        details=error.details,
    )


def _titled(entry: TranscriptEntry, text: str) -> TranscriptEntryView:
    shown: BoundedText = bounded(text)
    return TranscriptEntryView(
        id=f"{entry.turn_id}:{entry.position}",
        kind=str(type(entry.data).__struct_config__.tag),
        created_at=entry.created_at,
        truncated=shown.truncated,
        text=shown.text or None,
    )


def _text_of(body: MessageBody) -> str:
    return _json_text(body.value) if isinstance(body, JsonBody) else body.text


def _json_text(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()
