"""What is left of a budget, until when it is used up, and what turns cost."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.budgets.budget import BudgetFacts, budget_text, cost_micros_of, judge_budget
from holon.model.budgets import (
    Budget,
    BudgetHold,
    BudgetMeasure,
    BudgetPolicy,
    BudgetScope,
    ModelPrice,
    UsageStep,
)
from holon.model.limits import BUDGET_TURNS_WINDOW_MS, BUDGET_WINDOW_MS, USAGE_STEP_MS
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    ProviderAttempt,
    TokenUsage,
)
from tests.decide.sample_rows import NOW

HOUR = timedelta(milliseconds=BUDGET_TURNS_WINDOW_MS)
DAY = timedelta(milliseconds=BUDGET_WINDOW_MS)
STEP = timedelta(milliseconds=USAGE_STEP_MS)


def used(ago: timedelta, *, turns: int = 0, tokens: int = 0, cost_micros: int = 0) -> UsageStep:
    return UsageStep(began_at=NOW - ago, turn_count=turns, tokens=tokens, cost_micros=cost_micros)


def facts(*steps: UsageStep, **allowed: int) -> BudgetFacts:
    return BudgetFacts(policy=BudgetPolicy(agent=Budget(**allowed)), of_agent=steps)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(facts(used(STEP, turns=99, tokens=10**9)), id="nothing is bounded"),
        pytest.param(facts(turns_per_hour=1), id="nothing was used"),
        pytest.param(facts(used(STEP, turns=2), turns_per_hour=3), id="some is left"),
        pytest.param(facts(used(HOUR + STEP, turns=9), turns_per_hour=1), id="long ago"),
        pytest.param(facts(used(DAY + STEP, tokens=9), tokens_per_day=1), id="the day before"),
        pytest.param(facts(used(-STEP, turns=9), turns_per_hour=1), id="in a future"),
        pytest.param(facts(used(STEP, tokens=9), turns_per_hour=1), id="of something else"),
    ],
)
def test_a_turn_may_begin_while_something_is_left(known: BudgetFacts) -> None:
    assert judge_budget(known, now=NOW) is None


def test_a_used_up_budget_has_room_when_enough_has_left_the_window() -> None:
    steps = (used(8 * STEP, turns=2), used(4 * STEP, turns=1), used(STEP, turns=2))
    hold = judge_budget(facts(*steps, turns_per_hour=3), now=NOW)
    assert hold == BudgetHold(
        scope=BudgetScope.AGENT,
        measure=BudgetMeasure.TURNS_PER_HOUR,
        used=5,
        allowed=3,
        until=NOW - 4 * STEP + STEP + HOUR,
    )


def test_the_budget_with_room_last_decides() -> None:
    steps = (used(STEP, turns=5, tokens=5, cost_micros=5),)
    policy = BudgetPolicy(agent=Budget(turns_per_hour=1), runtime=Budget(cost_micros_per_day=5))
    hold = judge_budget(BudgetFacts(policy=policy, of_agent=steps, of_runtime=steps), now=NOW)
    assert hold is not None
    assert (hold.scope, hold.measure) == (BudgetScope.RUNTIME, BudgetMeasure.COST_PER_DAY)
    assert "budget.runtime.cost_cents_per_day" in budget_text(hold)
    assert "pausing" not in budget_text(hold), "there is no such command"


@given(
    amounts=st.lists(st.integers(0, 5), max_size=13),
    allowed=st.integers(1, 20),
)
def test_there_is_no_room_before_the_moment_and_room_from_it_on(
    amounts: list[int], allowed: int
) -> None:
    steps = tuple(used((len(amounts) - n) * STEP, turns=each) for n, each in enumerate(amounts))
    known = facts(*steps, turns_per_hour=allowed)
    hold = judge_budget(known, now=NOW)
    if hold is None:
        assert sum(amounts[-13:]) < allowed or len(amounts) > 12
        return
    assert judge_budget(known, now=hold.until) is None
    just_before = judge_budget(known, now=hold.until - timedelta(microseconds=1))
    assert just_before is not None
    assert just_before.until == hold.until


def attempt(model_ref: str, usage: TokenUsage | None) -> ProviderAttempt:
    return ProviderAttempt(
        provider="p",
        model_ref=model_ref,
        attempt=1,
        max_attempts=1,
        started_at=NOW,
        completed_at=NOW,
        outcome=AttemptOutcome.SUCCEEDED,
        token_usage=usage,
    )


@pytest.mark.requirement("scheduling-large:budget-cost")
@pytest.mark.parametrize(
    ("usage", "price", "micros"),
    [
        (TokenUsage(input_tokens=1_000, output_tokens=10), ModelPrice(input=2, output=8), 2_080),
        (
            TokenUsage(input_tokens=1_000, cache_read_tokens=900),
            ModelPrice(input=2, output=8, cache_read=0.5),
            650,
        ),
        (
            TokenUsage(input_tokens=1_000, cache_read_tokens=500, cache_creation_tokens=400),
            ModelPrice(input=2, output=8, cache_write=3),
            2_400,
        ),
        (TokenUsage(input_tokens=1), ModelPrice(input=0.1, output=8), 1),
        (None, ModelPrice(input=2, output=8), 0),
        (TokenUsage(input_tokens=1_000), None, 0),
    ],
)
def test_what_a_turn_cost(usage: TokenUsage | None, price: ModelPrice | None, micros: int) -> None:
    timeline = AttemptTimeline(attempts=(attempt("a/b", usage),))
    assert cost_micros_of([timeline], lambda ref: price if ref == "a/b" else None) == micros


@pytest.mark.requirement("scheduling-large:budget-cost")
def test_every_attempt_counts_with_the_price_of_its_own_model() -> None:
    usage = TokenUsage(input_tokens=100)
    prices = {"a/cheap": ModelPrice(input=1, output=1), "a/dear": ModelPrice(input=5, output=5)}
    timelines = [
        AttemptTimeline(attempts=(attempt("a/dear", usage), attempt("a/cheap", usage))),
        AttemptTimeline(attempts=(attempt("a/unknown", usage), attempt("a/cheap", usage))),
    ]
    assert cost_micros_of(timelines, prices.get) == 700
