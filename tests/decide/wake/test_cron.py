"""Cron expressions come round when the wall clock of their zone says so."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.wake.cron import BadCronError, next_cron_slot, read_cron, zone_of
from holon.model.wake import Cron

MINUTE = timedelta(minutes=1)
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
ZONES = ("UTC", BERLIN, NEW_YORK, "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
# Moments near which clocks are changed in one of the zones, and one at which none is.
TURNS = (
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),  # Apia skipped a whole day
    datetime(2027, 6, 15, 12, tzinfo=UTC),
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(expression: str, after: str, *, zone: str = "UTC") -> str | None:
    slot = next_cron_slot(read_cron(expression, zone=zone), after=at(after))
    return None if slot is None else slot.strftime("%Y-%m-%d %H:%M")


@pytest.mark.requirement("scheduling-large:cron-expressions")
@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("* * * * *", "2026-03-01 12:00", "2026-03-01 12:01"),
        ("*/15 * * * *", "2026-03-01 12:14", "2026-03-01 12:15"),
        ("5/20 * * * *", "2026-03-01 12:26", "2026-03-01 12:45"),
        ("0 9-9/4,21 * * *", "2026-03-01 09:00", "2026-03-01 21:00"),
        ("0 9-17/4 * * *", "2026-03-01 13:00", "2026-03-01 17:00"),
        ("30 9 * * mon-fri", "2026-02-27 09:30", "2026-03-02 09:30"),
        ("0 0 * jan,JUL *", "2026-03-01 12:00", "2026-07-01 00:00"),
        ("0 0 * * 7", "2026-03-02 00:00", "2026-03-08 00:00"),
        ("0 0 * * sun", "2026-03-02 00:00", "2026-03-08 00:00"),
        ("0 0 29 2 *", "2026-03-01 00:00", "2028-02-29 00:00"),
        ("@hourly", "2026-03-01 12:00", "2026-03-01 13:00"),
        ("@daily", "2026-03-01 12:00", "2026-03-02 00:00"),
        ("@weekly", "2026-03-02 12:00", "2026-03-08 00:00"),
        ("@monthly", "2026-03-02 12:00", "2026-04-01 00:00"),
        ("@yearly", "2026-03-02 12:00", "2027-01-01 00:00"),
        (" 0   0 1 1 *  ", "2026-03-02 12:00", "2027-01-01 00:00"),
    ],
)
def test_when_an_expression_comes_round_next(expression: str, after: str, expected: str) -> None:
    assert following(expression, after) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("0 0 13 * fri", "2026-03-06 00:00", id="both name days: either is enough"),
        pytest.param("0 0 13 * *", "2026-03-13 00:00", id="only the month names days"),
        pytest.param("0 0 * * fri", "2026-03-06 00:00", id="only the week names days"),
        pytest.param("0 0 */31 * fri", "2026-05-01 00:00", id="a star names none: both must hold"),
    ],
)
def test_days_of_the_month_and_of_the_week_go_together_as_in_cron(
    expression: str, expected: str
) -> None:
    assert following(expression, "2026-03-01 12:00") == expected


@pytest.mark.requirement("scheduling-large:cron-daylight-saving")
@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        pytest.param(
            BERLIN, "30 2 * * *", "2026-03-28 12:00", "2026-03-29 01:00", id="skipped: at its end"
        ),
        pytest.param(
            BERLIN, "30 2 * * *", "2026-03-29 01:00", "2026-03-30 00:30", id="and not again"
        ),
        pytest.param(
            BERLIN, "* 2 * * *", "2026-03-28 12:00", "2026-03-29 01:00", id="all of them as one"
        ),
        pytest.param(
            BERLIN, "30 2 * * *", "2026-10-24 12:00", "2026-10-25 00:30", id="doubled: the first"
        ),
        pytest.param(
            BERLIN, "30 2 * * *", "2026-10-25 00:30", "2026-10-26 01:30", id="and once only"
        ),
        pytest.param(
            NEW_YORK, "30 1 * * *", "2026-11-01 05:30", "2026-11-02 06:30", id="once there as well"
        ),
        pytest.param(
            "Pacific/Apia", "0 12 30 12 *", "2011-12-30 00:00", "2011-12-30 10:00", id="a lost day"
        ),
        pytest.param(
            "Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00", "2026-10-03 15:30", id="half"
        ),
    ],
)
def test_a_slot_in_a_skipped_or_doubled_hour_fires_once(
    zone: str, expression: str, after: str, expected: str
) -> None:
    assert following(expression, after, zone=zone) == expected


@pytest.mark.requirement("scheduling-large:cron-impossible")
@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 jun *"])
def test_a_day_no_month_has_never_comes(expression: str) -> None:
    assert following(expression, "2026-03-01 12:00") is None


def test_a_leap_day_on_one_day_of_the_week_is_found_across_a_century() -> None:
    slot = next_cron_slot(Cron(expression="0 0 */29 2 */7"), after=at("2080-03-01 00:00"))
    assert slot is not None
    assert (slot.month, slot.day in (1, 29), slot.isoweekday()) == (2, True, 7)


@pytest.mark.requirement("scheduling-large:cron-impossible")
@pytest.mark.parametrize(
    ("expression", "zone", "told"),
    [
        ("", "UTC", "0 fields"),
        ("* * * *", "UTC", "4 fields"),
        ("* * * * * *", "UTC", "6 fields"),
        ("60 * * * *", "UTC", "minute"),
        ("* 24 * * *", "UTC", "hour"),
        ("* * 0 * *", "UTC", "day of the month"),
        ("* * * 13 *", "UTC", "month"),
        ("* * * * 8", "UTC", "day of the week"),
        ("*/0 * * * *", "UTC", "step"),
        ("9-5 * * * *", "UTC", "backwards"),
        ("fri-mon * * * *", "UTC", "minute"),
        ("* * * * fri-mon", "UTC", "backwards"),
        ("1,,2 * * * *", "UTC", "no value"),
        ("-1 * * * *", "UTC", "no value"),
        ("² * * * *", "UTC", "no value"),
        ("? * * * *", "UTC", "no value"),
        ("0 0 l * *", "UTC", "day of the month"),
        ("0 0 lw * *", "UTC", "day of the month"),
        ("0 0 * * 5#2", "UTC", "day of the week"),
        ("0 0 * * 5l", "UTC", "day of the week"),
        ("9-9/0 * * * *", "UTC", "step"),
        ("@never", "UTC", "nickname"),
        ("1" * 10_000, "UTC", "longer"),
        ("* * * * *", "Mars/Olympus", "time zone"),
        ("* * * * *", "../../etc/passwd", "time zone"),
        ("* * * * *", "/etc/localtime", "time zone"),
        ("* * * * *", "Europe", "time zone"),
        ("* * * * *", "x" * 10_000, "time zone"),
        ("* * * * *", "", "time zone"),
    ],
)
def test_what_is_no_schedule_is_refused_with_what_is_wrong(
    expression: str, zone: str, told: str
) -> None:
    with pytest.raises(BadCronError, match=told) as caught:
        read_cron(expression, zone=zone)
    assert caught.value.hint
    assert len(str(caught.value)) < 400


def test_a_zone_that_was_forgotten_does_not_stop_a_timer() -> None:
    cron = Cron(expression="0 12 * * *", zone="Gone/Away")
    assert next_cron_slot(cron, after=at("2026-03-01 12:00")) == at("2026-03-02 12:00")


class Field(NamedTuple):
    """One field as it is written, and what it names. Read apart from the library."""

    text: str
    values: frozenset[int]


def a_field(low: int, high: int) -> st.SearchStrategy[Field]:
    value = st.integers(low, high)
    ends = st.tuples(value, value).map(sorted)
    step = st.integers(1, 30)
    part = st.one_of(
        value.map(lambda a: (f"{a}", range(a, a + 1))),
        ends.map(lambda ab: (f"{ab[0]}-{ab[1]}", range(ab[0], ab[1] + 1))),
        st.tuples(ends, step).map(
            lambda s: (f"{s[0][0]}-{s[0][1]}/{s[1]}", range(s[0][0], s[0][1] + 1, s[1]))
        ),
        st.tuples(value, step).map(lambda s: (f"{s[0]}/{s[1]}", range(s[0], high + 1, s[1]))),
        step.map(lambda n: (f"*/{n}", range(low, high + 1, n))),
    )
    return st.one_of(
        st.just([("*", range(low, high + 1))]), st.lists(part, min_size=1, max_size=3)
    ).map(
        lambda parts: Field(
            ",".join(text for text, _ in parts),
            frozenset(value for _, values in parts for value in values),
        )
    )


class Times(NamedTuple):
    """The four fields that vary; the month is always `*`."""

    minutes: Field
    hours: Field
    days: Field
    weekdays: Field

    @property
    def expression(self) -> str:
        return f"{self.minutes.text} {self.hours.text} {self.days.text} * {self.weekdays.text}"


TIMES = st.builds(Times, a_field(0, 59), a_field(0, 23), a_field(1, 31), a_field(0, 7))


def names(times: Times, wall: datetime) -> bool:
    """Whether a clock on the wall that shows this is meant. Written apart from the search."""
    if wall.minute not in times.minutes.values or wall.hour not in times.hours.values:
        return False
    by_month = wall.day in times.days.values
    by_week = wall.isoweekday() % 7 in {each % 7 for each in times.weekdays.values}
    if times.days.text.startswith("*") or times.weekdays.text.startswith("*"):
        return by_month and by_week
    return by_month or by_week


def walk(times: Times, zone: tzinfo, *, after: datetime, days: int) -> datetime | None:
    """The slow answer: watch the clock on the wall, minute by minute, for a few days."""
    moment = after.replace(second=0, microsecond=0)
    shown = _wall(moment - MINUTE * 60 * 26, zone)
    seen: set[datetime] = set()
    for step in range(-60 * 26, 60 * 24 * days):
        moment = after.replace(second=0, microsecond=0) + step * MINUTE
        wall = _wall(moment, zone)
        skipped = _between(shown, wall)
        due = [each for each in (*skipped, wall) if each not in seen and names(times, each)]
        seen.update((*skipped, wall))
        shown = max(shown, wall)
        if due and moment > after:
            return moment
    return None


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _between(before: datetime, wall: datetime) -> list[datetime]:
    """Every minute the clock jumped over."""
    count = (wall - before) // MINUTE
    return [before + number * MINUTE for number in range(1, count)]


@pytest.mark.requirement("scheduling-large:cron-next-slot-is-right")
@settings(max_examples=60, deadline=None)
@given(
    times=TIMES,
    zone=st.sampled_from(ZONES),
    turn=st.sampled_from(TURNS),
    off=st.timedeltas(timedelta(days=-2), timedelta(days=2)),
)
def test_the_next_slot_is_the_one_a_watcher_of_the_clock_sees(
    times: Times, zone: str, turn: datetime, off: timedelta
) -> None:
    after, known = turn + off, zone_of(zone)
    assert known is not None
    slow = walk(times, known, after=after, days=3)
    fast = next_cron_slot(Cron(expression=times.expression, zone=zone), after=after)
    if slow is None:
        assert fast is None or fast > after + timedelta(days=3) - MINUTE
    else:
        assert fast == slow


@given(times=TIMES, zone=st.sampled_from(ZONES), day=st.dates(date(1990, 1, 1)))
def test_slots_only_ever_rise(times: Times, zone: str, day: date) -> None:
    cron = Cron(expression=times.expression, zone=zone)
    moment: datetime | None = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for _ in range(5):
        assert moment is not None
        following_slot = next_cron_slot(cron, after=moment)
        if following_slot is None:
            return
        assert following_slot > moment
        moment = following_slot
