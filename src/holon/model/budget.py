"""How much agents may use, and how much they used.

Owns:  budgets, the steps in which usage is added up, and the hold of a budget that is used up.
Rule 1: a budget without a number has no bound; a budget with none at all holds nobody.
Rule 2: turns count over an hour, tokens and cost over a day. Both windows move along with time.
Rule 3: cost is in millionths of a US dollar, and only of models whose price is known.
"""

from enum import StrEnum

from holon.model.instant import Instant
from holon.model.record import Record


class BudgetScope(StrEnum):
    """Whose usage a budget bounds."""

    AGENT = "agent"
    RUNTIME = "runtime"


class BudgetMeasure(StrEnum):
    """What is bounded."""

    TURNS_PER_HOUR = "turns_per_hour"
    TOKENS_PER_DAY = "tokens_per_day"
    COST_PER_DAY = "cost_micros_per_day"


class Budget(Record, frozen=True, kw_only=True):
    """What one scope may use."""

    turns_per_hour: int | None = None
    tokens_per_day: int | None = None
    cost_micros_per_day: int | None = None


class BudgetPolicy(Record, frozen=True, kw_only=True):
    """What each agent may use, and what all of them may use together."""

    agent: Budget = Budget()
    runtime: Budget = Budget()

    @property
    def is_off(self) -> bool:
        """Whether nothing is bounded."""
        return self == BudgetPolicy()


class UsageStep(Record, frozen=True, kw_only=True):
    """What turns that ended within one step used."""

    began_at: Instant
    turn_count: int = 0
    tokens: int = 0
    cost_micros: int = 0


class BudgetHold(Record, frozen=True, kw_only=True):
    """A budget that is used up, and when there is room again."""

    scope: BudgetScope
    measure: BudgetMeasure
    used: int
    allowed: int
    until: Instant


class ModelPrice(Record, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
