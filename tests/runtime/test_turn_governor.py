"""Agents that get nowhere are slowed down, and those that used up their budget wait."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

import pytest

from holon.model.budgets import (
    Budget,
    BudgetFreed,
    BudgetPolicy,
    BudgetUsedUp,
    MessageHeld,
    SelfStartsEnded,
)
from holon.model.events.briefs import BriefRecord
from holon.model.limits import (
    BUDGET_WINDOW_MS,
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SELF_STARTED_COUNT_MAX,
    SELF_STARTED_FREE_COUNT_MAX,
    SELF_STARTED_HOLD_MS_MIN,
    USAGE_STEP_MS,
)
from holon.model.queue import OperatorOrigin
from holon.model.values import later
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import (
    answer_of,
    held_until,
    kept_messages,
    kept_turns,
    queued_messages,
    reads_of,
    unseen_messages,
)
from tests.support.builders import MAIN, an_identity
from tests.support.database_plants import give_up_on_agents

pytestmark = pytest.mark.long

NAPPER = rule("", calls("Sleep", duration_ms=1, reason="a moment"))
MUTTERER = rule("", says("nothing to do"))
WORKER = rule("Timer", calls("CreateWorkItem", objective="one more"), calls("Sleep"))
TWO_TURNS = Setup(budgets=BudgetPolicy(agent=Budget(turns_per_hour=2)))


def given_up(briefs: Sequence[BriefRecord]) -> list[BriefRecord]:
    return [brief for brief in briefs if "started" in brief.text and "in a row" in brief.text]


def paused(briefs: Sequence[BriefRecord]) -> list[BriefRecord]:
    return [brief for brief in briefs if brief.text.startswith("Paused until")]


def self_started(house: House) -> int:
    asked = {
        entry.message.id
        for entry in kept_messages(house)
        if isinstance(entry.message.origin, OperatorOrigin)
    }
    return sum(turn.message_id not in asked for turn in kept_turns(house))


@pytest.mark.requirement("scheduling-large:no-token-fire")
@pytest.mark.parametrize("restart_every_ms", [None, 1_500])
def test_a_model_that_naps_for_a_moment_again_and_again_ends_in_one_brief(
    restart_every_ms: int | None,
) -> None:
    async def story(house: House) -> None:
        await house.prompt("look after the shop")
        for _ in range(20 if restart_every_ms else 0):
            await house.rest(restart_every_ms or 0)
            await house.restart()
        await house.rest(DAY_MS)
        assert self_started(house) == SELF_STARTED_COUNT_MAX
        [told] = given_up(await house.briefs())
        assert "What to do" in told.text
        assert (await house.agent()).pace.gave_up
        assert len([e for e in await house.events() if isinstance(e, SelfStartsEnded)]) == 1
        assert len(queued_messages(house)) == 0
        await house.rest(DAY_MS)
        assert self_started(house) == SELF_STARTED_COUNT_MAX

    run_house(story, script=[NAPPER])


@pytest.mark.requirement("scheduling-large:no-token-fire")
def test_the_holds_between_such_turns_double() -> None:
    async def story(house: House) -> None:
        await house.prompt("look after the shop")
        await house.rest(DAY_MS)
        opened = [turn.opened_at for turn in kept_turns(house)]
        gaps_ms = [(late - early) // timedelta(milliseconds=1) for early, late in pairwise(opened)]
        free = gaps_ms[:SELF_STARTED_FREE_COUNT_MAX]
        held = gaps_ms[SELF_STARTED_FREE_COUNT_MAX:]
        assert max(free) < SELF_STARTED_HOLD_MS_MIN
        for number, gap_ms in enumerate(held):
            assert gap_ms >= SELF_STARTED_HOLD_MS_MIN << number
        assert len(held) == SELF_STARTED_COUNT_MAX - SELF_STARTED_FREE_COUNT_MAX
        assert len([e for e in await house.events() if isinstance(e, MessageHeld)]) == len(held)

    run_house(story, script=[NAPPER])


@pytest.mark.requirement("scheduling-large:outside-is-never-held")
def test_the_outside_is_heard_at_once_and_starts_the_count_anew() -> None:
    async def story(house: House) -> None:
        await house.prompt("look after the shop")
        await house.rest(MINUTE_MS)  # in the middle of a hold
        assert (await house.agent()).pace.self_started_count > SELF_STARTED_FREE_COUNT_MAX
        for speak in (house.prompt, house.webhook):
            before = len(house.model.requests)
            await speak("how is it going?")
            await house.rest(10)
            assert len(house.model.requests) > before
            assert (await house.agent()).pace.self_started_count <= SELF_STARTED_FREE_COUNT_MAX
            await house.rest(MINUTE_MS)
        await house.hint("forge", body="pushed")
        await house.rest(10)
        assert any("pushed" in house.model.said(number) for number in range(-12, 0))

    run_house(story, script=[NAPPER])


@pytest.mark.requirement("scheduling-large:outside-is-never-held")
@pytest.mark.parametrize("how", ["prompt", "webhook", "hint", "work"])
def test_an_agent_at_rest_is_woken_by_whatever_comes_from_outside(how: str) -> None:
    async def story(house: House) -> None:
        await house.prompt("look after the shop")
        await house.rest(DAY_MS)
        before = len(house.model.requests)
        await house.hint("quiet")  # says nothing: no reason to start again
        await house.rest(MINUTE_MS)
        assert len(house.model.requests) == before
        if how == "work":
            await house.host.work.create(MAIN, objective="sweep the floor")
        elif how == "hint":
            await house.hint("forge", body="pushed")
        else:
            await (house.prompt if how == "prompt" else house.webhook)("go on")
        await house.rest(1)
        assert len(house.model.requests) > before
        assert not (await house.agent()).pace.gave_up

    run_house(story, script=[NAPPER])


@pytest.mark.requirement("scheduling-large:no-token-fire")
def test_what_comes_up_while_the_agent_rests_is_shown_in_its_next_turn() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=5_000, summary="the kettle")
        await house.rest(HOUR_MS)
        assert (await house.agent()).pace.gave_up
        assert self_started(house) == SELF_STARTED_COUNT_MAX
        assert len(given_up(await house.briefs())) == 1
        assert len(unseen_messages(house)) == 1
        await house.host.timers.create(MAIN, after_ms=500, summary="call Bob")
        await house.rest(1_000)
        assert len(unseen_messages(house)) == 2
        await house.prompt("what is up?")
        await house.rest(10)
        shown = [house.model.said(n) for n in range(-2, 0)]
        assert any("the kettle" in text and "what is up?" in text for text in shown)

    run_house(story, script=[MUTTERER])


@pytest.mark.requirement("scheduling-large:progress-is-never-slowed")
def test_turns_that_change_something_go_on_for_ever() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=1_000)
        await house.rest(40_500)
        assert self_started(house) >= 40
        assert given_up(await house.briefs()) == []

    run_house(story, script=[WORKER, rule("", calls("Sleep"))])


def test_turns_that_lie_far_apart_are_no_storm() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=5 * MINUTE_MS)
        await house.rest(DAY_MS)
        assert self_started(house) == 288
        assert given_up(await house.briefs()) == []

    run_house(story, script=[MUTTERER])


@pytest.mark.requirement("scheduling-large:budget-holds-turns")
def test_a_used_up_budget_holds_the_operator_too_says_so_once_and_goes_on_by_itself() -> None:
    async def story(house: House) -> None:
        for number in range(5):
            await house.prompt(f"question {number}")
        await house.rest(10 * MINUTE_MS)
        assert len(kept_turns(house)) == 2
        assert len(queued_messages(house)) == 3
        [told] = paused(await house.briefs())
        assert "not even for your own messages" in told.text
        assert "budget.agent.turns_per_hour" in told.text
        posture = (await house.agent()).posture
        assert (posture.status, posture.reason) == ("asleep", "budget_used_up")
        assert posture.sleeping_until is not None
        await house.rest(70 * MINUTE_MS)
        assert len(kept_turns(house)) == 4
        await house.rest(3 * HOUR_MS)
        assert len(kept_turns(house)) == 5
        assert len(queued_messages(house)) == 0
        events = await house.events()
        freed = [event for event in events if isinstance(event, BudgetFreed)]
        assert len(paused(await house.briefs())) == len(freed) == 2  # one for each time it ran out
        assert (await house.agent()).pace.budget_until is None

    run_house(story, script=[MUTTERER], setup=TWO_TURNS)


@pytest.mark.requirement("scheduling-large:budget-holds-turns")
@pytest.mark.parametrize("turns_per_hour", [2, 3, 100, None])
def test_a_budget_that_was_raised_is_noticed_when_the_host_starts(
    turns_per_hour: int | None,
) -> None:
    async def story(house: House) -> None:
        for number in range(4):
            await house.prompt(f"question {number}")
        await house.rest(MINUTE_MS)
        budget = Budget(turns_per_hour=turns_per_hour)
        house.setup.budgets = BudgetPolicy(agent=budget)
        await house.restart()
        await house.rest(MINUTE_MS)
        assert len(kept_turns(house)) == min(4, turns_per_hour or 4)
        assert len(paused(await house.briefs())) == (2 if turns_per_hour == 3 else 1)

    setup = Setup(budgets=BudgetPolicy(agent=Budget(turns_per_hour=2)))
    run_house(story, script=[MUTTERER], setup=setup)


@pytest.mark.requirement("scheduling-large:budget-of-the-runtime")
def test_the_budget_of_the_runtime_is_shared_by_all_agents() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("other"))
        for number in range(3):
            await house.prompt(f"question {number}")
            await house.rest(MINUTE_MS)
            await house.prompt(f"question {number}", agent="other")
            await house.rest(MINUTE_MS)
        assert len(kept_turns(house)) == 3
        for agent in (MAIN, "other"):
            [told] = paused(await house.briefs(agent))
            assert "of the whole runtime" in told.text
        await house.rest(DAY_MS)
        assert len(kept_turns(house)) == 6

    setup = Setup(budgets=BudgetPolicy(runtime=Budget(turns_per_hour=3)))
    run_house(story, script=[MUTTERER], setup=setup)


@pytest.mark.requirement("scheduling-large:budget-holds-turns")
def test_control_works_while_a_budget_holds_the_agent() -> None:
    async def story(house: House) -> None:
        for number in range(4):
            await house.prompt(f"question {number}")
        await house.rest(MINUTE_MS)
        await house.host.control.pause(MAIN)
        await house.rest(2 * HOUR_MS)
        assert len(kept_turns(house)) == 2
        await house.host.control.resume(MAIN)
        await house.rest(MINUTE_MS)
        assert len(kept_turns(house)) == 4

    run_house(story, script=[MUTTERER], setup=TWO_TURNS)


@pytest.mark.requirement("scheduling-large:usage-is-bounded")
def test_usage_is_added_up_in_few_rows_and_shown() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=15 * MINUTE_MS)
        await house.rest(4 * DAY_MS)
        reads, since = reads_of(house).budgets, later(house.clock.now(), by_ms=-5 * DAY_MS)
        for agent_id in (MAIN, None):  # of the agent, and of the runtime
            steps = answer_of(reads.usage(agent_id, since=since))
            assert len(steps) <= BUDGET_WINDOW_MS // USAGE_STEP_MS + 2
        view = await house.host.governor.rate_limits_of(await house.agent())
        turns = [each for each in view.measures if each.measure == "turns_per_hour"]
        assert [each.scope for each in turns] == ["agent", "runtime"]
        assert {4, 5} >= {each.used for each in turns}
        assert all(each.allowed is None for each in view.measures)

    run_house(story, script=[MUTTERER])


def test_a_clock_that_was_set_back_holds_nobody_for_years() -> None:
    async def story(house: House) -> None:
        for number in range(3):
            await house.prompt(f"question {number}")
        await house.rest(MINUTE_MS)
        assert [e for e in await house.events() if isinstance(e, BudgetUsedUp)]
        house.clock.jump(-5 * 366 * DAY_MS)
        await house.prompt("question 3")
        await house.rest(MINUTE_MS)
        assert len(kept_turns(house)) == 4

    run_house(story, script=[MUTTERER], setup=TWO_TURNS)


def test_a_turn_that_ended_while_the_clock_stood_ahead_makes_nothing_forgotten() -> None:
    async def story(house: House) -> None:
        for number in range(2):
            await house.prompt(f"question {number}")
        await house.rest(MINUTE_MS)
        house.clock.jump(2 * DAY_MS)
        await house.prompt("question 2")
        await house.rest(MINUTE_MS)
        house.clock.jump(-2 * DAY_MS)
        await house.prompt("question 3")
        await house.rest(MINUTE_MS)
        assert len(kept_turns(house)) == 3
        assert [e for e in await house.events() if isinstance(e, BudgetUsedUp)]

    run_house(story, script=[MUTTERER], setup=TWO_TURNS)


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
def test_an_agent_that_is_held_is_not_looked_at_before_its_moment() -> None:
    async def story(house: House) -> None:
        for number in range(3):
            await house.prompt(f"question {number}")
        await house.rest(MINUTE_MS)
        reads, now = house.store.reads, house.clock.now()
        until = (await house.agent()).pace.budget_until
        assert until is not None
        assert await reads.agents.restless(now=now) == []
        assert await reads.wake.due_activations(now, limit=10) == []
        assert await reads.wake.next_due_at(after=now) == until
        assert await reads.wake.due_activations(until, limit=10) == [MAIN]
        assert await reads.agents.restless(now=until) == [MAIN]

    run_house(story, script=[MUTTERER], setup=TWO_TURNS)


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
def test_an_agent_the_runtime_gave_up_on_is_offered_no_work() -> None:
    async def story(house: House) -> None:
        await house.host.work.create(MAIN, objective="sweep the floor")
        await house.rest(2_500)
        now = house.clock.now()
        due_at = await house.store.reads.wake.next_due_at(after=now)
        assert due_at is not None
        give_up_on_agents(house.connection)
        before = len(house.model.requests)
        assert await house.store.reads.wake.due_activations(due_at, limit=10) == []
        await house.rest(DAY_MS)
        assert len(house.model.requests) == before
        assert given_up(await house.briefs()) == []

    run_house(story, script=[MUTTERER])


@pytest.mark.requirement("scheduling-large:no-token-fire")
@pytest.mark.parametrize("hinted", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_message_that_is_held_for_seconds_does_not_wait_for_a_clock_that_was_set_back(
    *, hinted: bool, restarted: bool
) -> None:
    async def story(house: House) -> None:
        await house.prompt("look after the shop")
        for _ in range(2_000):
            if held_until(house):
                break
            await house.rest(100)
        assert held_until(house)
        if hinted:
            await house.hint("quiet")  # says nothing, and is kept until the hold is over
        before = len(house.model.requests)
        house.clock.jump(-DAY_MS)
        if restarted:
            await house.restart()
        await house.rest(MINUTE_MS)
        assert len(house.model.requests) > before

    run_house(story, script=[NAPPER])
