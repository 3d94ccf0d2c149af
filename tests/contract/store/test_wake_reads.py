"""What comes due: read on from a place, of one agent, and only what may be offered."""

from typing import Final

import pytest

from holon.model.agents import AgentStatus, TurnRateState
from holon.model.budgets import UpdateTurnRate
from holon.model.commits import (
    CancelTimer,
    Change,
    CreateTimer,
    FireTimer,
    MoveWait,
    OpenWait,
    PutWorkItem,
    QueueMessage,
    RememberActivation,
)
from holon.model.limits import (
    DAY_MS,
    HOUR_MS,
    SECOND_MS,
)
from holon.model.values import AgentId, MessageId, TimerId, WaitId, WorkItemId
from holon.model.wake import TimerStatus, WaitRecord, WaitState
from holon.model.work import PlanStatus
from holon.ports.reads import DuePlace
from holon.ports.store import Store
from tests.contract.store.steps import HOUR, held, in_status, make, queued, with_
from tests.support.builders import (
    MAIN,
    START,
    a_message,
    a_timer,
    a_timer_tick,
    a_wait,
    a_work_item,
    an_activation,
    an_agent,
    moment,
)

HELD: Final = RememberActivation(memory=an_activation(not_before=START))


WORK: Final = WorkItemId("work_1")


@pytest.mark.requirement("store:recheck-reminds-once")
async def test_a_blocked_item_comes_up_when_its_reminder_is_due_and_not_used_up(
    store: Store,
) -> None:
    await make(
        store,
        PutWorkItem(item=a_work_item("due", blocked_by="x", recheck_at=HOUR)),
        PutWorkItem(
            item=a_work_item("used", blocked_by="x", recheck_at=HOUR, recheck_consumed_at=HOUR)
        ),
        PutWorkItem(item=a_work_item("free", plan_status=PlanStatus.NEEDS_INPUT, recheck_at=HOUR)),
    )
    early = await store.reads.agents.snapshot(MAIN, now=START)
    late = await store.reads.agents.snapshot(MAIN, now=HOUR)
    assert early is not None
    assert late is not None
    assert early.due_rechecks == ()
    assert [weighed.item.id for weighed in late.due_rechecks] == ["due"]
    assert late.due_rechecks[0].item.blocked_by == "x"
    assert await store.reads.wake.next_due_at(after=START) == HOUR
    assert await store.reads.wake.due_activations(START, limit=9) == []
    assert await store.reads.wake.due_activations(HOUR, limit=9) == [MAIN]


async def test_timers_come_due_in_order_and_say_whether_a_tick_waits(store: Store) -> None:
    await make(
        store,
        CreateTimer(timer=a_timer("late", next_fire_at=HOUR)),
        CreateTimer(timer=a_timer("early", next_fire_at=START, interval_ms=HOUR_MS)),
        QueueMessage(message=a_timer_tick("msg_1", "late")),
    )
    assert await store.reads.wake.next_due_at(after=moment(-1)) == START
    assert await store.reads.wake.next_due_at(after=START) == HOUR
    due = await store.reads.wake.due_timers(HOUR, limit=9)
    assert [(each.timer.id, each.tick_pending) for each in due] == [
        ("early", False),
        ("late", True),
    ]
    assert await store.reads.wake.due_timers(moment(1), limit=9) == [due[0]]
    ticks = await store.reads.queue.queued_ticks(MAIN, timer_id=TimerId("late"))
    assert ticks == ["msg_1"]
    await make(store, in_status(AgentStatus.STOPPED))
    assert await store.reads.wake.due_timers(HOUR, limit=9) == []


async def test_a_timer_moves_along_its_grid_and_ends(store: Store) -> None:
    timer_id = TimerId("timer_1")
    await make(store, CreateTimer(timer=a_timer(interval_ms=HOUR_MS)))
    await make(store, FireTimer(agent_id=MAIN, timer_id=timer_id, slot=START, next_fire_at=HOUR))
    fired = await store.reads.wake.timer(timer_id)
    assert fired is not None
    assert (fired.fire_count, fired.next_fire_at, fired.last_fired_at) == (1, HOUR, START)
    await make(store, CancelTimer(agent_id=MAIN, timer_id=timer_id))
    cancelled = await store.reads.wake.timer(timer_id)
    assert cancelled is not None
    assert (cancelled.status, cancelled.next_fire_at) == (TimerStatus.CANCELLED, None)
    assert await store.reads.wake.due_timers(HOUR, limit=9) == []


