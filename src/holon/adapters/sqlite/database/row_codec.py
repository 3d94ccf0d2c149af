"""Convert between rows and records.

Owns:  JSON text for records, and columns derived from a record; one row type per query shape, in
       the order of its columns, and the record each row becomes.
Rule 1: a stored record is encoded once. What changes about it later is a column; stored JSON is
        never read, changed and encoded again.
Rule 2: immutable facts come from the stored JSON; mutable ones come from columns and win.
"""

from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from holon.model.agents import (
    AgentFocus,
    AgentIdentity,
    AgentPosture,
    AgentState,
    AgentStatus,
    AgentTotals,
    ModelChoice,
    TurnRateState,
)
from holon.model.errors import NotJsonError, StoreBrokenError
from holon.model.events.briefs import BriefRecord, FailureArtifact
from holon.model.events.event import AuditEvent, Event
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import (
    CallbackOrigin,
    ChannelOrigin,
    MessageEnvelope,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    WebhookOrigin,
)
from holon.model.tasks import TaskRecord, TaskStatus
from holon.model.turns.tools import ToolCallRecord, ToolCallState
from holon.model.turns.transcript import RecordedCall, TranscriptData, TranscriptEntry
from holon.model.turns.turn import Closure, ToolReceipt, TurnRecord, TurnTerminal
from holon.model.values import (
    AgentId,
    CallId,
    JsonValue,
    MessageId,
    TurnId,
    WorkItemId,
    from_micros,
    to_micros,
)
from holon.model.wake import TimerRecord, TimerStatus, WaitRecord, WaitState, WakeHint
from holon.model.work import ActivationMemory, PlanStatus, WorkItemRecord, WorkItemState

_ENCODER: Final = msgspec.json.Encoder()
_ORIGIN_KINDS: Final[dict[type, str]] = {
    OperatorOrigin: "operator",
    ChannelOrigin: "channel",
    WebhookOrigin: "webhook",
    CallbackOrigin: "callback",
    TimerOrigin: "timer",
    SystemOrigin: "system",
    TaskOrigin: "task",
}
T = TypeVar("T")
RECALLED_COUNT_MAX: Final = 128  # of each kind
RECALLED_CHARS_MAX: Final = 2_048


def encode(value: object) -> str:
    """Return a record, or a JSON value, as JSON text."""
    return _ENCODER.encode(value).decode()


def micros_or_none(moment: datetime | None) -> int | None:
    """Return a moment as stored, or nothing."""
    return None if moment is None else to_micros(moment)


def origin_kind(origin: Origin) -> str:
    """Return the tag of an origin."""
    return _ORIGIN_KINDS[type(origin)]


def can_run(item: WorkItemRecord) -> bool:
    """Whether the record alone does not keep the item from running; waits may still."""
    return (
        item.state is WorkItemState.OPEN
        and not item.blocked_by
        and item.plan_status is not PlanStatus.NEEDS_INPUT
    )


def recheck_due_at(item: WorkItemRecord) -> datetime | None:
    """Return when a blocked item's reminder comes, unless that reminder was used up."""
    if item.state is not WorkItemState.OPEN or not item.blocked_by or item.recheck_at is None:
        return None
    used_up = item.recheck_consumed_at is not None and item.recheck_consumed_at >= item.recheck_at
    return None if used_up else item.recheck_at


class RowDecoder(Generic[T]):
    """Reads one kind of stored JSON. What cannot be read is damage, and ends the host."""

    def __init__(self, kind: object) -> None:
        self._kind = kind

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[T]:
        # Made when it is first needed: most programs read few kinds, and a kind may be large.
        return msgspec.json.Decoder(self._kind)

    def decode(self, text: str) -> T:
        """Return the record, or raise StoreBrokenError."""
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, NotJsonError) as damage:
            raise StoreBrokenError(
                f"a stored record cannot be read: {damage}",
                hint="run holon debug check, then restore a backup of the database",
            ) from None


class RecallingDecoder(RowDecoder[T]):
    """For what every turn reads anew: the same short text gives the very record it gave before."""

    def __init__(self, kind: object) -> None:
        super().__init__(kind)
        self._recalled = lru_cache(RECALLED_COUNT_MAX)(super().decode)

    def decode(self, text: str) -> T:
        """Return the record, or raise StoreBrokenError."""
        return self._recalled(text) if len(text) <= RECALLED_CHARS_MAX else super().decode(text)


