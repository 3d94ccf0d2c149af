"""The audit log and briefs: what is logged, in which order, and how far back it reaches."""

import pytest

from holon.decide.events.audit import audited
from holon.model.commits import (
    AppendBrief,
    OpenTurn,
    QueueMessage,
)
from holon.model.events.briefs import BriefKind
from holon.model.events.event import MessageAdmitted, MessageProcessed
from holon.model.events.reads import EventOrder, EventQuery
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    Priority,
    TaskOrigin,
    TrustLevel,
)
from holon.model.values import (
    AgentId,
    BriefId,
    MessageId,
    TaskId,
)
from holon.ports.store import Store
from tests.contract.store.implementations import Opener
from tests.contract.store.steps import (
    HOUR,
    OTHER,
    born,
    claimed,
    ended,
    make,
    make_turn,
    noted,
    queued,
    settled,
    with_,
)
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_message,
    a_turn,
    an_admission,
    an_agent,
    moment,
)


@pytest.mark.requirement("store:log-names-message-origin-trust-priority-task")
@pytest.mark.requirement("store:log-keeps-the-labels")
async def test_the_log_says_where_a_message_came_from(store: Store) -> None:
    message = a_message(
        kind=MessageKind.TASK_RESULT,
        origin=TaskOrigin(task_id=TaskId("task_9")),
        trust=TrustLevel.TRUSTED_SYSTEM,
        authority_class=AuthorityClass.RUNTIME_INSTRUCTION,
        priority=Priority.NEXT,
        delivery_surface=DeliverySurface.TASK_REJOIN,
        admission_context=AdmissionContext.RUNTIME_OWNED,
        task_id=TaskId("task_9"),
    )
    await store.apply(audited(an_admission(message)))
    newest = (await store.reads.events.events_after(MAIN, 0, limit=100))[-1].event
    assert isinstance(newest, MessageAdmitted)
    assert newest.message_id == "msg_1"
    assert newest.origin == message.origin
    assert newest.trust is TrustLevel.TRUSTED_SYSTEM
    assert newest.authority_class is AuthorityClass.RUNTIME_INSTRUCTION
    assert newest.delivery_surface is DeliverySurface.TASK_REJOIN
    assert newest.admission_context is AdmissionContext.RUNTIME_OWNED
    assert newest.priority is Priority.NEXT
    assert newest.task_id == "task_9"


