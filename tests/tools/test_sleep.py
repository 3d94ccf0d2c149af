"""Sleep: rest for good or for a while; what has already rung is never slept through."""

import msgspec
import pytest

from holon.model.agents import AgentStatus
from holon.model.limits import LABEL_CHARS_MAX, SLEEP_DURATION_MS_MAX
from holon.model.queue import MessageKind
from holon.model.turns.tools import ToolOk, ToolRefused
from holon.model.values import JsonValue, MessageId, TurnId
from holon.tools.tool import ToolExecution, ToolScene
from holon.tools.wake import Sleep
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import (
    active_timers,
    active_waits,
    kept_timers,
    kept_waits,
    message_states,
)
from tests.support.builders import MAIN
from tests.support.hosts import tool_ports
from tests.support.scripted_provider import ScriptedCall, ScriptedRound


async def plan(house: House, arguments: JsonValue) -> ToolExecution:
    """Run the tool without committing what it plans."""
    scene = ToolScene(
        agent_id=MAIN,
        turn_id=TurnId("turn_1"),
        message_id=MessageId("msg_1"),
        effect_id="turn_1.1.0",
        now=house.clock.now(),
    )
    return await Sleep().run(arguments, scene, tool_ports(reads=house.store.reads, ids=house.ids))


@pytest.mark.requirement("tools:sleep-without-duration-is-indefinite")
@pytest.mark.parametrize(
    "arguments",
    [{}, {"duration_ms": 0}, {"duration_ms": None}, {"reason": None}, None],
    ids=["nothing", "zero", "null", "no reason", "no arguments"],
)
def test_no_duration_or_zero_is_rest_until_something_happens(arguments: JsonValue) -> None:
    async def story(house: House) -> None:
        execution = await plan(house, arguments)
        assert isinstance(execution.outcome, ToolOk)
        assert execution.outcome.ends_turn
        assert execution.outcome.result == {"sleeping": True, "duration_ms": None}
        assert (execution.changes, execution.expects) == ((), ())

    run_house(story)


@pytest.mark.requirement("tool-shapes:sleep-says-minimum-one")
def test_the_schema_asks_for_one_millisecond_at_least() -> None:
    duration = Sleep().spec.input_schema["properties"]["duration_ms"]
    assert {"type": "integer", "minimum": 1, "maximum": SLEEP_DURATION_MS_MAX} in duration["anyOf"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"duration_ms": -1}, "duration_ms"),
        ({"duration_ms": SLEEP_DURATION_MS_MAX + 1}, "duration_ms"),
        ({"duration_ms": 1.5}, "duration_ms"),
        ({"duration_ms": "a while"}, "duration_ms"),
        ({"duration_ms": True}, "duration_ms"),
        ({"reason": 7}, "reason"),
        ({"reason": "x" * (LABEL_CHARS_MAX + 1)}, "reason"),
        ({"until": "noon"}, "until"),
        ("an hour", None),
        ([], None),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_the_field(
    arguments: JsonValue, field: str | None
) -> None:
    async def story(house: House) -> None:
        execution = await plan(house, arguments)
        assert isinstance(execution.outcome, ToolRefused)
        assert execution.outcome.error.kind == "invalid_tool_input"
        assert execution.outcome.error.field == field
        assert execution.outcome.error.hint is not None
        assert execution.changes == ()

    run_house(story)


@pytest.mark.requirement("tools:sleep-with-duration-wakes-later")
@pytest.mark.parametrize("restart", [False, True], ids=["", "across a restart"])
def test_a_duration_wakes_the_agent_when_it_is_over(restart: bool) -> None:
    async def story(house: House) -> None:
        await house.prompt("nap")
        await house.rest(1_000)
        assert (await house.agent()).posture.status is AgentStatus.ASLEEP
        if restart:
            await house.restart()
        await house.rest(58_000)
        assert len(house.model.requests) == 1
        await house.rest(2_000)
        assert len(house.model.requests) == 2
        assert "tired" in house.model.said()
        assert [wait.state for wait in kept_waits(house)] == ["resolved"]
        assert (await house.agent()).posture.sleeping_until is None
        await house.rest(600_000)
        assert len(house.model.requests) == 2

    run_house(
        story,
        script=[
            rule("came due", says("awake")),
            rule("nap", calls("Sleep", reason="tired", duration_ms=60_000)),
        ],
    )


