"""Timers keep their grid, make up for downtime once, and never stack ticks."""

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.wake.timers import FireDecision, advanced_slot, decide_fire, next_slot, set_back
from holon.model.events.reads import DueTimer
from holon.model.limits import DAY_MS, TIMER_INTERVAL_MS_MIN
from holon.model.values import TimerId
from holon.model.wake import Cron, Every, OneShot, TimerRecord, TimerSchedule
from tests.decide.sample_rows import AGENT_ID, NOW, seconds

HOURLY = Every(interval_ms=3_600_000)
INTERVALS_MS = st.integers(TIMER_INTERVAL_MS_MIN, 30 * DAY_MS)
MOMENTS = st.timedeltas(timedelta(days=-2_000), timedelta(days=4_000)).map(lambda d: NOW + d)


def timer(schedule: TimerSchedule, *, next_fire_at: datetime | None = NOW) -> TimerRecord:
    return TimerRecord(
        id=TimerId("timer_1"),
        agent_id=AGENT_ID,
        created_at=NOW,
        anchor_at=NOW,
        schedule=schedule,
        next_fire_at=next_fire_at,
    )


def due(schedule: TimerSchedule, *, tick_pending: bool = False) -> DueTimer:
    return DueTimer(timer=timer(schedule), tick_pending=tick_pending)


def hours(count: float) -> timedelta:
    return seconds(3600 * count)


def steps_on_grid(slot: datetime, every: Every) -> int:
    count, rest = divmod(slot - NOW, timedelta(milliseconds=every.interval_ms))
    assert rest == timedelta(0)
    return count


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(hours(-5), hours(-4), id="the grid reaches back before its anchor"),
        pytest.param(timedelta(microseconds=-1), hours(0), id="just before the first slot"),
        pytest.param(hours(0), hours(1), id="on a slot the next one is meant"),
        pytest.param(timedelta(microseconds=1), hours(1), id="just after a slot"),
        pytest.param(hours(1), hours(2), id="on the second slot"),
        pytest.param(hours(7.5), hours(8), id="after a long silence"),
    ],
)
def test_the_next_slot_of_an_hourly_timer(offset: timedelta, expected: timedelta) -> None:
    assert next_slot(timer(HOURLY), now=NOW + offset) == NOW + expected


def test_a_one_shot_timer_has_no_next_slot() -> None:
    assert next_slot(timer(OneShot()), now=NOW) is None


@pytest.mark.requirement("wake:timer-keeps-its-grid")
@given(interval_ms=INTERVALS_MS, now=MOMENTS)
def test_slots_stay_on_the_grid_and_ahead_of_the_clock(interval_ms: int, now: datetime) -> None:
    every = Every(interval_ms=interval_ms)
    slot = next_slot(timer(every), now=now)
    assert slot is not None
    assert slot > now
    steps_on_grid(slot, every)
    assert slot - timedelta(milliseconds=interval_ms) <= now


@given(interval_ms=INTERVALS_MS, one=MOMENTS, other=MOMENTS)
def test_a_later_clock_never_gives_an_earlier_slot(
    interval_ms: int, one: datetime, other: datetime
) -> None:
    timer_ = timer(Every(interval_ms=interval_ms))
    first, second = (next_slot(timer_, now=moment) for moment in sorted((one, other)))
    assert first is not None
    assert second is not None
    assert first <= second


@pytest.mark.requirement("wake:due-timer-ticks")
@pytest.mark.parametrize("late", [hours(0), hours(0.5), hours(9.25)], ids=str)
def test_a_due_timer_queues_one_tick_for_the_slot_that_was_due(late: timedelta) -> None:
    decision = decide_fire(due(HOURLY), now=NOW + late)
    assert decision.slot == NOW
    assert decision.queues_tick


@pytest.mark.parametrize(
    ("late", "next_fire_at"),
    [
        pytest.param(hours(0), hours(1), id="on time"),
        pytest.param(hours(0.9), hours(1), id="late"),
        pytest.param(
            hours(1), hours(2), id="so late that the next slot is here: one fire for both"
        ),
        pytest.param(hours(48.5), hours(49), id="two days down: one fire for all"),
        pytest.param(hours(-2), hours(1), id="the clock went back: the slot is not repeated"),
    ],
)
def test_where_an_hourly_timer_stands_after_firing(
    late: timedelta, next_fire_at: timedelta
) -> None:
    late_by_ms = max(0, round(late.total_seconds() * 1_000))
    assert decide_fire(due(HOURLY), now=NOW + late) == FireDecision(
        slot=NOW, next_fire_at=NOW + next_fire_at, queues_tick=True, late_by_ms=late_by_ms
    )