@pytest.mark.requirement("store:log-keeps-state-transitions")
async def test_the_log_keeps_every_transition_in_order(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    await store.apply(audited(a_commit("claim", claimed("msg_1"))))
    await store.apply(audited(a_commit("settle", settled("msg_1"), at=moment(5))))
    events = await store.reads.events.events_after(MAIN, 1, limit=100)
    assert [type(event.event).__name__ for event in events] == [
        "MessageAdmitted",
        "MessageProcessingStarted",
        "MessageProcessed",
    ]
    assert events[-1].event == MessageProcessed(
        message_id=MessageId("msg_1"), reason="turn_completed"
    )
    assert events[-1].created_at == moment(5)


async def test_briefs_are_paged_backwards_and_found_by_id(store: Store) -> None:
    for n in range(5):
        await make(store, AppendBrief(brief=a_brief(f"brief_{n}")))
    newest = await store.reads.events.briefs_page(MAIN, before=None, limit=2)
    older = await store.reads.events.briefs_page(MAIN, before=newest[-1].id, limit=50)
    assert [brief.id for brief in (*newest, *older)] == [f"brief_{n}" for n in (4, 3, 2, 1, 0)]
    found = await store.reads.events.brief(BriefId("brief_2"))
    assert found is not None
    assert found.id == "brief_2"
    assert await store.reads.events.brief(BriefId("brief_9")) is None


@pytest.mark.requirement("console:replay-is-paged-by-event-seq")
async def test_events_are_read_either_way_between_two_numbers(store: Store) -> None:
    await make(store, an_agent(OTHER))
    for n in range(9):
        await make(store, noted(MAIN, n), noted(OTHER, n))

    async def seqs(query: EventQuery) -> list[int]:
        return [e.event_seq for e in (await store.reads.events.events_page(MAIN, query)).events]

    assert await seqs(EventQuery(limit=3)) == [1, 2, 3]
    assert await seqs(EventQuery(limit=3, order=EventOrder.DESC)) == [10, 9, 8]
    assert await seqs(EventQuery(limit=3, after_seq=3)) == [4, 5, 6]
    assert await seqs(EventQuery(limit=3, before_seq=4, order=EventOrder.DESC)) == [3, 2, 1]
    assert await seqs(EventQuery(limit=9, after_seq=3, before_seq=6)) == [4, 5]
    bounds = await store.reads.events.events_page(MAIN, EventQuery(limit=1, after_seq=10))
    assert (bounds.events, bounds.floor_seq, bounds.last_seq) == ((), 0, 10)


async def test_the_log_of_all_agents_is_one_sequence(store: Store) -> None:
    await make(store, an_agent(OTHER))
    await make(store, noted(MAIN, 1), noted(OTHER, 1), noted(MAIN, 2))
    whole = await store.reads.events.log_after(0, limit=100)
    numbers = [event.log_seq for event in whole]
    assert numbers == sorted(numbers)
    assert numbers[-1] == await store.reads.events.last_log_seq()
    tail = await store.reads.events.log_after(numbers[-3], limit=100)
    assert [event.agent_id for event in tail] == [OTHER, MAIN]


@pytest.mark.requirement("console:a-failure-is-news-until-a-success")
async def test_a_failure_is_the_last_one_until_its_agent_completes_a_turn(store: Store) -> None:
    ada = AgentId("ada")
    await make(store, born("ada"))
    of_main = with_(a_brief("brief_1"), kind=BriefKind.FAILURE)
    of_ada = with_(a_brief("brief_2"), kind=BriefKind.FAILURE, agent_id=ada)
    await make(store, AppendBrief(brief=of_main), AppendBrief(brief=of_ada))
    assert await store.reads.events.last_failure() == of_ada
    turn = with_(a_turn("turn_ada", message_id="msg_ada"), agent_id=ada)
    message = a_message("msg_ada", agent_id=ada)
    await make(store, QueueMessage(message=message), claimed(message.id, agent_id=ada))
    await make(store, OpenTurn(turn=turn))
    at = moment(1_000)
    await make(store, ended(turn, at=at), settled(message.id, agent_id=ada), at=at)
    assert await store.reads.events.last_failure() == of_main, (
        "that agent has not done better since"
    )
    await make_turn(store, 1, at=at)
    assert await store.reads.events.last_failure() is None
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert surface.last_failure == of_main, "an agent's own history keeps it"


async def test_the_log_says_since_when_it_is_kept(empty_store: Store) -> None:
    assert await empty_store.reads.events.logged_since() is None
    await make(empty_store, an_agent())
    await make(empty_store, queued("msg_1"), at=HOUR)
    assert await empty_store.reads.events.logged_since() == START


async def test_the_newest_briefs_come_oldest_of_them_first(store: Store) -> None:
    await make(store, *(AppendBrief(brief=a_brief(f"brief_{n}")) for n in range(4)))
    assert [b.id for b in await store.reads.events.briefs(MAIN, limit=2)] == ["brief_2", "brief_3"]
    assert await store.reads.events.briefs(OTHER, limit=2) == []


async def test_the_newest_message_that_was_settled_by_a_moment_says_when(store: Store) -> None:
    assert await store.reads.events.settled_by(HOUR) is None
    await make(store, *(queued(f"msg_{n}") for n in range(3)))
    for n, at in enumerate((moment(5), moment(7), HOUR)):
        await make(store, settled(f"msg_{n}"), at=at)
    assert await store.reads.events.settled_by(moment(6)) == moment(5)
    assert await store.reads.events.settled_by(moment(7)) == moment(7)
    assert await store.reads.events.settled_by(moment(1)) is None


async def test_a_log_stays_on_its_timeline_when_its_home_is_opened_again(opener: Opener) -> None:
    epochs = list[str | None]()
    for _ in range(2):
        store = opener()
        epochs.append(await store.reads.events.log_epoch())
        await store.close()
    assert epochs[0] == epochs[1]
