"""Arming and cancelling timers, as the operator does."""

from datetime import UTC, datetime

import pytest

from holon.decide.budgets import budget
from holon.model.errors import BadIdError, RefusalCode, RefusedError
from holon.model.limits import DAY_MS, HOUR_MS, TIMER_DURATION_MS_MAX, TIMER_INTERVAL_MS_MIN
from holon.model.queue import MessageKind
from holon.model.values import AgentId, TimerId
from holon.model.wake import TimerFired
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import (
    active_timers,
    kept_items,
    kept_messages,
    kept_timers,
    kept_waits,
    message_states,
)
from tests.support.builders import MAIN, an_identity

SLOW = rule("slow", says("done", after_ms=60_000))


@pytest.mark.parametrize(
    ("after_ms", "every_ms"),
    [
        pytest.param(0, None, id="no time at all"),
        pytest.param(-1, None, id="the past"),
        pytest.param(TIMER_DURATION_MS_MAX + 1, None, id="too far away"),
        pytest.param(10**18, None, id="past the end of the calendar"),
        pytest.param(1_000, 0, id="no interval"),
        pytest.param(1_000, TIMER_INTERVAL_MS_MIN - 1, id="too often"),
        pytest.param(1_000, TIMER_DURATION_MS_MAX + 1, id="too seldom"),
    ],
)
def test_a_span_that_makes_no_sense_is_refused(after_ms: int, every_ms: int | None) -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.create(MAIN, after_ms=after_ms, every_ms=every_ms)
        assert caught.value.refusal.code is RefusalCode.BAD_DURATION
        assert kept_timers(house) == []

    run_house(story)


def test_a_timer_needs_an_agent_that_takes_messages() -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.create(AgentId("nobody"), after_ms=1_000)
        assert caught.value.refusal.code is RefusalCode.AGENT_NOT_FOUND
        await house.host.control.stop(MAIN)
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.create(MAIN, after_ms=1_000)
        assert caught.value.refusal.code is RefusalCode.AGENT_STOPPED
        assert kept_timers(house) == []

    run_house(story)


def test_cancelling_an_unknown_timer_is_refused() -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.cancel(TimerId("timer_9"))
        assert caught.value.refusal.code is RefusalCode.TIMER_NOT_FOUND
        with pytest.raises(BadIdError):
            await house.host.timers.cancel(TimerId("../timer"))

    run_house(story)


def test_a_cancelled_timer_never_fires_and_may_be_cancelled_again() -> None:
    async def story(house: House) -> None:
        timer = await house.host.timers.create(MAIN, after_ms=1_000)
        await house.host.timers.cancel(timer.id)
        await house.host.timers.cancel(timer.id)
        await house.rest(60_000)
        assert house.model.requests == []

    run_house(story)


@pytest.mark.requirement("runtime:cancel-voids-the-queued-tick")
def test_cancelling_voids_a_tick_that_waits_behind_a_long_turn() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        timer = await house.host.timers.create(MAIN, after_ms=1_000, every_ms=5_000)
        await house.rest(10_000)
        assert message_states(house, kind=MessageKind.TIMER_TICK) == ["queued"]
        await house.host.timers.cancel(timer.id)
        [tick] = kept_messages(house, kind=MessageKind.TIMER_TICK)
        assert (tick.state, tick.settled_reason) == ("dropped", "timer_cancelled")
        await house.rest(120_000)
        assert len(house.model.requests) == 1

    run_house(story, script=[SLOW])


def test_cancelling_the_timer_of_a_rest_ends_the_rest() -> None:
    async def story(house: House) -> None:
        await house.prompt("nap")
        await house.rest(1_000)
        [timer] = kept_timers(house)
        await house.host.timers.cancel(timer.id)
        assert [wait.state for wait in kept_waits(house)] == ["cancelled"]
        await house.rest(600_000)
        assert len(house.model.requests) == 1

    run_house(story, script=[rule("nap", calls("Sleep", duration_ms=60_000))])


@pytest.mark.requirement("scheduling-large:cron-expressions")
def test_a_cron_timer_fires_at_its_times_in_its_zone() -> None:
    async def story(house: House) -> None:
        timer = await house.host.timers.create_cron(
            MAIN, expression="30 9 * * *", zone="Europe/Berlin", summary="stand up"
        )
        assert timer.next_fire_at is not None
        assert timer.next_fire_at.isoformat() == "2026-01-01T08:30:00+00:00"
        await house.rest(3 * DAY_MS)
        slots = [event.slot for event in await house.events() if isinstance(event, TimerFired)]
        assert slots == [datetime(2026, 1, day, 8, 30, tzinfo=UTC) for day in (1, 2, 3)]
        kept = await house.store.reads.wake.timer(timer.id)
        assert kept is not None
        assert (kept.schedule, kept.fire_count) == (timer.schedule, 3)

    run_house(story, script=[rule("stand up", calls("Sleep"))])


