"""Events as they are streamed and replayed."""

import msgspec
import pytest
from hypothesis import given, settings

from holon.model.events.briefs import BriefKind
from holon.model.events.event import (
    AuditEvent,
    BriefCreated,
    ClosureDecided,
    Event,
    MessageAdmitted,
    MessageProcessed,
    TaskCreated,
    TurnStarted,
)
from holon.model.events.reads import EventOrder, EventQuery, EventSlice
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    Priority,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.tasks import TaskKind, TaskStatus
from holon.model.turns.turn import ClosureOutcome
from holon.model.values import BriefId, MessageId, TaskId, TurnId, WorkItemId
from holon.model.work import WorkItemState, WorkItemWritten
from holon.projections.events.envelope import (
    EventEnvelope,
    EventProjection,
    RelatedRows,
    event_envelope,
    event_page,
    message_of,
)
from tests.support.builders import MAIN, a_message, a_turn, moment
from tests.wire.record_strategies import records_of

ADMITTED = MessageAdmitted(
    message_id=MessageId("msg_1"),
    message_kind=MessageKind.WEBHOOK_EVENT,
    origin=WebhookOrigin(source="ci"),
    trust=TrustLevel.UNTRUSTED_EXTERNAL,
    authority_class=AuthorityClass.EXTERNAL_EVIDENCE,
    priority=Priority.NORMAL,
    delivery_surface=DeliverySurface.HTTP_WEBHOOK,
    admission_context=AdmissionContext.PUBLIC_UNAUTHENTICATED,
    task_id=TaskId("task_1"),
    correlation_id="cor",
    causation_id="cau",
)


def logged(event: Event, *, seq: int = 7) -> AuditEvent:
    return AuditEvent(
        log_seq=40 + seq, agent_id=MAIN, event_seq=seq, created_at=moment(), event=event
    )


def processed(message_id: str) -> MessageProcessed:
    return MessageProcessed(message_id=MessageId(message_id), reason="done")


@pytest.mark.requirement("console:replay-carries-provenance")
def test_an_envelope_carries_every_label_its_event_knows() -> None:
    envelope = event_envelope(logged(ADMITTED))
    provenance = envelope.provenance
    assert (envelope.id, envelope.event_seq, envelope.type) == ("evt_47", 7, "message_admitted")
    assert (provenance.event_id, provenance.event_kind) == (envelope.id, envelope.type)
    assert (provenance.ts, provenance.agent_id) == (envelope.ts, MAIN)
    assert provenance.origin == ADMITTED.origin
    assert provenance.trust is ADMITTED.trust
    assert provenance.authority_class is ADMITTED.authority_class
    assert provenance.delivery_surface is ADMITTED.delivery_surface
    assert provenance.admission_context is ADMITTED.admission_context
    assert (provenance.source, provenance.task_id) == ("ci", "task_1")
    assert (provenance.correlation_id, provenance.causation_id) == ("cor", "cau")


def test_an_event_about_a_message_takes_the_labels_of_that_message() -> None:
    message = a_message(work_item_id=WorkItemId("work_1"), correlation_id="cor")
    event = MessageProcessed(message_id=message.id, reason="done")
    provenance = event_envelope(logged(event), related=RelatedRows(message=message)).provenance
    assert provenance.authority_class is message.authority_class
    assert (provenance.message_id, provenance.work_item_id) == (message.id, "work_1")
    assert provenance.correlation_id == "cor"


def test_nothing_is_made_up_where_nothing_is_known() -> None:
    created = TaskCreated(
        task_id=TaskId("task_1"), task_kind=TaskKind.COMMAND_TASK, status=TaskStatus.RUNNING
    )
    wire = msgspec.to_builtins(event_envelope(logged(created)).provenance)
    assert set(wire) == {"event_id", "event_seq", "ts", "event_kind", "agent_id", "task_id"}