async def test_waits_are_found_by_source_by_item_and_by_deadline(store: Store) -> None:
    wait = a_wait(work_item_id=WORK, deadline_at=HOUR)
    await make(store, PutWorkItem(item=a_work_item()), OpenWait(wait=wait))
    assert await store.reads.wake.waits_on("task_1") == [wait]
    assert await store.reads.wake.item_waits(WORK) == [wait]
    assert await store.reads.wake.next_due_at(after=START) == HOUR
    assert await store.reads.wake.due_waits(HOUR, limit=9) == [wait]
    await make(
        store,
        MoveWait(
            agent_id=MAIN,
            wait_id=wait.id,
            state=WaitState.TRIGGERED,
            by="task_1",
            triggered_by=MessageId("msg_1"),
        ),
    )
    assert await store.reads.wake.due_waits(HOUR, limit=9) == []
    (triggered,) = await store.reads.wake.waits_on("task_1")
    assert (triggered.state, triggered.triggered_by) == (WaitState.TRIGGERED, "msg_1")


async def test_held_work_comes_due_for_an_idle_agent_only(store: Store) -> None:
    held = RememberActivation(memory=an_activation(not_before=HOUR))
    await make(store, PutWorkItem(item=a_work_item()), held)
    assert await store.reads.wake.next_due_at(after=START) == HOUR
    assert await store.reads.wake.due_activations(START, limit=9) == []
    assert await store.reads.wake.due_activations(HOUR, limit=9) == [MAIN]
    assert await store.reads.wake.due_activations(moment(-DAY_MS), limit=9) == [MAIN], (
        "clock set back"
    )
    await make(store, queued("msg_1"))
    assert await store.reads.wake.due_activations(HOUR, limit=9) == []


async def test_timers_come_active_ones_soonest_first_then_ended_ones(store: Store) -> None:
    for n, slot in enumerate((300, 100, 200, 400)):
        timer = a_timer(f"timer_{n}", next_fire_at=moment(slot))
        await make(store, CreateTimer(timer=timer), at=moment(n))
    await make(store, CancelTimer(agent_id=MAIN, timer_id=TimerId("timer_3")), at=moment(9))
    await make(store, CancelTimer(agent_id=MAIN, timer_id=TimerId("timer_2")), at=moment(10))
    seen: list[str] = []
    after: TimerId | None = None
    while page := await store.reads.wake.timers_page(MAIN, after=after, limit=1):
        seen += [timer.id for timer in page]
        after = page[-1].id
    assert seen == ["timer_1", "timer_0", "timer_2", "timer_3"]
    assert [t.id for t in await store.reads.wake.timers_page(MAIN, after=None, limit=9)] == seen


async def test_timers_of_one_moment_are_read_page_by_page_and_none_twice(store: Store) -> None:
    names = [f"t{number}" for number in (3, 1, 4, 0, 2)]
    await make(store, *(CreateTimer(timer=a_timer(name, next_fire_at=START)) for name in names))
    await make(store, CreateTimer(timer=a_timer("later", next_fire_at=HOUR)))
    read: list[str] = []
    place = None
    while page := await store.reads.wake.due_timers(HOUR, limit=2, after=place):
        last = page[-1].timer
        read += [each.timer.id for each in page]
        place = DuePlace(last.next_fire_at or HOUR, last.id)
    assert read == [*names, "later"]
    rest = await store.reads.wake.due_timers(HOUR, limit=9, after=DuePlace(START))
    assert [each.timer.id for each in rest] == ["later"], "all of a moment were read"


async def test_waits_of_one_moment_are_read_page_by_page_and_none_twice(store: Store) -> None:
    waits = [a_wait(f"wait_{n}", source_id=f"task_{n}", deadline_at=HOUR) for n in (2, 0, 1)]
    await make(store, *(OpenWait(wait=wait) for wait in waits))
    read: list[WaitRecord] = []
    place = None
    while page := await store.reads.wake.due_waits(HOUR, limit=2, after=place):
        read += page
        place = DuePlace(HOUR, page[-1].id)
    assert read == waits
    assert await store.reads.wake.due_waits(HOUR, limit=9, after=DuePlace(HOUR)) == []


async def test_what_is_due_of_one_agent_is_its_own_and_nothing_while_it_is_stopped(
    store: Store,
) -> None:
    other = AgentId("other")
    wait = a_wait(deadline_at=HOUR)
    await make(store, an_agent(other), OpenWait(wait=wait))
    await make(store, CreateTimer(timer=a_timer("mine", next_fire_at=HOUR)))
    [due] = await store.reads.wake.due_timers_of(MAIN, HOUR, limit=9)
    assert due.timer.id == "mine"
    assert await store.reads.wake.due_timers_of(MAIN, START, limit=9) == []
    assert await store.reads.wake.due_waits_of(MAIN, HOUR, limit=9) == [wait]
    assert await store.reads.wake.due_timers_of(other, HOUR, limit=9) == []
    assert await store.reads.wake.due_waits_of(other, HOUR, limit=9) == []
    await make(store, in_status(AgentStatus.STOPPED))
    assert await store.reads.wake.due_timers_of(MAIN, HOUR, limit=9) == []
    assert await store.reads.wake.due_waits_of(MAIN, HOUR, limit=9) == []


