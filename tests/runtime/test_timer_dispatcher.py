"""Time passes: timers fire on their grid, waits run out, and nobody is forgotten."""

from datetime import timedelta

import anyio
import pytest

from holon.decide.queue import admission
from holon.decide.queue.admission import Admitted
from holon.model.commits import AdvanceTask
from holon.model.errors import Refusal, RefusalCode, RefusedError
from holon.model.limits import DUE_BATCH_COUNT_MAX, HOUR_MS, WAIT_DEADLINE_DEFAULT_MS
from holon.model.queue import IngressRequest, MessageKind
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId
from holon.model.wake import TimerFired
from holon.runtime.wake import dispatcher
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_messages, kept_timers, kept_waits, wait_states
from tests.support.builders import MAIN, a_task, an_identity
from tests.support.fault_store import DiskFault
from tests.support.manual_clock import DAWN

pytestmark = pytest.mark.long

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
        [timer] = kept_timers(house)
        assert (timer.status, timer.next_fire_at) == ("completed", None)
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
        assert len(kept_messages(house, kind=MessageKind.TIMER_TICK)) == 1
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
def test_a_clock_that_is_set_fires_each_slot_once_each_time_it_comes(jump_ms: int) -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=60_000)
        await house.rest(2_000)
        house.clock.jump(jump_ms)
        await house.rest(1_000)
        await house.rest(2 * 3_600_000)
        slots = await slots_ms(house)
        assert len(slots) in (120, 121, 122)
        again = len(slots) - len(set(slots))
        assert again == (0 if jump_ms > 0 else 1), "what came when it had come is another fire"
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
        assert [wait.state for wait in kept_waits(house)] == ["expired"]
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
        assert [wait.state for wait in kept_waits(house)] == ["resolved"]
        assert len(house.model.requests) == 1
        assert house.clock.now() - (await house.briefs())[0].created_at > timedelta(hours=20)

    run_house(story)


@pytest.mark.requirement("runtime:nobody-needs-rescue")
@pytest.mark.parametrize("of_one_moment", [True, False])
def test_an_agent_that_takes_no_ticks_keeps_nobody_else_from_theirs(
    monkeypatch: pytest.MonkeyPatch, *, of_one_moment: bool
) -> None:
    monkeypatch.setattr(admission, "QUEUED_PER_AGENT_COUNT_MAX", 3)
    monkeypatch.setattr(dispatcher, "DUE_BATCH_COUNT_MAX", 4)
    full = AgentId("full")

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(full))
        await house.host.control.pause(full)
        for number in range(3):
            await house.webhook(f"event {number}", agent=full)
        for number in range(9):
            after_ms = 1_000 if of_one_moment else 1_000 + number
            await house.host.timers.create(full, after_ms=after_ms)
        await house.host.timers.create(MAIN, after_ms=1_000, summary="mine")
        await house.host.timers.create(MAIN, after_ms=60_000, summary="mine as well")
        await house.rest(HOUR_MS)
        assert len(await slots_ms(house)) == len(house.model.requests) == 2
        assert await slots_ms(house, full) == []
        await house.host.control.resume(full)
        await house.rest(1_000)
        assert len(await slots_ms(house, full)) == 9

    run_house(story)


def test_a_tick_that_is_refused_while_its_agent_changes_is_tried_once_more() -> None:
    async def story(house: House) -> None:
        door = house.host._ingress
        honest = door.judge
        tries = 0

        async def judge(request: IngressRequest) -> Admitted:
            nonlocal tries
            tries += 1
            if tries > 1:
                return await honest(request)
            await house.clock.sleep_for(10)  # meanwhile a commit touches the agent
            raise RefusedError(Refusal(code=RefusalCode.BUSY, message="full", hint="later"))

        await house.host.timers.create(MAIN, after_ms=1_000)
        await house.rest(999)
        door.judge = judge  # type: ignore[method-assign]
        await house.rest(5)
        await house.host.timers.create(MAIN, after_ms=10 * HOUR_MS)
        await house.rest(1_000)
        assert (tries, len(await slots_ms(house))) == (2, 1)

    run_house(story)


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
def test_overdue_timers_of_stopped_agents_cost_a_pass_nothing() -> None:
    costs = [_steps_of_a_pass(timer_count) for timer_count in (10, 300)]
    assert costs[1] < costs[0] + 100


