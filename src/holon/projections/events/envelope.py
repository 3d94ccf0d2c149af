"""Event envelopes: events as they are streamed and replayed.

Owns:  the envelope, its provenance, and the page it comes in.
Rule 1: a replayed event is history. An envelope is never a request and is never admitted again.
Rule 2: provenance is separate from the payload, so that a client can index events it does not know.
        Every known label is present; none is invented.
Rule 3: `event_seq` orders replay. `log_seq` is for diagnosis and is shown in that projection only.
Rule 4: a sequence number is valid only within its timeline (`event_log_epoch`): a new one begins
        when a home is restored from a backup.
Rule 5: the payload is the whole event, the same for every authorized reader.
Rule 6: the envelope also carries the event's presentation (projections/events/presented). A page
        may omit events below a level; it still states how far it read.
Rule 7: an event of a turn carries the message, work item and task of that turn, unless it names its
        own. What the commit of a turn wrote belongs to the turn, except events about another
        message, such as the one a follow-up queues.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from holon.model.events.briefs import BriefRecord, OperatorVisibility
from holon.model.events.event import AuditEvent, BriefCreated, Event, MessageAdmitted
from holon.model.events.reads import EventOrder, EventQuery, EventSlice
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    DeliverySurface,
    MessageEnvelope,
    Origin,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.record import Record
from holon.model.turns.turn import TurnRecord
from holon.model.values import (
    AgentId,
    BriefId,
    Instant,
    MessageId,
    TaskId,
    TriggerId,
    TurnId,
    WorkItemId,
)
from holon.projections.events.presented import (
    NOTHING_BEFORE,
    Category,
    PresentationContext,
    is_within,
    kind_of,
    present,
)


class EventProjection(StrEnum):
    """The audience of replayed events."""

    OPERATOR = "operator"
    LOCAL_DEBUG = "local_debug"


class EventProvenance(Record, frozen=True, kw_only=True):
    """The known provenance of an event."""

    event_id: str
    event_seq: int
    ts: Instant
    event_kind: str
    agent_id: AgentId
    origin: Origin | None = None
    trust: TrustLevel | None = None
    authority_class: AuthorityClass | None = None
    delivery_surface: DeliverySurface | None = None
    admission_context: AdmissionContext | None = None
    source: str | None = None  # the transport, if the origin names one
    reply_route: str | None = None
    message_id: MessageId | None = None
    turn_id: TurnId | None = None
    task_id: TaskId | None = None
    work_item_id: WorkItemId | None = None
    brief_id: BriefId | None = None
    external_trigger_id: TriggerId | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class RelatedRows(NamedTuple):
    """The rows an event refers to, as far as they are available."""

    message: MessageEnvelope | None = None  # the message it concerns
    turn: TurnRecord | None = None  # the turn it belongs to
    brief: BriefRecord | None = None  # the brief it announces
    context: PresentationContext = NOTHING_BEFORE  # of a brief of an older version


NO_RELATED_ROWS: Final = RelatedRows()


class EventEnvelope(Record, frozen=True, kw_only=True):
    """One event as sent to a client."""

    id: str
    event_seq: int
    ts: Instant
    agent_id: AgentId
    type: str
    visibility: OperatorVisibility
    category: Category
    title: str
    summary: str
    projection: EventProjection
    provenance: EventProvenance
    payload: Event
    body: str | None = None
    event_log_epoch: str | None = None  # the timeline `event_seq` belongs to
    log_seq: int | None = None


class EventPage(Record, frozen=True, kw_only=True):
    """A page of an agent's events, and whether there are more on either side.

    The sequence numbers cover all events read, including those filtered out by level.
    """

    events: tuple[EventEnvelope, ...]
    has_older: bool
    has_newer: bool
    order: EventOrder
    limit: int
    oldest_seq: int | None = None
    newest_seq: int | None = None
    event_log_epoch: str | None = None


def event_id_of(event: AuditEvent) -> str:
    """Return the id of an event, permanently unique in its home."""
    return f"evt_{event.log_seq}"


def event_envelope(
    event: AuditEvent,
    *,
    projection: EventProjection = EventProjection.OPERATOR,
    related: RelatedRows = NO_RELATED_ROWS,
    epoch: str | None = None,
) -> EventEnvelope:
    """Return the envelope of an event."""
    presented = present(event.event, related.context, brief=related.brief)
    return EventEnvelope(
        id=event_id_of(event),
        event_seq=event.event_seq,
        ts=event.created_at,
        agent_id=event.agent_id,
        type=kind_of(event.event),
        visibility=presented.visibility,
        category=presented.category,
        title=presented.title,
        summary=presented.summary,
        body=presented.body,
        projection=projection,
        provenance=_provenance(event, related),
        payload=event.event,
        event_log_epoch=epoch,
        log_seq=event.log_seq if projection is EventProjection.LOCAL_DEBUG else None,
    )


def message_of(event: Event) -> MessageId | None:
    """Return the id of the message an event names, if any."""
    if isinstance(event, BriefCreated):
        return event.related_message_id
    named = getattr(event, "message_id", None)
    return None if named is None else MessageId(named)


def event_page(
    found: EventSlice,
    query: EventQuery,
    *,
    projection: EventProjection = EventProjection.OPERATOR,
    related: Mapping[int, RelatedRows] = MappingProxyType({}),
    max_level: OperatorVisibility = OperatorVisibility.TRACE,
    epoch: str | None = None,
) -> EventPage:
    """Return a slice as a page, in the order it was read; `related` is keyed by log number."""
    envelopes = [
        event_envelope(
            each,
            projection=projection,
            related=related.get(each.log_seq, NO_RELATED_ROWS),
            epoch=epoch,
        )
        for each in found.events
    ]
    numbers = [envelope.event_seq for envelope in envelopes]
    oldest, newest = min(numbers, default=None), max(numbers, default=None)
    # Of an empty page only its position is known.
    lower = oldest if oldest is not None else min((query.after_seq or 0) + 1, found.last_seq + 1)
    upper = newest if newest is not None else (query.before_seq or lower) - 1
    return EventPage(
        events=tuple(each for each in envelopes if is_within(max_level, each.visibility)),
        oldest_seq=oldest,
        newest_seq=newest,
        has_older=lower - 1 > found.floor_seq,
        has_newer=upper < found.last_seq,
        order=query.order,
        limit=query.limit,
        event_log_epoch=epoch,
    )


def turn_of(event: AuditEvent) -> TurnId | None:
    """Return the id of the turn an event names or was written by, if any."""
    named = getattr(event.event, "turn_id", None)
    return event.turn_id if named is None else TurnId(named)


def _provenance(event: AuditEvent, related: RelatedRows) -> EventProvenance:
    told, message, turn = event.event, related.message, related.turn
    about, turn_id = message_of(told), getattr(told, "turn_id", None)
    if turn_id is None and about in (None, None if turn is None else turn.message_id):
        turn_id = event.turn_id
    is_of_turn = turn is not None and turn_id is not None
    of_turn = (turn.message_id, turn.work_item_id) if turn and is_of_turn else (None, None)
    named = EventProvenance(
        event_id=event_id_of(event),
        event_seq=event.event_seq,
        ts=event.created_at,
        event_kind=kind_of(told),
        agent_id=event.agent_id,
        message_id=about or of_turn[0],
        turn_id=turn_id,
        task_id=getattr(told, "task_id", None),
        work_item_id=getattr(told, "work_item_id", None) or of_turn[1],
        brief_id=getattr(told, "brief_id", None),
        external_trigger_id=getattr(told, "external_trigger_id", None),
        source=getattr(told, "source", None),
        correlation_id=getattr(told, "correlation_id", None),
        causation_id=getattr(told, "causation_id", None),
    )
    source = told if isinstance(told, MessageAdmitted) else message
    return named if source is None else _with_source(named, source, message)


def _with_source(
    named: EventProvenance,
    source: MessageEnvelope | MessageAdmitted,
    message: MessageEnvelope | None,
) -> EventProvenance:
    item_id = None if message is None else message.work_item_id
    return msgspec.structs.replace(
        named,
        origin=source.origin,
        trust=source.trust,
        authority_class=source.authority_class,
        delivery_surface=source.delivery_surface,
        admission_context=source.admission_context,
        source=_transport_of(source.origin),
        task_id=named.task_id or source.task_id,
        work_item_id=named.work_item_id or item_id,
        correlation_id=source.correlation_id,
        causation_id=source.causation_id,
    )


def _transport_of(origin: Origin) -> str | None:
    match origin:
        case ChannelOrigin(channel_id=channel_id):
            return channel_id
        case WebhookOrigin(source=source) | CallbackOrigin(source=source):
            return source
        case _:
            return None
