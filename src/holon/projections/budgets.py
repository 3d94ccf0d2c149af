"""Views of budgets and their usage.

Owns:  the figures of one scope: every measure, its current usage, and its limit.
Rule 1: the figures shown are those turns are judged by: the same steps, the same windows.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from holon.decide.budgets.budget import (
    BudgetFacts,
    allowed_of,
    judge_budget,
    used_in_window,
    window_ms,
)
from holon.model.agents import TurnRateState
from holon.model.budgets import Budget, BudgetHold, BudgetMeasure, BudgetScope, UsageStep
from holon.model.record import Record
from holon.model.values import Instant


# Part of the runtime's status, which adjacent versions read: unknown fields are ignored.
class MeasureView(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """One measure of one scope. Without `allowed` it is unlimited; cost is in millionths of $1."""

    scope: BudgetScope
    measure: BudgetMeasure
    window_ms: int
    used: int
    allowed: int | None = None


class PaceView(Record, frozen=True, kw_only=True):
    """An agent's rate limits, and what currently holds it."""

    measures: tuple[MeasureView, ...]
    used_up: BudgetHold | None = None
    held_until: Instant | None = None
    self_started_count: int = 0
    rests_until_outside_input: bool = msgspec.field(default_factory=bool)
    unpriced_models: tuple[str, ...] = ()  # under a cost budget, but of unknown cost


def pace_view(
    pace: TurnRateState, facts: BudgetFacts, *, unpriced: tuple[str, ...] = (), now: datetime
) -> PaceView:
    """Return an agent's rate limits with their figures."""
    return PaceView(
        measures=(
            *_measures(BudgetScope.AGENT, facts.policy.agent, facts.of_agent, now=now),
            *runtime_measures(facts, now=now),
        ),
        used_up=judge_budget(facts, now=now),
        held_until=pace.budget_until,
        self_started_count=pace.self_started_count,
        rests_until_outside_input=pace.gave_up,
        unpriced_models=unpriced,
    )


def runtime_measures(facts: BudgetFacts, *, now: datetime) -> tuple[MeasureView, ...]:
    """Return the usage and limits of all agents together."""
    return _measures(BudgetScope.RUNTIME, facts.policy.runtime, facts.of_runtime, now=now)


def _measures(
    scope: BudgetScope, budget: Budget, steps: Sequence[UsageStep], *, now: datetime
) -> tuple[MeasureView, ...]:
    return tuple(
        MeasureView(
            scope=scope,
            measure=measure,
            window_ms=window_ms(measure),
            used=sum(amount for _, amount in used_in_window(measure, steps, now=now)),
            allowed=allowed_of(measure, budget),
        )
        for measure in BudgetMeasure
    )