ENVELOPES: Final = RecallingDecoder[MessageEnvelope](MessageEnvelope)
BRIEFS: Final = RecallingDecoder[BriefRecord](BriefRecord)
USAGES: Final = RowDecoder[TokenUsage](TokenUsage)
HINTS: Final = RowDecoder[WakeHint](WakeHint)
LINES: Final = RowDecoder[tuple[str, ...]](tuple[str, ...])
ITEMS: Final = RecallingDecoder[WorkItemRecord](WorkItemRecord)
IDENTITIES: Final = RecallingDecoder[AgentIdentity](AgentIdentity)
_CLOSURES: Final = RecallingDecoder[Closure](Closure)
_TERMINALS: Final = RecallingDecoder[TurnTerminal](TurnTerminal)
_WAITS: Final = RowDecoder[WaitRecord](WaitRecord)
_TIMERS: Final = RowDecoder[TimerRecord](TimerRecord)
_TASKS: Final = RowDecoder[TaskRecord](TaskRecord)
_FAILURES: Final = RowDecoder[FailureArtifact](FailureArtifact)
_ENTRIES: Final = RowDecoder[TranscriptData](TranscriptData)
_RECEIPTS: Final = RowDecoder[ToolReceipt](ToolReceipt)
_INPUTS: Final = RowDecoder[JsonValue](Any)
EVENTS: Final = RowDecoder[Event](Event)


class AgentRow(NamedTuple):
    """The columns of the `agent` query."""

    identity: str
    generation: int
    status: str
    status_since: int
    status_reason: str
    sleeping_until: int | None
    last_wake_reason: str | None
    current_work_item_id: str | None
    open_turn_id: str | None
    turn_index: int
    message_count: int
    model_round_count: int
    input_tokens: int
    output_tokens: int
    model_override: str | None
    last_closure: str | None
    last_terminal: str | None
    last_brief_at: int | None
    passed_over: int
    queued_count: int
    self_started_count: int
    self_started_at: int | None
    gave_up: int
    budget_until: int | None


class ActivityCountsRow(NamedTuple):
    """The columns of the `around` query."""

    claimed_message_id: str | None
    has_hints: int
    has_waits: int
    has_open_items: int
    active_timer_count: int


class WaitRow(NamedTuple):
    """The columns of every query for waits."""

    record: str
    state: str
    triggered_by: str | None
    ended_at: int | None
    work_item_id: str | None


class WorkItemRow(NamedTuple):
    """A work item with its activation memory, if it has one."""

    record: str
    revision_seen: int | None
    no_progress_count: int
    last_at: int
    not_before: int


class TurnRow(NamedTuple):
    """The columns of every query for turns."""

    turn_id: str
    agent_id: str
    turn_index: int
    message_id: str
    opened_at: int
    work_item_id: str | None
    resume_count: int
    terminal: str | None
    crash_count: int
    crash_progress: int


class CallRow(NamedTuple):
    """The columns of every query for tool calls."""

    effect_id: str
    call_id: str
    turn_id: str
    round: int
    position: int
    name: str
    input: str
    state: str
    started_at: int
    finished_at: int | None
    work_item_id: str | None
    receipt: str | None


class TaskRow(NamedTuple):
    """The columns of every query for tasks."""

    record: str
    status: str
    updated_at: int
    result_summary: str | None
    exit_status: int | None
    failure: str | None


class TimerRow(NamedTuple):
    """The columns of every query for timers."""

    record: str
    status: str
    next_fire_at: int | None
    last_fired_at: int | None
    fire_count: int


class EntryRow(NamedTuple):
    """The columns of every query for transcript entries."""

    turn_id: str
    position: int
    created_at: int
    data: str


class EventRow(NamedTuple):
    """The columns of every query for events."""

    log_seq: int
    event_seq: int
    created_at: int
    event: str
    turn_id: str | None


def agent_state(row: AgentRow) -> AgentState:
    """Return the agent of a row."""
    return AgentState(
        identity=IDENTITIES.decode(row.identity),
        generation=row.generation,
        posture=AgentPosture(
            status=AgentStatus(row.status),
            since=from_micros(row.status_since),
            reason=row.status_reason,
            sleeping_until=moment_or_none(row.sleeping_until),
            last_wake_reason=row.last_wake_reason,
        ),
        focus=AgentFocus(
            current_work_item_id=_item_id(row.current_work_item_id),
            open_turn_id=None if row.open_turn_id is None else TurnId(row.open_turn_id),
        ),
        totals=AgentTotals(
            turn_index=row.turn_index,
            message_count=row.message_count,
            model_round_count=row.model_round_count,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
        ),
        model=ModelChoice(override_model=row.model_override),
        pace=TurnRateState(
            self_started_count=row.self_started_count,
            self_started_at=moment_or_none(row.self_started_at),
            gave_up=bool(row.gave_up),
            budget_until=moment_or_none(row.budget_until),
        ),
        last_closure=None if row.last_closure is None else _CLOSURES.decode(row.last_closure),
        last_terminal=_terminal(row.last_terminal),
        last_brief_at=moment_or_none(row.last_brief_at),
    )


