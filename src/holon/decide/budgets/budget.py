"""Budgets: whether an agent may use more, and what a turn cost.

Owns:  the check before every turn and before each further round of it; the cost of a turn; the
       refusals for a quota that is reached.
Rule 1: a usage step counts in full until all of it lies outside the window, so adding up never
        overdraws a budget. Only a round that had begun can: its usage is known when it ends.
Rule 2: of several used-up budgets, the one that has room last decides until when.
Rule 3: a step in the future, left by a clock that was set back, counts for nothing.
Rule 4: a bound on turns keeps turns from beginning. It never stops one that has begun.
Rule 5: a quota bounds what exists at one time; ending something makes room.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Final, TypeAlias

import msgspec

from holon.model.budgets import (
    Budget,
    BudgetHold,
    BudgetMeasure,
    BudgetPolicy,
    BudgetScope,
    ModelPrice,
    UsageStep,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.limits import (
    AGENTS_COUNT_MAX,
    BUDGET_TURNS_WINDOW_MS,
    BUDGET_WINDOW_MS,
    COST_MICROS,
    TIMERS_ACTIVE_COUNT_MAX,
    USAGE_STEP_MS,
    WORK_ITEMS_OPEN_COUNT_MAX,
)
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.record import Record
from holon.model.tasks import TaskQuota

BUDGET_USED_UP: Final = "budget_used_up"
PriceLookup: TypeAlias = Callable[[str], ModelPrice | None]

_STEP = timedelta(milliseconds=USAGE_STEP_MS)


class BudgetFacts(Record, frozen=True, kw_only=True):
    """The budgets, and what was used of late, oldest first."""

    policy: BudgetPolicy
    of_agent: tuple[UsageStep, ...] = ()
    of_runtime: tuple[UsageStep, ...] = ()


def judge_budget(facts: BudgetFacts, *, now: datetime) -> BudgetHold | None:
    """Return the budget that keeps a turn from beginning, or nothing."""
    holds = [
        *_holds(BudgetScope.AGENT, facts.policy.agent, facts.of_agent, now=now),
        *_holds(BudgetScope.RUNTIME, facts.policy.runtime, facts.of_runtime, now=now),
    ]
    return max(holds, key=lambda hold: hold.until, default=None)


def judge_running(facts: BudgetFacts, *, now: datetime) -> BudgetHold | None:
    """Return the budget that keeps a running turn from another round, or nothing."""
    policy = BudgetPolicy(
        agent=msgspec.structs.replace(facts.policy.agent, turns_per_hour=None),
        runtime=msgspec.structs.replace(facts.policy.runtime, turns_per_hour=None),
    )
    return judge_budget(msgspec.structs.replace(facts, policy=policy), now=now)


def used_in_window(
    measure: BudgetMeasure, steps: Iterable[UsageStep], *, now: datetime
) -> tuple[tuple[datetime, int], ...]:
    """Return what counts at `now`, oldest first: when each part expires, and its amount."""
    window = timedelta(milliseconds=window_ms(measure))
    counted = ((step.began_at + _STEP + window, _amount(measure, step), step) for step in steps)
    return tuple(
        (leaves_at, amount)
        for leaves_at, amount, step in counted
        if leaves_at > now and step.began_at <= now
    )


def window_ms(measure: BudgetMeasure) -> int:
    """Return over how long a measure is added up."""
    is_hourly = measure is BudgetMeasure.TURNS_PER_HOUR
    return BUDGET_TURNS_WINDOW_MS if is_hourly else BUDGET_WINDOW_MS


def allowed_of(measure: BudgetMeasure, budget: Budget) -> int | None:
    """Return how much of a measure a budget allows."""
    match measure:
        case BudgetMeasure.TURNS_PER_HOUR:
            return budget.turns_per_hour
        case BudgetMeasure.TOKENS_PER_DAY:
            return budget.tokens_per_day
        case BudgetMeasure.COST_PER_DAY:
            return budget.cost_micros_per_day


def _amount(measure: BudgetMeasure, step: UsageStep) -> int:
    match measure:
        case BudgetMeasure.TURNS_PER_HOUR:
            return step.turn_count
        case BudgetMeasure.TOKENS_PER_DAY:
            return step.tokens
        case BudgetMeasure.COST_PER_DAY:
            return step.cost_micros


def _holds(
    scope: BudgetScope, budget: Budget, steps: Sequence[UsageStep], *, now: datetime
) -> Iterable[BudgetHold]:
    for measure in BudgetMeasure:
        allowed = allowed_of(measure, budget)
        if allowed is None:
            continue
        counted = used_in_window(measure, steps, now=now)
        used = remaining = sum(amount for _, amount in counted)
        if used < allowed:
            continue
        for leaves_at, amount in counted:
            remaining -= amount
            if remaining < allowed:
                yield BudgetHold(
                    scope=scope, measure=measure, used=used, allowed=allowed, until=leaves_at
                )
                break


def budget_text(hold: BudgetHold, *, in_turn: bool = False) -> str:
    """The operator's one notice that a budget is used up, before a turn or inside one."""
    stopped = (
        "The turn that was under way stopped between two rounds. What it did is kept, and its"
        " message is resumed then.\n"
    )
    return (
        f"Paused until {hold.until:%Y-%m-%d %H:%M} UTC: {_used_up(hold)}.\n"
        f"{stopped if in_turn else ''}"
        "No model turn begins before then, not even for your own messages; they are kept, and the"
        " agent resumes by itself. Stopping it and all other commands work as usual. To resume"
        f" sooner, raise budget.{hold.scope}.{_setting(hold.measure)} and restart the runtime."
    )


