"""A turn that runs out of budget stops between two rounds, is kept, and goes on with the budget."""

import msgspec
import pytest

from holon.model.budgets import Budget, BudgetPolicy, BudgetUsedUp, ModelPrice
from holon.model.events.briefs import BriefKind
from holon.model.events.event import (
    MessageDeferred,
    ProviderDeferred,
    RuntimeErrorRecorded,
    TurnEnded,
)
from holon.model.limits import DAY_MS, HOUR_MS, MINUTE_MS
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.transcript import AssistantRound
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_items, turn_logs
from tests.support.builders import MAIN, an_identity
from tests.support.scripted_provider import ScriptedCall, ScriptedRound

ROUND = TokenUsage(input_tokens=900, output_tokens=100)


def busy_round(number: int, *, after_ms: int = 0) -> ScriptedRound:
    call = ScriptedCall(name="CreateWorkItem", input={"objective": f"step {number}"})
    return ScriptedRound(calls=(call,), usage=ROUND, after_ms=after_ms)


def busy(count: int, *, after_ms: int = 0) -> list[ScriptedRound]:
    return [busy_round(number, after_ms=after_ms) for number in range(count)]


TEN_ROUNDS = rule("job", *busy(10), says("the job is done"))
CALM = rule("", says("nothing to do"))


def tokens(allowed: int) -> BudgetPolicy:
    return BudgetPolicy(agent=Budget(tokens_per_day=allowed))


def rounds_of(house: House) -> list[int]:
    return [
        sum(isinstance(entry.data, AssistantRound) for entry in log.entries)
        for log in turn_logs(house)
    ]


@pytest.mark.requirement("budgets-inside-turns:checked-between-rounds")
def test_a_turn_stops_before_the_round_for_which_nothing_is_left() -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("the job")
        await house.rest(MINUTE_MS)
        assert rounds_of(house) == [3], "the third round used the budget up"
        entry = await house.store.reads.queue.message(message_id)
        assert entry is not None
        assert (entry.state, entry.was_put_off) == ("queued", True)
        [told] = await house.briefs()
        assert told.kind is BriefKind.ACK
        assert "budget.agent.tokens_per_day" in told.text
        assert "3000 of 2500 tokens" in told.text
        agent = await house.agent()
        assert (agent.posture.status, agent.posture.reason) == ("asleep", "budget_used_up")
        assert agent.pace.budget_until is not None
        events = await house.events()
        assert [e for e in events if isinstance(e, BudgetUsedUp)]
        assert [e for e in events if isinstance(e, MessageDeferred)]
        assert not [e for e in events if isinstance(e, ProviderDeferred | RuntimeErrorRecorded)]
        assert len(kept_items(house)) == 3, "what was done stays done"

    run_house(story, script=[TEN_ROUNDS, CALM], setup=Setup(budgets=tokens(2_500)))


@pytest.mark.requirement("budgets-inside-turns:goes-on-by-itself")
def test_a_stopped_turn_goes_on_by_itself_when_the_window_has_moved() -> None:
    async def story(house: House) -> None:
        await house.prompt("the job")
        await house.rest(MINUTE_MS)
        asked = len(house.model.requests)
        await house.rest(DAY_MS - HOUR_MS)
        assert len(house.model.requests) == asked
        await house.rest(2 * HOUR_MS)
        assert rounds_of(house)[:2] == [3, 3]
        assert house.model.heard("the job"), "the message was taken up again"
        assert len(await house.briefs()) == 2, "the operator is told once each time it runs out"

    run_house(story, script=[TEN_ROUNDS, CALM], setup=Setup(budgets=tokens(2_500)))


@pytest.mark.requirement("budgets-inside-turns:goes-on-by-itself")
def test_a_raised_budget_lets_the_stopped_turn_go_on_at_the_next_start() -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("the job")
        await house.rest(MINUTE_MS)
        assert rounds_of(house) == [3]
        house.setup.budgets = tokens(10**9)
        await house.restart()
        await house.rest(MINUTE_MS)
        assert "the job is done" in [brief.text for brief in await house.briefs()]
        entry = await house.store.reads.queue.message(message_id)
        assert entry is not None
        assert entry.state == "processed"

    run_house(story, script=[TEN_ROUNDS, CALM], setup=Setup(budgets=tokens(2_500)))


@pytest.mark.requirement("budgets-inside-turns:checked-between-rounds")
def test_a_turn_that_needs_no_further_round_ends_although_nothing_is_left() -> None:
    async def story(house: House) -> None:
        await house.prompt("a word")
        await house.rest(MINUTE_MS)
        assert [brief.text for brief in await house.briefs()] == ["done"]
        await house.prompt("another word")
        await house.rest(MINUTE_MS)
        assert rounds_of(house) == [1]

    script = [rule("word", ScriptedRound(text="done", usage=ROUND))]
    run_house(story, script=script, setup=Setup(budgets=tokens(500)))


