"""Budgets and what was used of them, as operators see them.

Owns:  the figures of one scope: every measure, what counts of it now, and what is allowed.
Rule 1: what is shown is what turns are judged by: the same steps, the same windows.
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


# Part of the runtime's status, which nearby versions read: unknown fields pass.
class MeasureView(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """One measure of one scope. Nothing allowed means no bound; cost is in millionths of $1."""

    scope: BudgetScope
    measure: BudgetMeasure
    window_ms: int
    used: int
    allowed: int | None = None


class PaceView(Record, frozen=True, kw_only=True):
    """How fast an agent may go on, and why not faster."""

    measures: tuple[MeasureView, ...]
    used_up: BudgetHold | None = None
    held_until: Instant | None = None
    self_started_count: int = 0
    rests_until_outside_input: bool = msgspec.field(default_factory=bool)
    unpriced_models: tuple[str, ...] = ()  # a cost budget bounds them, and cannot see their cost


def pace_view(
    pace: TurnRateState, facts: BudgetFacts, *, unpriced: tuple[str, ...] = (), now: datetime
) -> PaceView:
    """Return an agent's pace with the figures behind it."""
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
    """Return what all agents used together, and what they may."""
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
