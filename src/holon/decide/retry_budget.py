"""How many retries an account may still spend.

Owns:  the budget that all agents of one account share, and its two moves.
Rule 1: a retry costs one; an answer gives back a part of one. So in a long outage an account's
        retries run out, and first attempts are all it still sends.
Rule 2: a budget is counted in whole parts: sums are exact, whatever their order.
"""

from typing import Final

from holon.model.limits import PROVIDER_RETRY_BUDGET_COUNT_MAX
from holon.model.record import Record

PARTS_PER_RETRY: Final = 4  # an answer gives back one part
_PARTS_MAX: Final = PROVIDER_RETRY_BUDGET_COUNT_MAX * PARTS_PER_RETRY


class RetryBudget(Record, frozen=True, kw_only=True):
    """What an account has left."""

    parts: int = _PARTS_MAX

    @property
    def is_spent(self) -> bool:
        """Whether no retry is left."""
        return self.parts < PARTS_PER_RETRY


FULL_BUDGET: Final = RetryBudget()


def after_retry(budget: RetryBudget) -> RetryBudget:
    """Return the budget once a retry has been sent."""
    return RetryBudget(parts=max(0, budget.parts - PARTS_PER_RETRY))


def after_success(budget: RetryBudget) -> RetryBudget:
    """Return the budget once an attempt has been answered."""
    return RetryBudget(parts=min(_PARTS_MAX, budget.parts + 1))
