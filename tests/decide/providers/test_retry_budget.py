"""An account's retries run out in an outage and come back with its answers."""

import pytest

from holon.decide.providers.routes import (
    FULL_BUDGET,
    PARTS_PER_RETRY,
    RetryBudget,
    after_retry,
    after_success,
)
from holon.model.limits import PROVIDER_RETRY_BUDGET_COUNT_MAX


def retries_left(budget: RetryBudget) -> int:
    """How many retries can be sent in a row."""
    count = 0
    while not budget.is_spent:
        budget = after_retry(budget)
        count += 1
    return count


@pytest.mark.requirement("provider-retry:budget")
def test_an_outage_uses_the_budget_up() -> None:
    assert retries_left(FULL_BUDGET) == PROVIDER_RETRY_BUDGET_COUNT_MAX


@pytest.mark.requirement("provider-retry:budget")
@pytest.mark.parametrize(
    ("answers_count", "expected"),
    [(0, 0), (PARTS_PER_RETRY - 1, 0), (PARTS_PER_RETRY, 1), (5 * PARTS_PER_RETRY + 1, 5)],
)
def test_answers_earn_retries_back(answers_count: int, expected: int) -> None:
    budget = RetryBudget(parts=0)
    for _ in range(answers_count):
        budget = after_success(budget)
    assert retries_left(budget) == expected


@pytest.mark.parametrize("parts", [0, 1, PARTS_PER_RETRY])
def test_a_budget_stays_within_its_bounds(parts: int) -> None:
    assert after_retry(RetryBudget(parts=parts)).parts == max(0, parts - PARTS_PER_RETRY)
    assert after_success(FULL_BUDGET) == FULL_BUDGET
