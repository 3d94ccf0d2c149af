"""Limits: named by unit, positive, and consistent with each other."""

import re

import pytest

from holon.model import limits
from holon.model.turns import compaction

UNITS = r"(BYTES|COUNT|MS|CHARS|DEPTH|PAGES|PERCENT|EVENTS|TOKENS|DAYS)(_(MAX|MIN|DEFAULT))*"
NUMBERS = {
    name: value
    for module in (limits, compaction)
    for name, value in vars(module).items()
    if name.isupper()
}
UNIT_SIZES = {"KIB", "MIB", "SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS", "COST_MICROS"}


@pytest.mark.parametrize("name", sorted(NUMBERS.keys() - UNIT_SIZES))
def test_every_limit_is_a_positive_whole_number_that_names_its_unit(name: str) -> None:
    assert isinstance(NUMBERS[name], int)
    assert NUMBERS[name] > 0
    assert re.search(rf"_{UNITS}$|_INTERVAL_MS$", name)


@pytest.mark.parametrize("name", sorted(n for n in NUMBERS if n.endswith("_MIN")))
def test_a_minimum_is_not_above_its_maximum(name: str) -> None:
    most = NUMBERS.get(name.removesuffix("_MIN") + "_MAX")
    assert most is None or NUMBERS[name] <= most


def test_what_one_limit_needs_of_another_holds() -> None:
    assert limits.EVENT_PAGE_COUNT_MAX <= limits.FEED_LAG_EVENTS_MAX
    assert limits.IDEMPOTENCY_KEPT_MS_MIN <= limits.RETENTION_AGE_MS_DEFAULT
    assert limits.WAKE_HINT_BODY_BYTES_MAX <= limits.MESSAGE_BODY_BYTES_MAX
    assert limits.GROUP_COMMIT_COUNT_MAX <= limits.COMMITS_WAITING_COUNT_MAX
    assert limits.HISTORY_TURNS_COUNT_DEFAULT <= limits.RETENTION_TURNS_COUNT_MIN
    assert limits.SLEEP_DURATION_MS_MAX <= limits.TIMER_DURATION_MS_MAX
