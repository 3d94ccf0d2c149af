"""Arming and cancelling timers, as the operator does."""

import pytest

from holon.model.errors import BadIdError
from holon.model.ids import AgentId, TimerId
from holon.model.limits import TIMER_DURATION_MS_MAX, TIMER_INTERVAL_MS_MIN
from holon.model.refusal import RefusalCode, RefusedError
from holon.testing.builders import MAIN
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house

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
        assert house.rows("select * from timers") == []

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
        assert house.rows("select * from timers") == []

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
        assert house.rows("select state from messages where timer_id is not null") == [("queued",)]
        await house.host.timers.cancel(timer.id)
        assert house.rows(
            "select state, settled_reason from messages where timer_id is not null"
        ) == [("dropped", "timer_cancelled")]
        await house.rest(120_000)
        assert len(house.model.requests) == 1

    run_house(story, script=[SLOW])


def test_cancelling_the_timer_of_a_rest_ends_the_rest() -> None:
    async def story(house: House) -> None:
        await house.prompt("nap")
        await house.rest(1_000)
        [(timer_id,)] = house.rows("select timer_id from timers")
        await house.host.timers.cancel(TimerId(timer_id))
        assert house.rows("select state from waits") == [("cancelled",)]
        await house.rest(600_000)
        assert len(house.model.requests) == 1

    run_house(story, script=[rule("nap", calls("Sleep", duration_ms=60_000))])