@pytest.mark.requirement("scheduling-large:cron-keeps-its-grid")
def test_a_cron_timer_that_missed_slots_fires_once_and_says_how_late_it_is() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create_cron(MAIN, expression="@hourly", summary="the hour")
        await house.restart(down_ms=5 * HOUR_MS + 60_000)
        await house.rest(1_000)
        [timer] = kept_timers(house)
        assert (timer.fire_count, timer.next_fire_at) == (1, datetime(2026, 1, 1, 6, tzinfo=UTC))
        assert "late_by: 4:01:00" in house.model.said()

    run_house(story, script=[rule("the hour", calls("Sleep"))])


@pytest.mark.requirement("scheduling-large:cron-keeps-its-grid")
@pytest.mark.parametrize("down_ms", [0, HOUR_MS // 2])
def test_a_cron_slot_that_ran_is_not_run_again_after_a_restart(down_ms: int) -> None:
    async def story(house: House) -> None:
        await house.host.timers.create_cron(MAIN, expression="@hourly", summary="the hour")
        await house.rest(HOUR_MS + 1_000)
        assert len(house.model.requests) == 1
        await house.restart(down_ms=down_ms)
        await house.rest(1_000)
        assert len(house.model.requests) == 1, "it ran before the end"
        await house.rest(HOUR_MS)
        assert len(house.model.requests) == 2
        assert [timer.fire_count for timer in kept_timers(house)] == [2]

    run_house(story, script=[rule("the hour", calls("Sleep"))])


@pytest.mark.requirement("scheduling-large:cron-impossible")
@pytest.mark.parametrize(
    ("expression", "zone"),
    [("0 0 30 2 *", "UTC"), ("61 * * * *", "UTC"), ("@hourly", "Middle/Earth")],
)
def test_a_schedule_that_never_comes_round_is_refused(expression: str, zone: str) -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.create_cron(MAIN, expression=expression, zone=zone)
        assert caught.value.refusal.code is RefusalCode.BAD_SCHEDULE
        assert caught.value.refusal.hint
        assert kept_timers(house) == []

    run_house(story)


@pytest.mark.requirement("scheduling-large:cron-expressions")
def test_the_same_key_gives_the_same_cron_timer() -> None:
    async def story(house: House) -> None:
        first = await house.host.timers.create_cron(MAIN, expression="@daily", key="k")
        await house.rest(2 * DAY_MS)
        again = await house.host.timers.create_cron(MAIN, expression="@daily", key="k")
        assert again.id == first.id
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.create_cron(MAIN, expression="@hourly", key="k")
        assert caught.value.refusal.code is RefusalCode.IDEMPOTENCY_CONFLICT

    run_house(story, script=[rule("", calls("Sleep"))])


@pytest.mark.requirement("scheduling-large:quotas")
def test_an_agent_has_so_many_timers_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "TIMERS_ACTIVE_COUNT_MAX", 3)

    async def story(house: House) -> None:
        timers = [await house.host.timers.create(MAIN, after_ms=HOUR_MS) for _ in range(3)]
        with pytest.raises(RefusedError) as caught:
            await house.host.timers.create_cron(MAIN, expression="@daily")
        assert caught.value.refusal.code is RefusalCode.QUOTA_REACHED
        await house.host.timers.cancel(timers[0].id)
        await house.host.timers.create_cron(MAIN, expression="@daily")
        assert len(active_timers(house)) == 3

    run_house(story)


@pytest.mark.requirement("scheduling-large:quotas")
def test_work_items_and_agents_are_bounded_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "WORK_ITEMS_OPEN_COUNT_MAX", 2)
    monkeypatch.setattr(budget, "AGENTS_COUNT_MAX", 2)

    async def story(house: House) -> None:
        await house.prompt("plan")
        await house.rest(1_000)
        assert len(kept_items(house)) == 2
        said = [house.model.said(number) for number in range(len(house.model.requests))]
        assert any("quota_reached" in text for text in said)
        with pytest.raises(RefusedError) as caught:
            await house.host.work.create(MAIN, objective="one more")
        assert caught.value.refusal.code is RefusalCode.QUOTA_REACHED
        await house.host.control.create_agent(an_identity("second"))
        with pytest.raises(RefusedError) as caught:
            await house.host.control.create_agent(an_identity("third"))
        assert caught.value.refusal.code is RefusalCode.QUOTA_REACHED
        assert await house.host.control.archive(AgentId("second"), reason="over")
        await house.host.control.create_agent(an_identity("third"))

    plan = [calls("CreateWorkItem", objective=f"step {number}") for number in range(3)]
    run_house(story, script=[rule("plan", *plan, says("done")), rule("", calls("Sleep"))])