@pytest.mark.requirement("scheduling-large:cron-keeps-its-grid")
@pytest.mark.parametrize("down_h", [0, 1, 23.5, 24, 240.25])
def test_a_cron_timer_makes_up_for_missed_slots_once_and_keeps_its_times(down_h: float) -> None:
    noon = Cron(expression="0 12 * * *", zone="UTC")
    decision = decide_fire(due(noon), now=NOW + hours(down_h))
    assert (decision.slot, decision.late_by_ms) == (NOW, int(down_h * 3_600_000))
    assert decision.next_fire_at is not None
    assert decision.next_fire_at > NOW + hours(down_h)
    assert (decision.next_fire_at - NOW) % timedelta(days=1) == timedelta(0)
    assert decision.next_fire_at <= NOW + hours(down_h) + timedelta(days=1)


@pytest.mark.requirement("wake:one-shot-timer-fires-once")
def test_a_one_shot_timer_is_over_once_it_has_fired() -> None:
    assert decide_fire(due(OneShot()), now=NOW + hours(3)) == FireDecision(
        slot=NOW, next_fire_at=None, queues_tick=True, late_by_ms=3 * 3_600_000
    )


@pytest.mark.requirement("wake:one-tick-per-timer")
@pytest.mark.parametrize("schedule", [HOURLY, OneShot()], ids=["hourly", "once"])
def test_no_second_tick_is_queued_while_one_still_waits(schedule: TimerSchedule) -> None:
    waiting = decide_fire(due(schedule, tick_pending=True), now=NOW)
    free = decide_fire(due(schedule), now=NOW)
    assert not waiting.queues_tick
    assert (waiting.slot, waiting.next_fire_at) == (free.slot, free.next_fire_at)


def test_a_timer_that_was_never_armed_starts_at_its_anchor() -> None:
    unarmed = DueTimer(timer=timer(HOURLY, next_fire_at=None), tick_pending=False)
    assert decide_fire(unarmed, now=NOW).slot == NOW


@pytest.mark.requirement("wake:one-catch-up-fire")
@given(
    interval_ms=INTERVALS_MS,
    jumps_s=st.lists(st.integers(-2 * 86_400, 40 * 86_400), min_size=1, max_size=30),
)
def test_whatever_the_clock_does_each_look_fires_once_and_slots_only_grow(
    interval_ms: int, jumps_s: list[int]
) -> None:
    every, now = Every(interval_ms=interval_ms), NOW
    standing, fired = timer(every), list[datetime]()
    for jump_s in jumps_s:
        now += seconds(jump_s)
        assert standing.next_fire_at is not None
        if now < standing.next_fire_at:
            continue
        decision = decide_fire(DueTimer(timer=standing, tick_pending=False), now=now)
        assert decision.next_fire_at is not None
        assert decision.next_fire_at > now  # so the same look cannot fire again
        steps_on_grid(decision.next_fire_at, every)
        fired.append(decision.slot)
        standing = timer(every, next_fire_at=decision.next_fire_at)
    assert fired == sorted(set(fired))


NOON = Cron(expression="0 12 * * *", zone="UTC")


def stands(
    schedule: TimerSchedule,
    *,
    armed_h: float = -100,
    anchor_h: float = -99,
    fired_h: float | None = None,
    at_h: float,
) -> TimerRecord:
    """A timer with moments in hours from NOW, which is noon."""
    return TimerRecord(
        id=TimerId("timer_1"),
        agent_id=AGENT_ID,
        created_at=NOW + hours(armed_h),
        anchor_at=NOW + hours(anchor_h),
        schedule=schedule,
        next_fire_at=NOW + hours(at_h),
        last_fired_at=None if fired_h is None else NOW + hours(fired_h),
        fire_count=int(fired_h is not None),
    )


