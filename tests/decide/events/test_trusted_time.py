"""What is forgotten for good goes by a clock that has shown that it is right."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.events.retention import (
    ClockTrust,
    confirmation_moments,
    confirmed_time,
    initial_trust,
    trusted_now,
    updated_trust,
)
from tests.decide.sample_rows import NOW

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
YEARS = 3_650 * DAY


class Watch:
    """Somebody who looks every ten minutes, as retention does."""

    def __init__(self, *, believed: datetime = NOW, wall: datetime = NOW) -> None:
        self.ns = 5 * 10**9
        self.wall = wall
        self.trust: ClockTrust = initial_trust(believed, now=wall, monotonic_ns=self.ns)

    def after(self, span: timedelta) -> datetime:
        for _ in range(int(span / timedelta(minutes=10))):
            self.ns += 600 * 10**9
            self.wall += timedelta(minutes=10)
            self.look()
        return self.look()

    def look(self) -> datetime:
        self.trust = updated_trust(self.trust, now=self.wall, monotonic_ns=self.ns)
        return trusted_now(self.trust, monotonic_ns=self.ns)


nothing_forgotten = pytest.mark.requirement("clock:nothing-is-forgotten-on-a-clock-that-jumped")
old_goes = pytest.mark.requirement("clock:what-is-old-goes-in-the-end")


def test_a_clock_that_runs_is_believed() -> None:
    assert Watch().after(3 * DAY) == NOW + 3 * DAY


@nothing_forgotten
@pytest.mark.parametrize("ahead", [8 * HOUR, DAY, YEARS], ids=str)
def test_a_clock_that_is_set_ahead_is_not_believed_before_it_has_stood_for_a_day(
    ahead: timedelta,
) -> None:
    watch = Watch()
    watch.after(5 * HOUR)
    watch.wall += ahead
    assert watch.after(23 * HOUR) == NOW + 28 * HOUR
    watch.wall -= ahead
    assert watch.after(5 * DAY) == watch.wall


@nothing_forgotten
def test_a_clock_that_is_set_back_is_believed_at_once() -> None:
    watch = Watch()
    watch.wall -= YEARS
    assert watch.look() == NOW - YEARS
    watch.wall += YEARS
    assert watch.look() == NOW - YEARS


@old_goes
def test_a_machine_that_slept_for_weeks_is_believed_after_two_days() -> None:
    watch = Watch()
    watch.wall += 30 * DAY
    assert watch.after(2 * DAY) == NOW + 32 * DAY


@old_goes
def test_one_that_sleeps_every_night_is_believed_too() -> None:
    watch = Watch()
    for _ in range(30):
        watch.after(8 * HOUR)
        watch.wall += 16 * HOUR
    assert watch.wall - watch.look() < 7 * DAY


@nothing_forgotten
@given(
    steps=st.lists(
        st.tuples(
            st.timedeltas(timedelta(0), 20 * HOUR),
            st.timedeltas(-YEARS, YEARS),
        ),
        max_size=12,
    )
)
def test_what_is_believed_is_never_ahead_of_the_wall_nor_leaps_within_a_day(
    steps: list[tuple[timedelta, timedelta]],
) -> None:
    watch = Watch()
    for stands_for, by in steps:
        before = watch.look()
        watch.wall += by
        assert watch.look() <= max(before, watch.wall)
        assert watch.after(stands_for) <= watch.wall


def newest_by(records: list[datetime], now: datetime) -> list[datetime | None]:
    return [
        max((record for record in records if record <= moment), default=None)
        for moment in confirmation_moments(now)
    ]


BUSY = [NOW - number * HOUR for number in range(200)]


@nothing_forgotten
@pytest.mark.parametrize(
    ("records", "wall", "believed"),
    [
        pytest.param(BUSY, NOW, NOW, id="a busy home"),
        pytest.param(BUSY, NOW + HOUR, NOW + HOUR, id="and a short restart"),
        pytest.param(BUSY, NOW + YEARS, NOW, id="set ahead while it was down"),
        pytest.param(
            [*BUSY, NOW + YEARS - HOUR, NOW + YEARS], NOW + YEARS, NOW, id="and used since, an hour"
        ),
        pytest.param(BUSY, NOW - 5 * HOUR, NOW - 5 * HOUR, id="set back"),
        pytest.param([NOW - 90 * DAY], NOW, NOW - 90 * DAY, id="idle for long"),
        pytest.param([], NOW, NOW, id="a new home"),
        pytest.param([NOW - HOUR], NOW, NOW - DAY, id="a young home"),
    ],
)
def test_a_start_believes_the_wall_as_far_as_the_records_bear_it_out(
    records: list[datetime], wall: datetime, believed: datetime
) -> None:
    oldest = min(records, default=None)
    assert confirmed_time(newest_by(records, wall), oldest=oldest, now=wall) == believed


@nothing_forgotten
@pytest.mark.parametrize(
    ("ended", "wall"),
    [
        pytest.param([], NOW + YEARS, id="nothing has ended"),
        pytest.param([NOW + YEARS - HOUR], NOW + YEARS, id="what ended did so just now"),
        pytest.param([], NOW, id="a clock that was not set"),
    ],
)
def test_without_anything_that_ended_a_start_believes_no_more_than_the_first_event(
    ended: list[datetime], wall: datetime
) -> None:
    first = NOW - HOUR
    believed = confirmed_time(newest_by(ended, wall), oldest=first, now=wall)
    assert believed == min(first, wall - DAY)


@nothing_forgotten
def test_a_start_under_a_clock_that_was_set_ahead_believes_it_a_day_later() -> None:
    watch = Watch(believed=NOW, wall=NOW + YEARS)
    assert watch.after(23 * HOUR) == NOW + 23 * HOUR
    assert watch.after(2 * HOUR) == NOW + YEARS + 25 * HOUR