@pytest.mark.requirement("events:provenance-of-the-turn")
@pytest.mark.parametrize(
    ("event", "turn_id", "message_id", "item_id"),
    [
        (ClosureDecided(outcome=ClosureOutcome.COMPLETED), "turn_1", "msg_1", "work_1"),
        (
            MessageProcessed(message_id=MessageId("msg_1"), reason="done"),
            "turn_1",
            "msg_1",
            "work_1",
        ),
        (MessageProcessed(message_id=MessageId("msg_2"), reason="done"), None, "msg_2", None),
        (
            WorkItemWritten(
                work_item_id=WorkItemId("work_2"), state=WorkItemState.OPEN, revision=1
            ),
            "turn_1",
            "msg_1",
            "work_2",
        ),
    ],
)
def test_an_event_written_by_a_turn_is_of_the_turn_unless_it_is_about_another_message(
    event: Event, turn_id: str | None, message_id: str, item_id: str | None
) -> None:
    turn = msgspec.structs.replace(a_turn(), work_item_id=WorkItemId("work_1"))
    written = msgspec.structs.replace(logged(event), turn_id=turn.turn_id)
    told = event_envelope(written, related=RelatedRows(turn=turn)).provenance
    assert (told.turn_id, told.message_id, told.work_item_id) == (turn_id, message_id, item_id)


def test_the_turn_is_named_also_when_its_row_is_gone() -> None:
    written = msgspec.structs.replace(
        logged(ClosureDecided(outcome=ClosureOutcome.COMPLETED)), turn_id=TurnId("turn_9")
    )
    assert event_envelope(written).provenance.turn_id == "turn_9"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TurnStarted(turn_id=TurnId("t"), turn_index=1, message_id=MessageId("msg_2")), "msg_2"),
        (
            BriefCreated(
                brief_id=BriefId("b"),
                brief_kind=BriefKind.RESULT,
                related_message_id=MessageId("msg_3"),
            ),
            "msg_3",
        ),
        (BriefCreated(brief_id=BriefId("b"), brief_kind=BriefKind.RESULT), None),
    ],
)
def test_the_message_an_event_names_can_be_looked_up(event: Event, expected: str | None) -> None:
    assert message_of(event) == expected


@pytest.mark.requirement("console:payload-is-canonical")
@settings(max_examples=50)
@given(event=records_of(AuditEvent))
def test_an_envelope_comes_back_from_the_wire_as_it_went(event: AuditEvent) -> None:
    envelope = event_envelope(event)
    assert msgspec.json.decode(msgspec.json.encode(envelope), type=EventEnvelope) == envelope
    assert envelope.payload == event.event


@pytest.mark.requirement("console:log-numbers-are-diagnostic")
def test_the_number_in_the_whole_log_is_shown_for_diagnosis_only() -> None:
    assert event_envelope(logged(ADMITTED)).log_seq is None
    debugged = event_envelope(logged(ADMITTED), projection=EventProjection.LOCAL_DEBUG)
    assert debugged.log_seq == 47


def a_slice(*seqs: int, floor: int = 0, last: int = 10) -> EventSlice:
    events = tuple(logged(ADMITTED, seq=seq) for seq in seqs)
    return EventSlice(events=events, floor_seq=floor, last_seq=last)


@pytest.mark.parametrize(
    ("found", "query", "has_older", "has_newer"),
    [
        (a_slice(1, 2, 3), EventQuery(limit=3), False, True),
        (a_slice(4, 5), EventQuery(limit=2, after_seq=3), True, True),
        (a_slice(10, 9), EventQuery(limit=2, order=EventOrder.DESC), True, False),
        (a_slice(4, floor=3), EventQuery(limit=1, after_seq=3), False, True),
        (a_slice(), EventQuery(limit=5, after_seq=10), True, False),
        (a_slice(last=0), EventQuery(limit=5), False, False),
        (a_slice(), EventQuery(limit=5, before_seq=1, order=EventOrder.DESC), False, True),
    ],
)
def test_a_page_says_whether_there_is_more_on_either_side(
    found: EventSlice, query: EventQuery, has_older: bool, has_newer: bool
) -> None:
    page = event_page(found, query)
    assert (page.has_older, page.has_newer) == (has_older, has_newer)
    seqs = [event.event_seq for event in found.events]
    assert (page.oldest_seq, page.newest_seq) == (min(seqs, default=None), max(seqs, default=None))
    assert (page.order, page.limit) == (query.order, query.limit)


def test_a_page_takes_messages_that_are_at_hand() -> None:
    message = a_message()
    event = logged(MessageProcessed(message_id=message.id, reason="done"))
    found = EventSlice(events=(event,), last_seq=7)
    page = event_page(
        found, EventQuery(limit=1), related={event.log_seq: RelatedRows(message=message)}
    )
    assert page.events[0].provenance.trust is message.trust
