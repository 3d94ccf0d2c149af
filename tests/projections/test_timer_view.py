"""Timers and hints as operators see them."""

import msgspec

from holon.projections.wake import hint_view, timer_view
from tests.support.builders import a_hint, a_timer, moment


def test_a_timer_says_how_long_it_was_set_for_and_whether_it_repeats() -> None:
    once = timer_view(a_timer(next_fire_at=moment(1_500)))
    assert (once.duration_ms, once.repeat, once.interval_ms) == (1_500, False, None)
    every = timer_view(a_timer(next_fire_at=moment(1_500), interval_ms=2_000))
    assert (every.repeat, every.interval_ms) == (True, 2_000)
    assert msgspec.to_builtins(once)["fire_count"] == 0


def test_a_parked_hint_says_that_it_has_a_body_but_not_which() -> None:
    view = hint_view(a_hint(body="what changed", revision=3))
    assert (view.has_body, view.revision) == (True, 3)
    assert b"what changed" not in msgspec.json.encode(view)
