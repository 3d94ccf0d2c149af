"""Virtual time: what moves it, whom it releases, and in which order."""

import asyncio

import pytest

from holon.model.values import later
from tests.support.manual_clock import DAWN, ManualClock


class Notes:
    """Who was released, and when by the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.taken: list[tuple[str, int]] = []

    def at(self, name: str, ms: int) -> None:
        def note() -> None:
            passed = (self.clock.now() - DAWN).total_seconds()
            self.taken.append((name, round(passed * 1_000)))

        self.clock.call_at(later(DAWN, by_ms=ms), note)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def notes(clock: ManualClock) -> Notes:
    return Notes(clock)


def test_time_stands_still_until_moved(clock: ManualClock) -> None:
    assert clock.now() == clock.now() == DAWN
    assert clock.monotonic_ns() == 0
    assert clock.advance_to_next() is False


def test_advancing_releases_each_waiter_at_its_own_moment(clock: ManualClock, notes: Notes) -> None:
    notes.at("late", 30)
    notes.at("early", 10)
    notes.at("never", 31)
    clock.advance(30)
    assert notes.taken == [("early", 10), ("late", 30)]
    assert clock.now() == later(DAWN, by_ms=30)
    assert clock.monotonic_ns() == 30_000_000


def test_waiters_of_one_moment_are_released_in_the_order_they_came(
    clock: ManualClock, notes: Notes
) -> None:
    for name in "dacb":
        notes.at(name, 5)
    assert [clock.advance_to_next() for _ in range(5)] == [True] * 4 + [False]
    assert notes.taken == [("d", 5), ("a", 5), ("c", 5), ("b", 5)]


def test_a_callback_may_make_the_next_appointment(clock: ManualClock, notes: Notes) -> None:
    clock.call_at(later(DAWN, by_ms=5), lambda: notes.at("child", 7))
    clock.advance(10)
    assert notes.taken == [("child", 7)]


def test_a_cancelled_appointment_is_forgotten(clock: ManualClock) -> None:
    kept: list[str] = []
    clock.call_at(later(DAWN, by_ms=1), lambda: kept.append("cancelled")).cancel()
    clock.call_at(later(DAWN, by_ms=2), lambda: kept.append("kept"))
    assert clock.next_deadline() == later(DAWN, by_ms=2)
    clock.advance(10)
    assert kept == ["kept"]


@pytest.mark.parametrize(
    ("jump_ms", "released"), [(9, []), (10, ["due"]), (50, ["due"]), (-50, [])]
)
def test_a_jump_moves_the_wall_alone(
    clock: ManualClock, notes: Notes, jump_ms: int, released: list[str]
) -> None:
    notes.at("due", 10)
    clock.jump(jump_ms)
    assert [name for name, _ in notes.taken] == released
    assert clock.now() == later(DAWN, by_ms=jump_ms)
    assert clock.monotonic_ns() == 0


async def test_a_sleeper_waits_for_the_wall_that_was_set_back(clock: ManualClock) -> None:
    sleeper = asyncio.create_task(clock.sleep_until(later(DAWN, by_ms=10)))
    await asyncio.sleep(0)
    clock.jump(-5)
    clock.advance(10)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance(5)
    await sleeper
    assert clock.monotonic_ns() == 15_000_000


async def test_a_due_waiter_behind_the_wall_is_released_without_moving_it(
    clock: ManualClock, notes: Notes
) -> None:
    clock.advance(20)
    notes.at("already due", 10)
    assert clock.advance_to_next()
    assert notes.taken == [("already due", 20)]