@pytest.mark.requirement("clock:a-corrected-clock-silences-no-timer")
@pytest.mark.parametrize(
    ("timer_", "now_h", "moved_h"),
    [
        pytest.param(stands(HOURLY, fired_h=8, at_h=9), 0.5, 1, id="an hourly one, 8 h ahead"),
        pytest.param(stands(NOON, fired_h=72, at_h=96), 1, 24, id="a daily one, days ahead"),
        pytest.param(stands(HOURLY, fired_h=2, at_h=3), 0.5, 1, id="two slots would come again"),
        pytest.param(stands(HOURLY, fired_h=1, at_h=2), 0.999, None, id="one slot would"),
        pytest.param(stands(HOURLY, fired_h=1, at_h=2), 0.5, None, id="one slot would, in half"),
        pytest.param(stands(HOURLY, fired_h=-1, at_h=1), 0.5, None, id="it stands right"),
        pytest.param(
            stands(HOURLY, fired_h=8, at_h=9, armed_h=-1, anchor_h=6),
            0.5,
            6,
            id="not before anchor",
        ),
        pytest.param(
            stands(OneShot(), armed_h=8, anchor_h=9, at_h=9), 0, 1, id="once, armed ahead"
        ),
        pytest.param(stands(OneShot(), anchor_h=9, at_h=9), 0, None, id="once, armed in time"),
        pytest.param(
            stands(HOURLY, armed_h=8.5, anchor_h=10, at_h=10), 0, 2, id="armed ahead, 1.5 h to go"
        ),
        pytest.param(
            stands(NOON, armed_h=240, anchor_h=264, at_h=264), 1, 24, id="cron, armed ahead"
        ),
        pytest.param(
            stands(HOURLY, armed_h=8, anchor_h=9, fired_h=9, at_h=10), 0.5, 1, id="all ahead"
        ),
    ],
)
def test_where_a_timer_stands_once_the_clock_was_set_back(
    timer_: TimerRecord, now_h: float, moved_h: float | None
) -> None:
    moved = set_back(timer_, now=NOW + hours(now_h))
    assert moved == (None if moved_h is None else NOW + hours(moved_h))


@pytest.mark.requirement("clock:no-timer-is-early-for-it")
@pytest.mark.parametrize(
    ("timer_", "now_h", "moved_h"),
    [
        pytest.param(stands(OneShot(), anchor_h=9, at_h=-900), 0, 9, id="once: its own moment"),
        pytest.param(stands(HOURLY, fired_h=0, at_h=-900), 0.5, 1, id="after its last fire"),
        pytest.param(stands(HOURLY, fired_h=-0.5, at_h=-900), 2, None, id="a slot has come since"),
        pytest.param(stands(NOON, fired_h=-1, at_h=-8000), 1, None, id="a slot was missed"),
        pytest.param(stands(NOON, fired_h=0, at_h=-8000), 1, 24, id="none was missed"),
        pytest.param(stands(HOURLY, fired_h=8, at_h=0), 0, None, id="the last fire is ahead still"),
        pytest.param(
            stands(OneShot(), armed_h=8, anchor_h=9, at_h=0), 0, None, id="armed ahead still"
        ),
        pytest.param(stands(HOURLY, fired_h=-1.5, at_h=-1), 0, None, id="late, never moved"),
        pytest.param(stands(OneShot(), anchor_h=-1, at_h=-1), 0, None, id="once, late"),
    ],
)
def test_a_timer_that_was_moved_back_is_not_early_when_the_lower_clock_was_wrong(
    timer_: TimerRecord, now_h: float, moved_h: float | None
) -> None:
    moved = advanced_slot(timer_, now=NOW + hours(now_h))
    assert moved == (None if moved_h is None else NOW + hours(moved_h))


@given(
    interval_ms=INTERVALS_MS,
    ahead=st.timedeltas(timedelta(0), timedelta(days=4_000)),
    span=st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)),
)
def test_no_repeating_timer_is_silent_for_two_intervals_after_a_correction(
    interval_ms: int, ahead: timedelta, span: timedelta
) -> None:
    every, interval = Every(interval_ms=interval_ms), timedelta(milliseconds=interval_ms)
    armed = TimerRecord(
        id=TimerId("timer_1"),
        agent_id=AGENT_ID,
        created_at=NOW,
        anchor_at=NOW + span,
        schedule=every,
        next_fire_at=NOW + span,
    )
    fired_at = NOW + span + ahead
    decision = decide_fire(DueTimer(timer=armed, tick_pending=False), now=fired_at)
    fired = msgspec.structs.replace(
        armed, next_fire_at=decision.next_fire_at, last_fired_at=fired_at, fire_count=1
    )
    now = NOW + span
    moved = set_back(fired, now=now) or fired.next_fire_at
    assert moved is not None
    assert now < moved <= now + 2 * interval
    steps_on_grid(moved - span, every)
