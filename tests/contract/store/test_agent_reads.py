"""Agents: what is kept of each, what scheduling decides on, and what surfaces show."""

from typing import Final

import pytest

from holon.model.agents import AgentContext, AgentStatus, AgentTotals
from holon.model.commits import (
    AppendBrief,
    Change,
    CreateTimer,
    FocusWorkItem,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    RecordClosure,
    RememberActivation,
    SetModelOverride,
    SettleTurn,
    TakeWakeHints,
)
from holon.model.limits import WORK_ITEMS_WEIGHED_COUNT_MAX
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import Priority
from holon.model.turns.compaction import RememberContext
from holon.model.turns.turn import Completed
from holon.model.values import AgentId, MessageId, WaitId, WorkItemId
from holon.model.wake import WaitKind, WaitState
from holon.model.work import PlanStatus
from holon.ports.store import Store
from tests.contract.store.steps import HOUR, claimed, in_status, make, queued, settled
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_hint,
    a_message,
    a_terminal,
    a_timer,
    a_turn,
    a_wait,
    a_work_item,
    an_activation,
    an_agent,
    moment,
)

WORK: Final = WorkItemId("work_1")


async def test_an_unknown_agent_is_nothing(store: Store) -> None:
    nobody = AgentId("nobody")
    assert await store.reads.agents.agent(nobody) is None
    assert await store.reads.agents.snapshot(nobody, now=START) is None
    assert await store.reads.queue.admission_target(nobody) is None
    assert await store.reads.events.event_bounds(nobody) == (0, 0)
    assert await store.reads.queue.message(MessageId("msg_x")) is None


async def test_the_snapshot_shows_the_oldest_message_of_each_band(store: Store) -> None:
    for n, priority in enumerate([Priority.NORMAL, Priority.NORMAL, Priority.INTERJECT]):
        await make(store, queued(f"msg_{n}", priority))
    await make(store, queued("msg_9", Priority.BACKGROUND))
    await make(store, claimed("msg_9", generation=4, passed_over=2))
    snapshot = await store.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert [head.message_id for head in snapshot.heads] == ["msg_2", "msg_0"]
    assert snapshot.claimed_message_id == "msg_9"
    assert (snapshot.passed_over, snapshot.agent.generation) == (2, 4)
    assert await store.reads.queue.interjections(MAIN, limit=9) == [
        a_message("msg_2", priority=Priority.INTERJECT)
    ]


async def test_the_snapshot_weighs_items_with_their_waits_and_memory(store: Store) -> None:
    wait = a_wait(kind=WaitKind.OPERATOR, work_item_id=WORK, source_id=None)
    await make(
        store,
        PutWorkItem(item=a_work_item("work_1")),
        PutWorkItem(item=a_work_item("work_2", created_at=moment(-5))),
        FocusWorkItem(agent_id=MAIN, work_item_id=WORK),
        OpenWait(wait=wait),
        OpenWait(wait=a_wait("wait_2", kind=WaitKind.REST)),
        RememberActivation(memory=an_activation("work_2")),
        ParkWakeHint(hint=a_hint()),
        CreateTimer(timer=a_timer()),
    )
    snapshot = await store.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert snapshot.current is not None
    assert snapshot.current.item.id == "work_1"
    assert snapshot.current.waits == (wait,)
    assert snapshot.current.activation is None
    assert [weighed.item.id for weighed in snapshot.queued] == ["work_2"]
    assert snapshot.queued[0].activation == an_activation("work_2")
    assert [found.id for found in snapshot.agent_waits] == ["wait_2"]
    assert snapshot.hints == (a_hint(),)
    assert snapshot.active_timer_count == 1


async def test_items_that_may_run_are_weighed_first_when_there_are_too_many(store: Store) -> None:
    blocked = [
        PutWorkItem(item=a_work_item(f"blocked_{n:03}", blocked_by="x"))
        for n in range(WORK_ITEMS_WEIGHED_COUNT_MAX)
    ]
    runnable = PutWorkItem(item=a_work_item("newest", created_at=HOUR))
    await make(store, *blocked, runnable)
    snapshot = await store.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert len(snapshot.queued) == WORK_ITEMS_WEIGHED_COUNT_MAX
    assert snapshot.queued[-1].item.id == "newest", "still in the order of creation"


async def test_a_wait_on_an_item_that_is_not_weighed_is_known_all_the_same(store: Store) -> None:
    runnable = [
        PutWorkItem(item=a_work_item(f"work_{n:03}")) for n in range(WORK_ITEMS_WEIGHED_COUNT_MAX)
    ]
    asked = a_wait(kind=WaitKind.OPERATOR, work_item_id=WorkItemId("asked"), source_id=None)
    resting = a_wait("wait_2", kind=WaitKind.REST)
    await make(
        store,
        *runnable,
        PutWorkItem(item=a_work_item("asked")),
        OpenWait(wait=asked),
        OpenWait(wait=resting),
    )
    snapshot = await store.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert "asked" not in [weighed.item.id for weighed in snapshot.queued]
    assert [wait.id for wait in snapshot.waits] == [resting.id, asked.id]


