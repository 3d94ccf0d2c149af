"""Commits: in order, whole or not at all, once each, and seen by every read that follows."""

from collections.abc import Collection

import msgspec

from holon.decide.events.audit import audited
from holon.model.commits import (
    AgentGeneration,
    Applied,
    ConstraintRefused,
    ExpectationFailed,
    LoggedEvent,
    QueueMessage,
)
from holon.model.events.event import ControlApplied
from holon.model.queue import (
    MessageState,
)
from holon.model.values import AgentId, MessageId, TurnId
from holon.ports.store import Store
from tests.contract.store.implementations import Opener
from tests.contract.store.steps import claimed, noted, settled, state_of
from tests.support.builders import (
    MAIN,
    a_commit,
    a_message,
    an_admission,
    an_agent,
)


async def test_commits_are_applied_in_the_order_they_were_submitted(store: Store) -> None:
    tickets = [store.submit(audited(an_admission(a_message(f"msg_{n}")))) for n in range(50)]
    assert [await ticket.outcome() for ticket in tickets] == [Applied()] * 50
    entries = [await store.reads.queue.message(MessageId(f"msg_{n}")) for n in range(50)]
    seqs = [entry.seq for entry in entries if entry is not None]
    assert seqs == sorted(seqs)
    assert len(seqs) == 50


async def test_a_commit_applied_twice_counts_once(store: Store) -> None:
    commit = an_admission(a_message())
    assert await store.apply(audited(commit)) == Applied()
    bounds = await store.reads.events.event_bounds(MAIN)
    assert await store.apply(audited(commit)) == Applied(replayed=True)
    assert await store.reads.events.event_bounds(MAIN) == bounds
    target = await store.reads.queue.admission_target(MAIN)
    assert target is not None
    assert target.queued_count == 1


async def test_a_refused_commit_changed_nothing(store: Store) -> None:
    before = await store.reads.events.event_bounds(MAIN)
    half_good = a_commit("bad", QueueMessage(message=a_message()), claimed("msg_unknown"))
    outcome = await store.apply(audited(half_good))
    assert outcome == ConstraintRefused(constraint="messages_row_missing")
    assert await state_of(store, "msg_1") is None
    assert await store.reads.events.event_bounds(MAIN) == before


async def test_a_refused_commit_may_be_submitted_again_under_the_same_id(store: Store) -> None:
    early = a_commit("claim", claimed("msg_1"))
    assert isinstance(await store.apply(audited(early)), ConstraintRefused)
    await store.apply(audited(an_admission(a_message())))
    assert await store.apply(audited(early)) == Applied()


async def test_a_refused_commit_does_not_disturb_the_others_of_its_group(store: Store) -> None:
    good, bad, also_good = (
        store.submit(audited(an_admission(a_message("msg_1")))),
        store.submit(audited(an_admission(a_message("msg_2", agent_id=AgentId("nobody"))))),
        store.submit(audited(an_admission(a_message("msg_3")))),
    )
    assert await good.outcome() == Applied()
    assert await bad.outcome() == ConstraintRefused(constraint="row_refers_to_nothing")
    assert await also_good.outcome() == Applied()


async def test_a_stale_lane_cannot_write(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    await store.apply(audited(a_commit("claim", claimed("msg_1", generation=3))))
    fence = AgentGeneration(agent_id=MAIN, generation=2)
    outcome = await store.apply(audited(a_commit("stale", settled("msg_1"), expects=(fence,))))
    assert outcome == ExpectationFailed(expect=fence, found="generation 3")
    assert await state_of(store, "msg_1") is MessageState.CLAIMED


async def test_event_numbers_have_no_gap_also_across_restarts(opener: Opener) -> None:
    for life in range(3):
        store = opener()
        if life == 0:
            await store.apply(audited(a_commit("birth", an_agent())))
        for n in range(4):
            await store.apply(audited(a_commit(f"note:{life}:{n}", noted(), noted())))
        await store.apply(audited(a_commit(f"refused:{life}", noted(), claimed("msg_unknown"))))
        events = await store.reads.events.events_after(MAIN, 0, limit=100)
        assert [event.event_seq for event in events] == list(range(1, 2 + 8 * (life + 1)))
        assert await store.reads.events.event_bounds(MAIN) == (0, 1 + 8 * (life + 1))
        await store.close()


async def test_observers_are_told_once_which_agents_a_commit_touched(store: Store) -> None:
    told: list[Collection[AgentId]] = []
    store.observe(told.append)
    await store.apply(audited(a_commit("other", an_agent("other"))))
    assert [set(agents) for agents in told] == [{AgentId("other")}]
    await store.apply(audited(a_commit("other", an_agent("other"))))
    await store.apply(audited(a_commit("refused", claimed("msg_unknown"))))
    assert len(told) == 1, "a replayed or refused commit touches nobody"


async def test_reads_see_every_commit_whose_outcome_is_known(store: Store) -> None:
    for n in range(20):
        await store.apply(audited(an_admission(a_message(f"msg_{n}"))))
        assert await state_of(store, f"msg_{n}") is MessageState.QUEUED


async def test_a_store_logs_the_events_it_is_handed_and_makes_up_none(store: Store) -> None:
    plain = audited(a_commit("note:handed", noted()))
    handed = LoggedEvent(
        agent_id=MAIN,
        event=ControlApplied(action="as handed over", request_id="req_9"),
        turn_id=TurnId("turn_9"),
    )
    (change,) = plain.changes
    silent = msgspec.structs.replace(change, events=())
    told = msgspec.structs.replace(change, events=(handed, handed))
    before = (await store.reads.events.event_bounds(MAIN))[1]
    await store.apply(msgspec.structs.replace(plain, changes=(silent, told)))
    found = await store.reads.events.events_after(MAIN, before, limit=10)
    assert [each.event for each in found] == [handed.event, handed.event]
    assert [each.event_seq for each in found] == [before + 1, before + 2]
    assert [each.turn_id for each in found] == ["turn_9", "turn_9"]