def wait_record(row: WaitRow) -> WaitRecord:
    """Return the wait of a row in its current state."""
    return msgspec.structs.replace(
        _WAITS.decode(row.record),
        state=WaitState(row.state),
        triggered_by=None if row.triggered_by is None else MessageId(row.triggered_by),
        ended_at=moment_or_none(row.ended_at),
    )


def activation_memory(row: WorkItemRow, item: WorkItemRecord) -> ActivationMemory | None:
    """Return what is remembered about offering an item, if it was ever offered."""
    if row.revision_seen is None:
        return None
    return ActivationMemory(
        agent_id=item.agent_id,
        work_item_id=item.id,
        revision_seen=row.revision_seen,
        no_progress_count=row.no_progress_count,
        last_at=from_micros(row.last_at),
        not_before=from_micros(row.not_before),
    )


def turn_record(row: TurnRow) -> TurnRecord:
    """Return the turn of a row."""
    return TurnRecord(
        turn_id=TurnId(row.turn_id),
        agent_id=AgentId(row.agent_id),
        turn_index=row.turn_index,
        message_id=MessageId(row.message_id),
        opened_at=from_micros(row.opened_at),
        work_item_id=_item_id(row.work_item_id),
        resume_count=row.resume_count,
        crash_count=row.crash_count,
        crash_progress=row.crash_progress,
        terminal=_terminal(row.terminal),
    )


def transcript_entry(row: EntryRow, *, agent_id: AgentId) -> TranscriptEntry:
    """Return one entry of an agent's transcript."""
    return TranscriptEntry(
        agent_id=agent_id,
        turn_id=TurnId(row.turn_id),
        position=row.position,
        created_at=from_micros(row.created_at),
        data=_ENTRIES.decode(row.data),
    )


def recorded_call(row: CallRow, *, agent_id: AgentId) -> RecordedCall:
    """Return one tool call with its receipt, if it has one."""
    call = ToolCallRecord(
        effect_id=row.effect_id,
        call_id=CallId(row.call_id),
        agent_id=agent_id,
        turn_id=TurnId(row.turn_id),
        round=row.round,
        position=row.position,
        name=row.name,
        input=_INPUTS.decode(row.input),
        state=ToolCallState(row.state),
        started_at=from_micros(row.started_at),
        finished_at=moment_or_none(row.finished_at),
        work_item_id=_item_id(row.work_item_id),
    )
    return RecordedCall(
        call=call, receipt=None if row.receipt is None else _RECEIPTS.decode(row.receipt)
    )


def task_record(row: TaskRow) -> TaskRecord:
    """Return the task of a row in its current state."""
    return msgspec.structs.replace(
        _TASKS.decode(row.record),
        status=TaskStatus(row.status),
        updated_at=from_micros(row.updated_at),
        result_summary=row.result_summary,
        exit_status=row.exit_status,
        failure=None if row.failure is None else _FAILURES.decode(row.failure),
    )


def timer_record(row: TimerRow) -> TimerRecord:
    """Return the timer of a row in its current state."""
    return msgspec.structs.replace(
        _TIMERS.decode(row.record),
        status=TimerStatus(row.status),
        next_fire_at=moment_or_none(row.next_fire_at),
        last_fired_at=moment_or_none(row.last_fired_at),
        fire_count=row.fire_count,
    )


def audit_event(row: EventRow, *, agent_id: AgentId) -> AuditEvent:
    """Return one event of an agent's log."""
    return AuditEvent(
        log_seq=row.log_seq,
        agent_id=agent_id,
        event_seq=row.event_seq,
        created_at=from_micros(row.created_at),
        event=EVENTS.decode(row.event),
        turn_id=None if row.turn_id is None else TurnId(row.turn_id),
    )


def moment_or_none(micros: int | None) -> datetime | None:
    """Return a stored moment, or nothing."""
    return None if micros is None else from_micros(micros)


def _item_id(text: str | None) -> WorkItemId | None:
    return None if text is None else WorkItemId(text)


def _terminal(text: str | None) -> TurnTerminal | None:
    return None if text is None else _TERMINALS.decode(text)