def _steps_of_a_pass(timer_count: int) -> int:
    """How much the database does in one pass, with so many overdue timers of a stopped agent."""
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    async def story(house: House) -> None:
        stopped = AgentId("stopped")
        await house.host.control.create_agent(an_identity(stopped))
        for _ in range(timer_count):
            await house.host.timers.create(stopped, after_ms=1_000)
        await house.host.control.stop(stopped)
        await house.rest(HOUR_MS)
        house.connection.set_progress_handler(step, 1)
        async with anyio.create_task_group() as hands:
            await house.host._timer_dispatcher._dispatch_due(hands, house.clock.now())
        house.connection.set_progress_handler(None)

    run_house(story)
    return steps


AHEAD_MS = 8 * HOUR_MS


@pytest.mark.requirement("clock:a-corrected-clock-silences-no-timer")
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("cron", [False, True])
def test_a_clock_that_stood_ahead_and_was_corrected_silences_no_repeating_timer(
    cron: bool, is_down: bool
) -> None:
    async def story(house: House) -> None:
        if cron:
            await house.host.timers.create_cron(MAIN, expression="*/10 * * * *")
        else:
            await house.host.timers.create(MAIN, after_ms=600_000, every_ms=600_000)
        await house.rest(HOUR_MS + 1)
        assert len(await slots_ms(house)) == 6
        house.clock.jump(AHEAD_MS)
        await house.rest(HOUR_MS)
        count = len(await slots_ms(house))
        assert count in (12, 13), "one may make up for the slots that were leapt over"
        house.clock.jump(-AHEAD_MS)
        if is_down:
            await house.restart()
        await house.rest(HOUR_MS)
        assert len(await slots_ms(house)) - count in (5, 6)
        await house.rest(10 * HOUR_MS)
        assert len(await slots_ms(house)) - count in (65, 66)

    run_house(story)


@pytest.mark.requirement("clock:a-corrected-clock-silences-no-timer")
def test_a_clock_that_is_set_back_a_little_repeats_no_fire() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=HOUR_MS, every_ms=HOUR_MS)
        await house.rest(HOUR_MS + 500)
        house.clock.jump(-1_500)
        await house.rest(HOUR_MS - 500)
        assert len(await slots_ms(house)) == 1
        await house.rest(HOUR_MS)
        assert await slots_ms(house) == [HOUR_MS, 2 * HOUR_MS]

    run_house(story)


@pytest.mark.requirement("clock:a-corrected-clock-silences-no-timer")
def test_a_rest_that_began_while_the_clock_stood_ahead_is_as_long_as_it_was_meant_to_be() -> None:
    async def story(house: House) -> None:
        house.clock.jump(1_000 * AHEAD_MS)
        await house.prompt("take a rest")
        await house.rest(60_000)
        house.clock.jump(-1_000 * AHEAD_MS)
        await house.rest(540_000)
        assert await slots_ms(house) == [], "not early"
        await house.rest(150_000)
        assert len(await slots_ms(house)) == 1
        assert ("rest", "resolved") in wait_states(house)

    nap = rule("take a rest", calls("Sleep", reason="tired", duration_ms=600_000))
    run_house(story, script=[nap])


@pytest.mark.requirement("clock:no-timer-is-early-for-it")
def test_a_start_under_a_clock_that_lost_its_battery_makes_no_timer_early() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=100 * HOUR_MS, summary="once")
        await house.host.timers.create(MAIN, after_ms=HOUR_MS, every_ms=50 * HOUR_MS)
        await house.rest(2 * HOUR_MS)
        assert len(await slots_ms(house)) == 1
        for _ in range(2):
            house.clock.jump(-50_000 * HOUR_MS)
            await house.restart()
            await house.rest(60_000)
            house.clock.jump(50_000 * HOUR_MS)
            await house.rest(HOUR_MS)
        assert len(await slots_ms(house)) == 1
        await house.rest(96 * HOUR_MS)
        assert await slots_ms(house) == [HOUR_MS, 51 * HOUR_MS, 100 * HOUR_MS]

    run_house(story)