@pytest.mark.requirement("tools:sleep-does-not-hold-back-others")
def test_anything_may_wake_the_agent_earlier_and_the_rest_still_rings() -> None:
    async def story(house: House) -> None:
        await house.prompt("nap")
        await house.rest(1_000)
        await house.webhook("the build failed")
        await house.rest(1_000)
        assert "the build failed" in house.model.said()
        assert [wait.state for wait in kept_waits(house)] == ["active"]
        await house.rest(60_000)
        assert len(house.model.requests) == 3

    run_house(
        story,
        script=[
            rule("came due", says("awake")),
            rule("failed", says("looking")),
            rule("nap", calls("Sleep", duration_ms=60_000)),
        ],
    )


@pytest.mark.requirement("tools:later-sleep-replaces-earlier")
@pytest.mark.parametrize("second_ms", [None, 600_000])
def test_a_later_sleep_replaces_an_earlier_one(second_ms: int | None) -> None:
    async def story(house: House) -> None:
        await house.prompt("first nap")
        await house.rest(1_000)
        await house.prompt("second nap")
        await house.rest(1_000)
        assert min(kept_timers(house), key=lambda timer: timer.id).status == "cancelled"
        assert len(active_waits(house)) == (0 if second_ms is None else 1)
        await house.rest(120_000)
        assert len(house.model.requests) == 2
        await house.rest(1_200_000)
        assert len(house.model.requests) == (2 if second_ms is None else 3)

    run_house(
        story,
        script=[
            rule("came due", says("awake")),
            rule("second", calls("Sleep", duration_ms=second_ms)),
            rule("first", calls("Sleep", duration_ms=60_000)),
        ],
    )


@pytest.mark.requirement("tools:triggered-rest-is-kept")
def test_a_rest_that_has_rung_is_not_dropped_by_a_new_sleep() -> None:
    """Its timer fired while the agent was busy; the tick waits in the queue and still counts."""

    async def story(house: House) -> None:
        await house.prompt("first nap")
        await house.rest(1_000)
        await house.prompt("long work")
        await house.rest(70_000)
        assert [wait.state for wait in kept_waits(house)] == ["triggered"]
        await house.rest(60_000)
        assert house.model.heard("came due"), "the tick led to a turn"
        assert kept_waits(house)[0].state == "resolved"
        assert message_states(house, kind=MessageKind.TIMER_TICK)[0] == "processed"

    run_house(
        story,
        script=[
            rule("came due", says("awake")),
            rule("long", calls("Sleep", duration_ms=3_600_000, after_ms=100_000)),
            rule("first", calls("Sleep", duration_ms=60_000)),
        ],
    )


def test_two_sleeps_in_one_round_leave_one_rest() -> None:
    async def story(house: House) -> None:
        await house.prompt("nap twice")
        await house.rest(1_000)
        assert [wait.state for wait in kept_waits(house)] == [
            "cancelled",
            "active",
        ]
        assert len(active_timers(house)) == 1

    naps = tuple(ScriptedCall(name="Sleep", input={"duration_ms": ms}) for ms in (60_000, 90_000))
    run_house(story, script=[rule("nap", ScriptedRound(calls=naps))])


def test_the_plan_names_its_timer_and_its_wait_after_each_other() -> None:
    async def story(house: House) -> None:
        execution = await plan(house, {"duration_ms": 5_000, "reason": "later"})
        timer, wait = (msgspec.to_builtins(change) for change in execution.changes)
        assert timer["timer"]["wait_id"] == wait["wait"]["id"]
        assert wait["wait"]["source_id"] == timer["timer"]["id"]
        assert wait["wait"]["deadline_at"] == timer["timer"]["next_fire_at"]

    run_house(story)
