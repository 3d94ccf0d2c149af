"""What comes due: read on from a place, of one agent, and only what may be offered."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from holon.decide.events.audit import audited
from holon.model.agents import AgentStatus, TurnRateState
from holon.model.budgets import HoldMessage, UpdateTurnRate
from holon.model.commits import (
    Applied,
    CreateTimer,
    OpenWait,
    PutWorkItem,
    QueueMessage,
    RememberActivation,
)
from holon.model.limits import DAY_MS, HOUR_MS, SECOND_MS, SELF_STARTED_HOLD_MS_MAX
from holon.model.values import AgentId, MessageId
from holon.model.wake import WaitRecord
from holon.ports.reads import DuePlace
from tests.adapters.sqlite.test_reads import Bench, in_status, queued
from tests.support.builders import (
    MAIN,
    START,
    a_commit,
    a_message,
    a_timer,
    a_wait,
    a_work_item,
    an_activation,
    an_agent,
    moment,
)

HOUR: Final = moment(HOUR_MS)
HELD: Final = RememberActivation(memory=an_activation(not_before=START))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """One sleeping agent."""
    made = Bench()
    await made.make(an_agent())
    yield made
    made.connection.close()


def hold(*, until_ms: int) -> HoldMessage:
    return HoldMessage(agent_id=MAIN, message_id=MessageId("msg_1"), until=moment(until_ms))


async def test_timers_of_one_moment_are_read_page_by_page_and_none_twice(bench: Bench) -> None:
    names = [f"t{number}" for number in (3, 1, 4, 0, 2)]
    await bench.make(*(CreateTimer(timer=a_timer(name, next_fire_at=START)) for name in names))
    await bench.make(CreateTimer(timer=a_timer("later", next_fire_at=HOUR)))
    read: list[str] = []
    place = None
    while page := await bench.reads.wake.due_timers(HOUR, limit=2, after=place):
        last = page[-1].timer
        read += [each.timer.id for each in page]
        place = DuePlace(last.next_fire_at or HOUR, last.id)
    assert read == [*names, "later"]
    rest = await bench.reads.wake.due_timers(HOUR, limit=9, after=DuePlace(START))
    assert [each.timer.id for each in rest] == ["later"], "all of a moment were read"


async def test_waits_of_one_moment_are_read_page_by_page_and_none_twice(bench: Bench) -> None:
    waits = [a_wait(f"wait_{n}", source_id=f"task_{n}", deadline_at=HOUR) for n in (2, 0, 1)]
    await bench.make(*(OpenWait(wait=wait) for wait in waits))
    read: list[WaitRecord] = []
    place = None
    while page := await bench.reads.wake.due_waits(HOUR, limit=2, after=place):
        read += page
        place = DuePlace(HOUR, page[-1].id)
    assert read == waits
    assert await bench.reads.wake.due_waits(HOUR, limit=9, after=DuePlace(HOUR)) == []


async def test_what_is_due_of_one_agent_is_its_own_and_nothing_while_it_is_stopped(
    bench: Bench,
) -> None:
    other = AgentId("other")
    wait = a_wait(deadline_at=HOUR)
    await bench.make(an_agent(other), OpenWait(wait=wait))
    await bench.make(CreateTimer(timer=a_timer("mine", next_fire_at=HOUR)))
    [due] = await bench.reads.wake.due_timers_of(MAIN, HOUR, limit=9)
    assert due.timer.id == "mine"
    assert await bench.reads.wake.due_timers_of(MAIN, START, limit=9) == []
    assert await bench.reads.wake.due_waits_of(MAIN, HOUR, limit=9) == [wait]
    assert await bench.reads.wake.due_timers_of(other, HOUR, limit=9) == []
    assert await bench.reads.wake.due_waits_of(other, HOUR, limit=9) == []
    await bench.make(in_status(AgentStatus.STOPPED))
    assert await bench.reads.wake.due_timers_of(MAIN, HOUR, limit=9) == []
    assert await bench.reads.wake.due_waits_of(MAIN, HOUR, limit=9) == []


async def test_an_agent_is_not_due_again_for_a_moment_that_was_looked_at(bench: Bench) -> None:
    await bench.make(PutWorkItem(item=a_work_item()), HELD)
    assert await bench.reads.wake.due_activations(HOUR, limit=9, since=moment(-1)) == [MAIN]
    assert await bench.reads.wake.due_activations(HOUR, limit=9, since=START) == []


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
async def test_work_is_not_due_while_a_message_waits_for_its_moment(bench: Bench) -> None:
    await bench.make(PutWorkItem(item=a_work_item()), HELD, queued("msg_1"))
    await bench.make(hold(until_ms=SECOND_MS))
    assert await bench.reads.wake.due_activations(moment(1), limit=9) == []
    assert await bench.reads.agents.restless(now=moment(1)) == []
    assert await bench.reads.wake.due_activations(moment(SECOND_MS), limit=9) == [MAIN]
    assert await bench.reads.agents.restless(now=moment(SECOND_MS)) == [MAIN]


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
async def test_those_who_wait_hide_nobody_who_came_due(bench: Bench) -> None:
    await bench.make(PutWorkItem(item=a_work_item()), HELD, queued("msg_1"))
    await bench.make(hold(until_ms=SECOND_MS))
    late = AgentId("zed")
    await bench.make(
        an_agent(late),
        QueueMessage(message=a_message("msg_2", agent_id=late)),
    )
    await bench.make(
        HoldMessage(agent_id=late, message_id=MessageId("msg_2"), until=moment(1)),
    )
    assert await bench.reads.wake.due_activations(moment(1), limit=1) == [late]


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
@pytest.mark.parametrize("now_ms", [1, -DAY_MS], ids=["in time", "clock set back"])
async def test_an_agent_the_runtime_gave_up_on_is_neither_due_nor_restless_for_work(
    bench: Bench, now_ms: int
) -> None:
    await bench.make(PutWorkItem(item=a_work_item()), HELD)
    await bench.make(UpdateTurnRate(agent_id=MAIN, pace=TurnRateState(gave_up=True)))
    assert await bench.reads.wake.due_activations(moment(now_ms), limit=9) == []
    assert await bench.reads.agents.restless(now=moment(now_ms)) == []


async def test_a_hold_that_ends_later_than_any_can_is_void(bench: Bench) -> None:
    await bench.make(queued("msg_1"))
    await bench.make(hold(until_ms=SELF_STARTED_HOLD_MS_MAX))
    held = await bench.reads.agents.snapshot(MAIN, now=START)
    assert held is not None
    assert (held.heads, held.slowed_until) == ((), moment(SELF_STARTED_HOLD_MS_MAX))
    assert await bench.reads.budgets.void_holds(now=START) == []
    assert await bench.reads.agents.restless(now=START) == []
    back = moment(-1)
    void = await bench.reads.agents.snapshot(MAIN, now=back)
    assert void is not None
    assert [head.message_id for head in void.heads] == ["msg_1"]
    assert void.slowed_until is None
    assert await bench.reads.budgets.void_holds(now=back) == [MAIN]
    assert await bench.reads.agents.restless(now=back) == [MAIN]
    await bench.make(in_status(AgentStatus.PAUSED))
    assert await bench.reads.budgets.void_holds(now=back) == []


async def test_the_log_says_since_when_it_is_kept(bench: Bench) -> None:
    later = audited(a_commit("later", queued("msg_1"), at=HOUR))
    assert await bench.store.apply(later) == Applied()
    assert await bench.reads.events.logged_since() == START
    fresh = Bench()
    assert await fresh.reads.events.logged_since() is None
    fresh.connection.close()
