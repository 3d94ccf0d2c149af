"""Events as an operator reads them: the one presentation every surface starts from.

Owns:  visibility, category, title, body and summary of every event kind, as a table. Pages and
       streams carry it; what shows events takes its words from here.
Rule 1: every event class has a row; one without is found by a test.
Rule 2: there is no severity and no hint where to deliver: surfaces decide from visibility and
        category.
Rule 3: state-sync events tell a projection to refresh; they are no part of a conversation.
Rule 4: what a brief amounts to was decided with the commit that wrote it, and its event says so:
        each event is presented by itself. A brief of an older version does not say; it is folded
        from the events around it (`after`, and the closure of the same commit).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from holon.decide.bounded_text import bounded
from holon.model.agent_event import ModelOverrideChanged
from holon.model.brief import BriefKind, BriefRecord, OperatorVisibility
from holon.model.closure import WaitingReason
from holon.model.event import (
    AssistantRoundRecorded,
    AuditEvent,
    BriefCreated,
    ClosureDecided,
    Event,
    ProviderDeferred,
    RuntimeErrorRecorded,
    ToolExecutionFailed,
    TurnEnded,
    TurnStarted,
)
from holon.model.ids import WorkItemId
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.wait import WaitKind
from holon.model.wake_event import WaitOpened
from holon.model.work_event import WorkItemWritten
from holon.model.work_item import WorkItemState
from holon.projections.operator_event_rows import ROWS, Category

_COMPLETED_REMEMBERED_COUNT: Final = 16


class OperatorEvent(Record, frozen=True, kw_only=True):
    """An event, presented."""

    visibility: OperatorVisibility
    category: Category
    title: str
    summary: str
    source_event_kind: str
    body: str | None = None


class PresentationContext(Record, frozen=True, kw_only=True):
    """What earlier events of the same agent say about the next one."""

    awaits_operator: bool = False
    completed_item_ids: tuple[WorkItemId, ...] = ()  # in this turn


class _Told(NamedTuple):
    """What is particular about one event; the rest is in its row."""

    visibility: OperatorVisibility = OperatorVisibility.TRACE
    summary: str | None = None
    body: str | None = None


NOTHING_BEFORE: Final = PresentationContext()


def present(
    event: Event,
    context: PresentationContext = NOTHING_BEFORE,
    *,
    brief: BriefRecord | None = None,
) -> OperatorEvent:
    """Return how an event reads. `brief` is the one a brief_created event points to, if at hand."""
    row = ROWS[type(event)]
    told = _told(event, context, brief)
    said = row.says.format_map(msgspec.structs.asdict(event)) if told.summary is None else None
    return OperatorEvent(
        visibility=told.visibility,
        category=row.category,
        title=row.title,
        summary=one_line(said or told.summary or row.title),
        source_event_kind=kind_of(event),
        body=None if told.body is None else bounded(told.body).text,
    )


def context_at(events: Sequence[AuditEvent], event_seq: int) -> PresentationContext:
    """Return what is known at one of these events, which are one agent's, oldest first."""
    context = NOTHING_BEFORE
    for number, each in enumerate(events):
        if each.event_seq == event_seq:
            return _with_closure(context, events[number:])
        context = after(context, each.event)
    return context


def _with_closure(
    context: PresentationContext, following: Sequence[AuditEvent]
) -> PresentationContext:
    """A turn's brief and its closure are one commit, and the log tells the brief first."""
    told, *rest = following
    for each in rest:
        if each.created_at != told.created_at or isinstance(each.event, TurnStarted | BriefCreated):
            break
        if isinstance(each.event, ClosureDecided):
            return after(context, each.event)
    return context


def after(context: PresentationContext, event: Event) -> PresentationContext:
    """Return what is known once this event has been seen as well."""
    match event:
        case TurnStarted():
            return NOTHING_BEFORE
        case ClosureDecided(waiting_reason=reason):
            awaits = reason is WaitingReason.AWAITING_OPERATOR_INPUT
            return msgspec.structs.replace(context, awaits_operator=awaits)
        case WaitOpened(wait_kind=WaitKind.OPERATOR):
            return msgspec.structs.replace(context, awaits_operator=True)
        case WorkItemWritten(work_item_id=item_id, state=WorkItemState.COMPLETED):
            known = (*context.completed_item_ids, item_id)[-_COMPLETED_REMEMBERED_COUNT:]
            return msgspec.structs.replace(context, completed_item_ids=known)
        case _:
            return context


def kind_of(event: Event) -> str:
    """Return the stable name of an event's kind."""
    return str(type(event).__struct_config__.tag)


def _told(event: Event, context: PresentationContext, brief: BriefRecord | None) -> _Told:
    match event:
        case BriefCreated():
            return _brief(event, context, brief)
        case WorkItemWritten(work_item_id=item_id, state=WorkItemState.COMPLETED):
            return _Told(OperatorVisibility.WORK_DONE, f"Work item {item_id} is completed")
        case AssistantRoundRecorded():
            return _round(event)
        case RuntimeErrorRecorded(failure=failure):
            summary = f"Turn failed: {failure.summary}"
            return _Told(OperatorVisibility.TURN_RESULT, summary, failure.recovery_hint)
        case _ if ROWS[type(event)].category is Category.ASSISTANT_PROGRESS:
            return _Told(OperatorVisibility.PROGRESS)
        case _:
            return _traced(event)


def _traced(event: Event) -> _Told:
    match event:
        case TurnEnded(reason=str() as reason):
            return _Told(body=reason)
        case ProviderDeferred(failure=failure):
            return _Told(body=failure.summary)
        case ModelOverrideChanged(model=None):
            return _Told(summary="The agent uses the runtime's model again")
        case ClosureDecided(outcome=outcome, waiting_reason=WaitingReason() as reason):
            return _Told(summary=f"The pass ended {outcome}: {reason}")
        case ToolExecutionFailed(tool_name=name, interrupted=True):
            return _Told(summary=f"{name} was interrupted; it may have had its effect")
        case _:
            return _Told()


def _brief(event: BriefCreated, context: PresentationContext, brief: BriefRecord | None) -> _Told:
    is_result = event.brief_kind is BriefKind.RESULT
    if event.visibility is not None:
        visibility = event.visibility
    elif is_result and event.work_item_id in context.completed_item_ids:
        visibility = OperatorVisibility.WORK_DONE  # whatever else the agent waits for
    elif context.awaits_operator:
        visibility = OperatorVisibility.ACTION_REQUIRED
    else:
        visibility = OperatorVisibility.TURN_RESULT
    if brief is None or not brief.text.strip():
        return _Told(visibility)
    return _Told(visibility, brief.text.strip().split("\n", 1)[0], brief.text)


def _round(event: AssistantRoundRecorded) -> _Told:
    seen = OperatorVisibility.PROGRESS
    if event.preview.strip():
        preview = event.preview[:EVENT_TEXT_CHARS_MAX]
        return _Told(seen, f"Assistant progress: {preview}", event.preview)
    if event.tool_names:
        return _Told(seen, f"Model requested tools: {', '.join(event.tool_names)}")
    if event.tool_call_count:
        return _Told(seen, f"Model requested {event.tool_call_count} tools")
    return _Told(seen)
