"""Events as they are streamed and replayed.

Owns:  the envelope, its provenance, and the page it comes in.
Rule 1: a replayed event is history. An envelope is never a request and is never taken in again.
Rule 2: provenance stands beside the payload, so that a client can index events it does not know.
        Every label of it that is known is there; none is made up.
Rule 3: `event_seq` orders replay. `log_seq` is for diagnosis and is shown in that projection only.
Rule 4: a number means something together with the timeline it belongs to (`event_log_epoch`):
        another one begins when a home is restored from a backup.
Rule 5: the payload is the event itself, whole, whoever is authorized to replay it.
"""

from enum import StrEnum

import msgspec

from holon.model.event import AuditEvent, BriefCreated, Event, MessageAdmitted
from holon.model.ids import AgentId, BriefId, MessageId, TaskId, TriggerId, TurnId, WorkItemId
from holon.model.instant import Instant
from holon.model.message import MessageEnvelope
from holon.model.provenance import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    DeliverySurface,
    Origin,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.record import Record
from holon.model.surface import EventOrder, EventQuery, EventSlice
from holon.projections.operator_event import kind_of


class EventProjection(StrEnum):
    """For whom events are replayed."""

    OPERATOR = "operator"
    LOCAL_DEBUG = "local_debug"


class EventProvenance(Record, frozen=True, kw_only=True):
    """Where an event comes from, as far as that is known."""

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
    source: str | None = None  # the transport, as far as the origin names one
    reply_route: str | None = None
    message_id: MessageId | None = None
    turn_id: TurnId | None = None
    task_id: TaskId | None = None
    work_item_id: WorkItemId | None = None
    brief_id: BriefId | None = None
    external_trigger_id: TriggerId | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class EventEnvelope(Record, frozen=True, kw_only=True):
    """One event on its way to a reader."""

    id: str
    event_seq: int
    ts: Instant
    agent_id: AgentId
    type: str
    projection: EventProjection
    provenance: EventProvenance
    payload: Event
    event_log_epoch: str | None = None  # the timeline `event_seq` belongs to
    log_seq: int | None = None


class EventPage(Record, frozen=True, kw_only=True):
    """Some of an agent's events, and whether there are more on either side."""

    events: tuple[EventEnvelope, ...]
    has_older: bool
    has_newer: bool
    order: EventOrder
    limit: int
    oldest_seq: int | None = None
    newest_seq: int | None = None
    event_log_epoch: str | None = None


def event_id_of(event: AuditEvent) -> str:
    """Return the id of an event, unique in its home for good."""
    return f"evt_{event.log_seq}"


def event_envelope(
    event: AuditEvent,
    *,
    projection: EventProjection = EventProjection.OPERATOR,
    message: MessageEnvelope | None = None,
    epoch: str | None = None,
) -> EventEnvelope:
    """Wrap an event. `message` is the one it concerns (`message_of`), where that is at hand."""
    return EventEnvelope(
        id=event_id_of(event),
        event_seq=event.event_seq,
        ts=event.created_at,
        agent_id=event.agent_id,
        type=kind_of(event.event),
        projection=projection,
        provenance=_provenance(event, message),
        payload=event.event,
        event_log_epoch=epoch,
        log_seq=event.log_seq if projection is EventProjection.LOCAL_DEBUG else None,
    )


def message_of(event: Event) -> MessageId | None:
    """Return the message an event names, for a caller who can look it up."""
    if isinstance(event, BriefCreated):
        return event.related_message_id
    named = getattr(event, "message_id", None)
    return None if named is None else MessageId(named)


def event_page(
    found: EventSlice,
    query: EventQuery,
    *,
    projection: EventProjection = EventProjection.OPERATOR,
    messages: dict[MessageId, MessageEnvelope] | None = None,
    epoch: str | None = None,
) -> EventPage:
    """Return what was found as a page, in the order it was read."""
    known = messages or {}
    shown = tuple(
        event_envelope(
            each, projection=projection, message=_looked_up(each.event, known), epoch=epoch
        )
        for each in found.events
    )
    numbers = [envelope.event_seq for envelope in shown]
    oldest, newest = min(numbers, default=None), max(numbers, default=None)
    # Of an empty page we know only where it would have been.
    lower = oldest if oldest is not None else min((query.after_seq or 0) + 1, found.last_seq + 1)
    upper = newest if newest is not None else (query.before_seq or lower) - 1
    return EventPage(
        events=shown,
        oldest_seq=oldest,
        newest_seq=newest,
        has_older=lower - 1 > found.floor_seq,
        has_newer=upper < found.last_seq,
        order=query.order,
        limit=query.limit,
        event_log_epoch=epoch,
    )


def _looked_up(event: Event, known: dict[MessageId, MessageEnvelope]) -> MessageEnvelope | None:
    message_id = message_of(event)
    return None if message_id is None else known.get(message_id)


def _provenance(event: AuditEvent, message: MessageEnvelope | None) -> EventProvenance:
    told = event.event
    named = EventProvenance(
        event_id=event_id_of(event),
        event_seq=event.event_seq,
        ts=event.created_at,
        event_kind=kind_of(told),
        agent_id=event.agent_id,
        message_id=message_of(told),
        turn_id=getattr(told, "turn_id", None),
        task_id=getattr(told, "task_id", None),
        work_item_id=getattr(told, "work_item_id", None),
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