async def test_an_agent_carries_what_its_turns_added_up_to(store: Store) -> None:
    turn = a_turn()
    usage = TokenUsage(input_tokens=10, output_tokens=4)
    await make(store, queued("msg_1"))
    await make(store, claimed("msg_1"), OpenTurn(turn=turn))
    await make(
        store,
        SettleTurn(
            agent_id=MAIN,
            turn_id=turn.turn_id,
            terminal=a_terminal(turn),
            usage=usage,
            round_count=2,
        ),
        settled("msg_1"),
        AppendBrief(brief=a_brief(turn_id=turn.turn_id)),
        SetModelOverride(agent_id=MAIN, model="m"),
    )
    state = await store.reads.agents.agent(MAIN)
    assert state is not None
    assert state.totals == AgentTotals(
        turn_index=1, message_count=1, model_round_count=2, input_tokens=10, output_tokens=4
    )
    assert state.last_terminal == a_terminal(turn)
    assert state.last_brief_at == START
    assert state.model.override_model == "m"
    assert state.focus.open_turn_id is None


async def test_a_context_is_what_was_last_remembered_and_never_moves_back(store: Store) -> None:
    assert await store.reads.agents.agent_context(MAIN) == AgentContext()
    moved = AgentContext(history_from_turn=13, compression_epoch=1, recap=("turn 1", "ä"))
    await make(store, RememberContext(agent_id=MAIN, context=moved))
    assert await store.reads.agents.agent_context(MAIN) == moved
    assert await store.reads.agents.agent_context(AgentId("nobody")) == AgentContext()


RESTLESS: Final[dict[str, tuple[Change, ...]]] = {
    "a queued message": (queued("msg_1"),),
    "a claimed message": (queued("msg_1"), claimed("msg_1")),
    "a parked hint": (ParkWakeHint(hint=a_hint()),),
    "an item that may run": (PutWorkItem(item=a_work_item()),),
    "an item whose reminder has come": (
        PutWorkItem(item=a_work_item(blocked_by="x", recheck_at=START)),
    ),
    "an item that was held back until now": (
        PutWorkItem(item=a_work_item()),
        RememberActivation(memory=an_activation(not_before=START)),
    ),
    "an item that moved since it was offered": (
        PutWorkItem(item=a_work_item()),
        RememberActivation(memory=an_activation(not_before=HOUR)),
        PutWorkItem(item=a_work_item(revision=2)),
    ),
    "an item whose wait has ended": (
        PutWorkItem(item=a_work_item()),
        OpenWait(wait=a_wait(work_item_id=WORK)),
        MoveWait(agent_id=MAIN, wait_id=WaitId("wait_1"), state=WaitState.RESOLVED, by="operator"),
    ),
}


QUIET: Final[dict[str, tuple[Change, ...]]] = {
    "nothing": (),
    "history": (queued("msg_1"), settled("msg_1")),
    "a hint that was taken": (
        ParkWakeHint(hint=a_hint()),
        TakeWakeHints(agent_id=MAIN, source_keys=("github",)),
    ),
    "a blocked item": (PutWorkItem(item=a_work_item(blocked_by="x", recheck_at=HOUR)),),
    "an item that needs input": (
        PutWorkItem(item=a_work_item(plan_status=PlanStatus.NEEDS_INPUT)),
    ),
    "an item that waits": (
        PutWorkItem(item=a_work_item()),
        OpenWait(wait=a_wait(work_item_id=WORK)),
    ),
    "an item that is held back": (
        PutWorkItem(item=a_work_item()),
        RememberActivation(memory=an_activation(not_before=HOUR)),
    ),
    "a timer": (CreateTimer(timer=a_timer()),),
    "a queue that may not run": (queued("msg_1"), in_status(AgentStatus.PAUSED)),
    "work that may not run": (PutWorkItem(item=a_work_item()), in_status(AgentStatus.STOPPED)),
}


@pytest.mark.parametrize("changes", RESTLESS.values(), ids=RESTLESS)
async def test_an_agent_is_restless_for(store: Store, changes: tuple[Change, ...]) -> None:
    await make(store, an_agent("another, which sleeps"), *changes)
    assert await store.reads.agents.restless(now=START) == [MAIN]


@pytest.mark.parametrize("changes", QUIET.values(), ids=QUIET)
async def test_an_agent_is_not_restless_for(store: Store, changes: tuple[Change, ...]) -> None:
    await make(store, *changes, RecordClosure(agent_id=MAIN, closure=Completed()))
    assert await store.reads.agents.restless(now=START) == []


async def test_a_claim_counts_whatever_the_posture(store: Store) -> None:
    await make(store, queued("msg_1"), claimed("msg_1"), in_status(AgentStatus.STOPPED))
    assert await store.reads.agents.restless(now=START) == [MAIN]
