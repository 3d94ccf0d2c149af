"""Time passes: timers fire on their grid, waits run out, and nobody is forgotten."""

from datetime import timedelta

import pytest

from holon.model.commit import AdvanceTask
from holon.model.ids import AgentId
from holon.model.limits import DUE_BATCH_COUNT_MAX, WAIT_DEADLINE_DEFAULT_MS
from holon.model.task import TaskStatus
from holon.model.wake_event import TimerFired
from holon.testing.builders import MAIN, a_task, an_identity
from holon.testing.fault_store import DiskFault
from holon.testing.manual_clock import DAWN
from tests.runtime.cast import rule, says
from tests.runtime.house import House, run_house

SLOW = rule("slow", says("done", after_ms=60_000))


async def slots_ms(house: House, agent: str = MAIN) -> list[int]:
    """When the timers of an agent fired, in milliseconds since the story began."""
    fired = [e for e in await house.events(agent) if isinstance(e, TimerFired)]
    return [int((event.slot - DAWN).total_seconds() * 1_000) for event in fired]


@pytest.mark.requirement("runtime:timer-wakes-a-sleeping-agent")
@pytest.mark.requirement("continuation:timer-tick-may-resume-local-work")
def test_a_one_shot_timer_wakes_its_agent_once() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=5_000, summary="water the plants")
        await house.rest(4_999)
        assert house.model.requests == []
        await house.rest(1)
        await house.rest(600_000)
        assert len(house.model.requests) == 1
        assert "water the plants" in house.model.said()
        assert house.rows("select status, next_fire_at from timers") == [("completed", None)]
        assert (await house.agent()).posture.last_wake_reason == "timer_tick"

    run_house(story)


@pytest.mark.requirement("runtime:timer-grid-holds")
def test_a_repeating_timer_keeps_its_grid_over_a_long_turn() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=7_000)
        await house.rest(2_000)
        await house.prompt("slow work")
        await house.rest(100_000)
        assert [slot % 7_000 for slot in await slots_ms(house)] == [1_000] * 15

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:one-pending-tick-per-timer")
def test_a_busy_agent_collects_one_tick_not_a_heap() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=1_000)
        await house.rest(59_500)
        assert house.rows("select count(*) from messages where timer_id is not null") == [(1,)]
        assert len(await slots_ms(house)) == 59

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:timer-grid-holds")
def test_downtime_is_caught_up_with_one_fire_and_the_grid_stays() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=60_000)
        await house.rest(2_000)
        assert len(house.model.requests) == 1
        await house.restart(down_ms=1_000_000)
        await house.rest(1)
        assert len(house.model.requests) == 2
        await house.rest(60_000)
        assert len(house.model.requests) == 3
        assert (await slots_ms(house))[-1] % 60_000 == 1_000

    run_house(story)


@pytest.mark.requirement("runtime:nobody-is-forgotten-after-a-restart")
def test_timers_of_agents_nobody_touched_since_the_restart_fire() -> None:
    async def story(house: House) -> None:
        for name in ("ada", "bob", "cy"):
            await house.host.control.create_agent(an_identity(name))
            await house.host.timers.create(AgentId(name), after_ms=3_600_000, summary=name)
        await house.restart()
        await house.rest(3_700_000)
        assert sorted(request.agent_id for request in house.model.requests) == ["ada", "bob", "cy"]

    run_house(story)


def test_a_timer_that_comes_due_while_its_agent_is_stopped_fires_after_the_resume() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=10_000)
        await house.host.control.stop(MAIN)
        await house.rest(95_000)
        assert await slots_ms(house) == []
        await house.host.control.resume(MAIN)
        await house.rest(1)
        assert len(house.model.requests) == 1
        await house.rest(10_000)
        assert await slots_ms(house) == [1_000, 101_000]

    run_house(story)


def test_an_earlier_timer_is_not_overlooked_while_the_wheel_sleeps_for_a_later_one() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=60_000, summary="the later one")
        await house.rest(1_000)
        await house.host.timers.create(MAIN, after_ms=1_000, summary="the earlier one")
        await house.rest(1_001)
        assert "the earlier one" in house.model.said()
        await house.rest(60_000)
        assert "the later one" in house.model.said()

    run_house(story)


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_a_clock_that_is_set_fires_each_slot_at_most_once(jump_ms: int) -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=60_000)
        await house.rest(2_000)
        house.clock.jump(jump_ms)
        await house.rest(1_000)
        await house.rest(2 * 3_600_000)
        slots = await slots_ms(house)
        assert len(slots) == len(set(slots)) > 30
        assert all(slot % 60_000 == 1_000 for slot in slots)

    run_house(story)


def test_many_timers_of_one_moment_all_fire() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        count = DUE_BATCH_COUNT_MAX + 10
        for _ in range(count):
            await house.host.timers.create(MAIN, after_ms=60_000)
        await house.rest(61_000)
        assert len(await slots_ms(house)) == count

    run_house(story)


def test_a_full_disk_delays_a_fire_and_loses_none() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000)
        house.disk.fault = DiskFault.FULL
        await house.rest(60_000)
        assert house.model.requests == []
        house.disk.fault = DiskFault.NONE
        await house.rest(60_000)
        assert len(house.model.requests) == 1

    run_house(story)


@pytest.mark.requirement("runtime:waits-run-out-loudly")
def test_a_wait_that_nothing_ends_runs_out_and_says_so() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(a_task())
        wait_id = await house.host.tasks.wait_for(a_task().id)
        await house.rest(WAIT_DEADLINE_DEFAULT_MS + 1_000)
        assert house.rows("select state from waits") == [("expired",)]
        assert f"Nothing came in time for wait {wait_id}" in house.model.said()
        late = AdvanceTask(agent_id=MAIN, task_id=a_task().id, status=TaskStatus.COMPLETED)
        assert await house.host.tasks.report(late)
        await house.rest(1_000)
        assert len(house.model.requests) == 2

    run_house(story)


def test_a_wait_that_ends_in_time_does_not_run_out() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(a_task())
        await house.host.tasks.wait_for(a_task().id)
        done = AdvanceTask(agent_id=MAIN, task_id=a_task().id, status=TaskStatus.COMPLETED)
        await house.host.tasks.report(done)
        await house.rest(WAIT_DEADLINE_DEFAULT_MS + 1_000)
        assert house.rows("select state from waits") == [("resolved",)]
        assert len(house.model.requests) == 1
        assert house.clock.now() - (await house.briefs())[0].created_at > timedelta(hours=20)

    run_house(story)
