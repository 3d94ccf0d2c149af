"""The figures operators see are those turns are judged by."""

from datetime import timedelta

from holon.decide.budgets.budget import BudgetFacts, judge_budget
from holon.model.agents import TurnRateState
from holon.model.budgets import Budget, BudgetMeasure, BudgetPolicy, BudgetScope, UsageStep
from holon.model.limits import BUDGET_TURNS_WINDOW_MS, BUDGET_WINDOW_MS
from holon.projections.budgets import pace_view
from tests.decide.sample_rows import NOW

RECENT = UsageStep(began_at=NOW - timedelta(minutes=5), turn_count=3, tokens=70, cost_micros=11)
EARLIER = UsageStep(began_at=NOW - timedelta(hours=5), turn_count=9, tokens=30, cost_micros=4)


def test_every_measure_of_both_scopes_is_shown_with_what_is_allowed() -> None:
    facts = BudgetFacts(
        policy=BudgetPolicy(agent=Budget(turns_per_hour=3), runtime=Budget(tokens_per_day=500)),
        of_agent=(EARLIER, RECENT),
        of_runtime=(RECENT,),
    )
    view = pace_view(TurnRateState(budget_until=NOW, gave_up=True), facts, now=NOW)
    figures = {
        (each.scope, each.measure): (each.used, each.allowed, each.window_ms)
        for each in view.measures
    }
    agent, runtime = BudgetScope.AGENT, BudgetScope.RUNTIME
    assert figures == {
        (agent, BudgetMeasure.TURNS_PER_HOUR): (3, 3, BUDGET_TURNS_WINDOW_MS),
        (agent, BudgetMeasure.TOKENS_PER_DAY): (100, None, BUDGET_WINDOW_MS),
        (agent, BudgetMeasure.COST_PER_DAY): (15, None, BUDGET_WINDOW_MS),
        (runtime, BudgetMeasure.TURNS_PER_HOUR): (3, None, BUDGET_TURNS_WINDOW_MS),
        (runtime, BudgetMeasure.TOKENS_PER_DAY): (70, 500, BUDGET_WINDOW_MS),
        (runtime, BudgetMeasure.COST_PER_DAY): (11, None, BUDGET_WINDOW_MS),
    }
    assert view.used_up == judge_budget(facts, now=NOW)
    assert view.used_up is not None
    assert view.used_up.scope is agent
    assert view.held_until == NOW
    assert view.rests_until_outside_input
