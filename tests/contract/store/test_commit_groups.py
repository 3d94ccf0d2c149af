"""Commits submitted together come out as if they had been submitted one by one."""

from collections.abc import Sequence

from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAdmits,
    Applied,
    Commit,
    ConstraintRefused,
    ExpectationFailed,
    KeyAlreadyUsed,
    QueueMessage,
    RecordEvent,
    SetAgentStatus,
)
from holon.model.events.event import AgentCreated, MessageAdmitted
from holon.model.queue import AdmissionContext, MessageState
from holon.model.values import AgentId, MessageId
from holon.ports.store import Store
from tests.contract.store.steps import (
    claimed,
    state_of,
    submit_all,
)
from tests.support.builders import MAIN, a_commit, a_message, an_admission, an_agent

MANY = 150


def admissions(count: int) -> list[Commit]:
    return [an_admission(a_message(f"msg_{n}"), key=f"key-{n}") for n in range(count)]


def guarded(message_id: str) -> Commit:
    """An admission as the door makes it: only while the agent takes messages."""
    return Commit(
        commit_id=f"admit:{message_id}",
        at=a_message().created_at,
        changes=(QueueMessage(message=a_message(message_id)),),
        expects=(AgentAdmits(agent_id=MAIN),),
    )


async def assert_these_came_in(store: Store, messages: Sequence[str]) -> None:
    """One event each, in the order they came, numbered without a gap behind the agent's birth."""
    _, last_seq = await store.reads.events.event_bounds(MAIN)
    events = await store.reads.events.events_after(MAIN, 0, limit=MANY + 10)
    assert [each.event_seq for each in events] == list(range(1, last_seq + 1))
    told = [each.event for each in events if isinstance(each.event, MessageAdmitted)]
    assert [event.message_id for event in told] == list(messages)
    asked = [MessageId(message_id) for message_id in messages]
    entries = await store.reads.queue.messages(MAIN, asked)
    assert [entry.message.id for entry in entries] == asked
    seqs = [entry.seq for entry in entries]
    assert seqs == sorted(seqs)


async def test_many_admissions_come_in_in_their_order(store: Store) -> None:
    assert await submit_all(store, admissions(MANY)) == [Applied()] * MANY
    target = await store.reads.queue.admission_target(MAIN)
    assert target is not None
    assert target.queued_count == MANY
    await assert_these_came_in(store, [f"msg_{n}" for n in range(MANY)])


async def test_a_used_key_among_many_admissions_is_found_and_the_others_come_in(
    store: Store,
) -> None:
    commits = admissions(MANY)
    commits[20] = an_admission(a_message("msg_again"), key="key-3", digest="another")
    results = await submit_all(store, commits)
    assert results[20] == KeyAlreadyUsed(message_id=MessageId("msg_3"), same_body=False)
    assert results[:20] + results[21:] == [Applied()] * (MANY - 1)
    others = [f"msg_{n}" for n in range(MANY) if n != 20]
    await assert_these_came_in(store, others)


async def test_a_message_no_door_may_let_in_is_refused_by_name_among_many(store: Store) -> None:
    commits = admissions(MANY)
    forged = a_message("msg_forged", admission_context=AdmissionContext.PUBLIC_UNAUTHENTICATED)
    commits[-1] = an_admission(forged)
    results = await submit_all(store, commits)
    assert results[-1] == ConstraintRefused(constraint="messages_operator_is_proven")
    assert results[:-1] == [Applied()] * (MANY - 1)


async def test_what_is_queued_after_a_stop_together_with_it_is_refused(store: Store) -> None:
    stop = SetAgentStatus(
        agent_id=MAIN, status=AgentStatus.STOPPED, reason="asked for", new_generation=1
    )
    before, after = guarded("msg_before"), guarded("msg_after")
    results = await submit_all(store, [before, a_commit("stop", stop), after])
    assert results[:2] == [Applied(), Applied()]
    assert isinstance(results[2], ExpectationFailed)
    await assert_these_came_in(store, ["msg_before"])


async def test_a_message_may_be_claimed_together_with_what_queues_it(store: Store) -> None:
    claim = claimed("msg_0")
    commits = [*admissions(3), a_commit("claim", claim), an_admission(a_message("msg_late"))]
    assert await submit_all(store, commits) == [Applied()] * 5
    assert await state_of(store, "msg_0") is MessageState.CLAIMED


async def test_a_known_commit_among_many_admissions_counts_once(store: Store) -> None:
    commits = admissions(MANY)
    await submit_all(store, commits[:1])
    results = await submit_all(store, commits)
    assert results == [Applied(replayed=True), *[Applied()] * (MANY - 1)]
    await assert_these_came_in(store, [f"msg_{n}" for n in range(MANY)])


async def test_an_event_of_an_agent_that_does_not_exist_is_refused_alone(store: Store) -> None:
    ghost = RecordEvent(agent_id=AgentId("ghost"), event=AgentCreated(status=AgentStatus.ASLEEP))
    before, after = an_admission(a_message("msg_0")), an_admission(a_message("msg_1"))
    results = await submit_all(store, [before, a_commit("ghost", ghost), after])
    assert results == [Applied(), ConstraintRefused(constraint="row_refers_to_nothing"), Applied()]
    await assert_these_came_in(store, ["msg_0", "msg_1"])


async def test_an_event_may_follow_the_birth_of_its_agent_in_one_commit(store: Store) -> None:
    event = RecordEvent(agent_id=AgentId("new"), event=AgentCreated(status=AgentStatus.ASLEEP))
    assert await submit_all(store, [a_commit("new", an_agent("new"), event)]) == [Applied()]