async def test_an_agent_is_not_due_again_for_a_moment_that_was_looked_at(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()), HELD)
    assert await store.reads.wake.due_activations(HOUR, limit=9, since=moment(-1)) == [MAIN]
    assert await store.reads.wake.due_activations(HOUR, limit=9, since=START) == []


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
async def test_work_is_not_due_while_a_message_waits_for_its_moment(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()), HELD, queued("msg_1"))
    await make(store, held(until_ms=SECOND_MS))
    assert await store.reads.wake.due_activations(moment(1), limit=9) == []
    assert await store.reads.agents.restless(now=moment(1)) == []
    assert await store.reads.wake.due_activations(moment(SECOND_MS), limit=9) == [MAIN]
    assert await store.reads.agents.restless(now=moment(SECOND_MS)) == [MAIN]


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
async def test_those_who_wait_hide_nobody_who_came_due(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()), HELD, queued("msg_1"))
    await make(store, held(until_ms=SECOND_MS))
    late = AgentId("zed")
    await make(
        store,
        an_agent(late),
        QueueMessage(message=a_message("msg_2", agent_id=late)),
    )
    await make(
        store,
        held("msg_2", agent_id=late, until_ms=1),
    )
    assert await store.reads.wake.due_activations(moment(1), limit=1) == [late]


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
@pytest.mark.parametrize("now_ms", [1, -DAY_MS], ids=["in time", "clock set back"])
async def test_an_agent_the_runtime_gave_up_on_is_neither_due_nor_restless_for_work(
    store: Store, now_ms: int
) -> None:
    await make(store, PutWorkItem(item=a_work_item()), HELD)
    await make(store, UpdateTurnRate(agent_id=MAIN, pace=TurnRateState(gave_up=True)))
    assert await store.reads.wake.due_activations(moment(now_ms), limit=9) == []
    assert await store.reads.agents.restless(now=moment(now_ms)) == []


CROSSED: Final = (
    CreateTimer(timer=a_timer(next_fire_at=HOUR)),
    OpenWait(wait=a_wait(deadline_at=HOUR)),
)


@pytest.mark.parametrize("change", CROSSED, ids=lambda change: type(change).__name__)
async def test_nothing_is_due_before_its_moment(store: Store, change: Change) -> None:
    assert await store.reads.wake.next_due_at(after=START) is None
    await make(store, change)
    assert not await store.reads.wake.is_anything_due(moment(HOUR_MS - 1))
    assert await store.reads.wake.is_anything_due(HOUR)
    assert await store.reads.wake.next_due_at(after=START) == HOUR
    assert await store.reads.wake.next_due_at(after=HOUR) is None


async def test_held_work_is_due_like_the_rest(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()))
    assert not await store.reads.wake.is_anything_due(HOUR)
    await make(store, RememberActivation(memory=an_activation(not_before=HOUR)))
    assert not await store.reads.wake.is_anything_due(moment(HOUR_MS - 1))
    assert await store.reads.wake.is_anything_due(HOUR)


async def test_timers_that_were_armed_ahead_of_the_clock_are_found_by_id(store: Store) -> None:
    for name, armed_ms in (("t2", HOUR_MS), ("t1", HOUR_MS), ("then", 0)):
        timer = with_(a_timer(name, next_fire_at=moment(2 * HOUR_MS)), created_at=moment(armed_ms))
        await make(store, CreateTimer(timer=timer), at=moment(armed_ms))
    back = moment(HOUR_MS // 2)
    ahead = await store.reads.wake.timers_ahead(back, limit=9)
    assert [timer.id for timer in ahead] == ["t1", "t2"]
    assert [t.id for t in await store.reads.wake.timers_ahead(back, limit=1)] == ["t1"]
    rest = await store.reads.wake.timers_ahead(back, limit=9, after=TimerId("t1"))
    assert [timer.id for timer in rest] == ["t2"]
    assert await store.reads.wake.timers_ahead(moment(3 * HOUR_MS), limit=9) == []


async def test_an_item_knows_the_waits_it_owns(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()))
    await make(store, OpenWait(wait=a_wait("wait_1", work_item_id=WORK)))
    await make(store, OpenWait(wait=a_wait("wait_2")))
    assert [wait.id for wait in await store.reads.wake.item_waits(WORK)] == ["wait_1"]
    gone = MoveWait(agent_id=MAIN, wait_id=WaitId("wait_1"), state=WaitState.EXPIRED, by="test")
    await make(store, gone)
    assert await store.reads.wake.item_waits(WORK) == []
