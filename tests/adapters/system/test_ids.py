"""Production ids: unique, ordered, of the form the door accepts."""

import re

import pytest

from holon.adapters.system.ids import TimeOrderedIds
from holon.model.limits import ID_CHARS_MAX
from holon.model.values import IdPrefix, parse_record_id


@pytest.mark.parametrize("prefix", list(IdPrefix))
def test_an_id_has_its_prefix_and_lower_case_digits(prefix: IdPrefix) -> None:
    made = TimeOrderedIds().fresh(prefix)
    assert re.fullmatch(rf"{prefix}_[0-9a-hjkmnp-tv-z]{{26}}", made)
    assert parse_record_id(made, what="id") == made
    assert len(f"{made}.500.64") <= ID_CHARS_MAX  # a turn id still fits with round and position


def test_ids_rise_within_one_millisecond() -> None:
    ids = TimeOrderedIds(wall_ns=lambda: 1_000_000_000)
    made = [ids.fresh(IdPrefix.MESSAGE) for _ in range(1_000)]
    assert made == sorted(set(made))


def test_ids_rise_when_the_clock_is_set_back_and_when_chance_runs_out() -> None:
    moments = iter([5_000_000, 6_000_000, 2_000_000, 6_000_000, 7_000_000])
    ids = TimeOrderedIds(wall_ns=lambda: next(moments), chance=lambda bits: 2**bits - 1)
    made = [ids.fresh(IdPrefix.TURN) for _ in range(5)]
    assert made == sorted(set(made))


def test_two_processes_at_the_same_moment_make_different_ids() -> None:
    one, other = (TimeOrderedIds(wall_ns=lambda: 7) for _ in range(2))
    assert one.fresh(IdPrefix.WAIT) != other.fresh(IdPrefix.WAIT)