def budget_failure(hold: BudgetHold) -> FailureArtifact:
    """Return why a turn gets no further round for now."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME, kind=BUDGET_USED_UP, summary=_used_up(hold)
    )


def _used_up(hold: BudgetHold) -> str:
    owner = "of this agent" if hold.scope is BudgetScope.AGENT else "of the whole runtime"
    return f"the budget {owner} is used up ({_figures(hold)})"


def _figures(hold: BudgetHold) -> str:
    match hold.measure:
        case BudgetMeasure.TURNS_PER_HOUR:
            return f"{hold.used} of {hold.allowed} turns in an hour"
        case BudgetMeasure.TOKENS_PER_DAY:
            return f"{hold.used} of {hold.allowed} tokens in a day"
        case BudgetMeasure.COST_PER_DAY:
            used, allowed = hold.used / COST_MICROS, hold.allowed / COST_MICROS
            return f"${used:.2f} of ${allowed:.2f} in a day"


def _setting(measure: BudgetMeasure) -> str:
    return "cost_cents_per_day" if measure is BudgetMeasure.COST_PER_DAY else measure.value


def unpriced_models(
    model_refs: Iterable[str], *budgets: Budget, price_of: PriceLookup
) -> tuple[str, ...]:
    """Return the models whose cost some budget is to bound although their price is not known."""
    if all(budget.cost_micros_per_day is None for budget in budgets):
        return ()
    return tuple(ref for ref in dict.fromkeys(model_refs) if price_of(ref) is None)


def unpriced_text(model_refs: Iterable[str]) -> str:
    """The operator's notice that a cost budget does not cover some models."""
    return (
        f"the cost budget does not count {', '.join(model_refs)}: the price is not known."
        " Set budget.agent.tokens_per_day or budget.runtime.tokens_per_day to bound it"
    )


def cost_micros_of(timelines: Iterable[AttemptTimeline], price_of: PriceLookup) -> int:
    """Return what these attempts cost together, as far as their prices are known."""
    total = 0.0
    for timeline in timelines:
        for attempt in timeline.attempts:
            price = price_of(attempt.model_ref)
            if price is not None and attempt.token_usage is not None:
                total += _cost_micros(attempt.token_usage, price)
    return ceil(total)


def _cost_micros(usage: TokenUsage, price: ModelPrice) -> float:
    """Dollars per million tokens, times tokens, are millionths of a dollar."""
    cached = usage.cache_read_tokens + usage.cache_creation_tokens
    read = price.input if price.cache_read is None else price.cache_read
    written = price.input if price.cache_write is None else price.cache_write
    return (
        max(0, usage.input_tokens - cached) * price.input
        + usage.cache_read_tokens * read
        + usage.cache_creation_tokens * written
        + usage.output_tokens * price.output
    )


def agent_quota(count: int) -> Refusal | None:
    """Decline one more agent, given the number of agents."""
    if count < AGENTS_COUNT_MAX:
        return None
    return _reached(f"there are {AGENTS_COUNT_MAX} agents already", "use one of them")


def work_item_quota(open_count: int) -> Refusal | None:
    """Decline one more work item, given how many the agent has open."""
    if open_count < WORK_ITEMS_OPEN_COUNT_MAX:
        return None
    return _reached(
        f"the agent has {WORK_ITEMS_OPEN_COUNT_MAX} open work items",
        "complete some of them first",
    )


def timer_quota(active_count: int) -> Refusal | None:
    """Decline one more timer, given how many of the agent are active."""
    if active_count < TIMERS_ACTIVE_COUNT_MAX:
        return None
    return _reached(
        f"the agent has {TIMERS_ACTIVE_COUNT_MAX} active timers", "cancel some of them first"
    )


def task_quota(quota: TaskQuota, *, of_agent: int, of_all: int) -> Refusal | None:
    """Decline one more command that may become a task, given how many run."""
    if of_agent >= quota.per_agent_count_max:
        return _reached(
            f"{of_agent} commands of the agent run in the background already"
            f" (runtime.tasks.per_agent_max is {quota.per_agent_count_max})",
            "end some of them with TaskStop or wait for them; ExecCommandBatch still runs short"
            " commands to their end",
        )
    if of_all >= quota.count_max:
        return _reached(
            f"{of_all} commands of all agents run in the background already"
            f" (runtime.tasks.max is {quota.count_max})",
            "wait until some of them have ended; ExecCommandBatch still runs short commands to"
            " their end",
        )
    return None


def _reached(message: str, hint: str) -> Refusal:
    return Refusal(code=RefusalCode.QUOTA_REACHED, message=message, hint=hint)
