"""One too many is declined, with what to do instead."""

from collections.abc import Callable

import pytest

from holon.decide.budgets.budget import agent_quota, timer_quota, work_item_quota
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import (
    AGENTS_COUNT_MAX,
    TIMERS_ACTIVE_COUNT_MAX,
    WORK_ITEMS_OPEN_COUNT_MAX,
)


@pytest.mark.requirement("scheduling-large:quotas")
@pytest.mark.parametrize(
    ("quota", "most"),
    [
        (agent_quota, AGENTS_COUNT_MAX),
        (work_item_quota, WORK_ITEMS_OPEN_COUNT_MAX),
        (timer_quota, TIMERS_ACTIVE_COUNT_MAX),
    ],
)
def test_a_quota_lets_so_many_be_and_no_more(
    quota: Callable[[int], Refusal | None], most: int
) -> None:
    assert quota(most - 1) is None
    refusal = quota(most)
    assert refusal is not None
    assert refusal.code is RefusalCode.QUOTA_REACHED
    assert str(most) in refusal.message
    assert refusal.hint