@pytest.mark.requirement("budgets-inside-turns:checked-between-rounds")
def test_a_bound_on_turns_never_stops_a_turn_that_has_begun() -> None:
    async def story(house: House) -> None:
        await house.prompt("the job")
        await house.rest(MINUTE_MS)
        assert rounds_of(house)[0] == 11

    policy = BudgetPolicy(agent=Budget(turns_per_hour=1))
    run_house(story, script=[TEN_ROUNDS, CALM], setup=Setup(budgets=policy))


@pytest.mark.requirement("budgets-inside-turns:checked-between-rounds")
def test_cost_is_bounded_between_rounds_like_tokens() -> None:
    async def story(house: House) -> None:
        await house.prompt("the job")
        await house.rest(MINUTE_MS)
        assert rounds_of(house) == [2]

    setup = Setup(
        budgets=BudgetPolicy(agent=Budget(cost_micros_per_day=1_500)),
        price_of=lambda model_ref: ModelPrice(input=1.0, output=1.0),  # 1,000 micros a round
    )
    run_house(story, script=[TEN_ROUNDS, CALM], setup=setup)


@pytest.mark.requirement("budgets-inside-turns:running-turns-count")
def test_turns_that_run_side_by_side_share_the_budget_of_the_runtime() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("other"))
        await house.prompt("the job")
        await house.prompt("the job", agent="other")
        await house.rest(MINUTE_MS)
        assert 4 <= sum(rounds_of(house)) <= 5, "one round more for each that was on its way"
        for agent in (MAIN, "other"):
            [told] = await house.briefs(agent)
            assert "of the whole runtime" in told.text

    script = [rule("job", *busy(10, after_ms=500), says("the job is done")), CALM]
    policy = BudgetPolicy(runtime=Budget(tokens_per_day=4_000))
    run_house(story, script=script, setup=Setup(budgets=policy))


@pytest.mark.requirement("budgets-inside-turns:running-turns-count")
def test_what_a_running_turn_has_used_survives_a_crash() -> None:
    async def story(house: House) -> None:
        await house.prompt("the job")
        await house.rest(2_200)  # two rounds are durable, the third is on its way
        await house.restart()
        await house.rest(MINUTE_MS)
        assert rounds_of(house) == [3]

    script = [rule("job", *busy(10, after_ms=1_000), says("the job is done")), CALM]
    run_house(story, script=script, setup=Setup(budgets=tokens(2_500)))


@pytest.mark.requirement("budgets-inside-turns:usage-is-estimated")
@pytest.mark.parametrize("reported", [(0, 0), (-5_000, -100)], ids=["zero", "negative"])
def test_a_provider_that_reports_no_use_is_held_to_the_budget_by_an_estimate(
    reported: tuple[int, int],
) -> None:
    async def story(house: House) -> None:
        await house.prompt("the job")
        await house.rest(MINUTE_MS)
        assert 1 <= rounds_of(house)[0] < 11
        [spent] = [e for e in await house.events() if isinstance(e, TurnEnded)][:1]
        assert spent.usage.is_estimated
        assert spent.usage.input_tokens > 0
        assert spent.usage.output_tokens > 0

    free = TokenUsage(input_tokens=reported[0], output_tokens=reported[1])
    rounds = [msgspec.structs.replace(each, usage=free) for each in busy(10)]
    script = [rule("job", *rounds, says("the job is done")), CALM]
    run_house(story, script=script, setup=Setup(budgets=tokens(30_000)))


@pytest.mark.requirement("budgets-inside-turns:goes-on-by-itself")
def test_another_model_does_not_let_a_message_past_the_budget() -> None:
    async def story(house: House) -> None:
        await house.prompt("the job")
        await house.rest(MINUTE_MS)
        await house.host.control.set_model(MAIN, "scripted/other")
        await house.rest(HOUR_MS)
        assert rounds_of(house) == [3]

    run_house(story, script=[TEN_ROUNDS, CALM], setup=Setup(budgets=tokens(2_500)))


@pytest.mark.requirement("budgets-inside-turns:unknown-price-is-said")
def test_the_status_names_the_models_a_cost_budget_cannot_see() -> None:
    async def story(house: House) -> None:
        shown = await house.host.governor.rate_limits_of(await house.agent())
        assert shown.unpriced_models == ("scripted/test",)
        await house.host.control.set_model(MAIN, "scripted/priced")
        shown = await house.host.governor.rate_limits_of(await house.agent())
        assert shown.unpriced_models == ()

    def price_of(model_ref: str) -> ModelPrice | None:
        return ModelPrice(input=1.0, output=1.0) if model_ref.endswith("/priced") else None

    budgets = BudgetPolicy(agent=Budget(cost_micros_per_day=1))
    run_house(story, setup=Setup(budgets=budgets, price_of=price_of))
