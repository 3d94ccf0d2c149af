"""What every clock promises, asked of each implementation; then what each adds of its own."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from holon.adapters.system.clock import JUMP_NOTICED_MS, SystemClock
from holon.model.values import later, to_micros
from holon.ports.clock import Clock
from tests.support.manual_clock import DAWN, ManualClock

CLOCKS: list[Callable[[], Clock]] = [SystemClock, ManualClock]


@pytest.fixture(params=CLOCKS, ids=["system", "manual"])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


async def let_time_pass(clock: Clock) -> None:
    """Give a manual clock the push that a real one gets from the world."""
    await asyncio.sleep(0)
    if isinstance(clock, ManualClock):
        clock.advance_to_next()


def test_now_is_utc_in_whole_microseconds(clock: Clock) -> None:
    now = clock.now()
    assert now.tzinfo is UTC
    assert now == datetime.fromtimestamp(0, UTC) + timedelta(microseconds=to_micros(now))


def test_the_monotonic_reading_never_goes_back(clock: Clock) -> None:
    readings = [clock.monotonic_ns() for _ in range(100)]
    assert readings == sorted(readings)
    assert all(isinstance(reading, int) for reading in readings)


@pytest.mark.parametrize("by_ms", [0, -1, -86_400_000])
async def test_a_deadline_in_the_past_returns_at_once(clock: Clock, by_ms: int) -> None:
    await clock.sleep_until(later(clock.now(), by_ms=by_ms))


async def test_a_sleeper_wakes_at_its_deadline_and_not_before(clock: Clock) -> None:
    deadline = later(clock.now(), by_ms=3)
    sleeper = asyncio.create_task(clock.sleep_until(deadline))
    await let_time_pass(clock)
    await sleeper
    assert clock.now() >= deadline


async def test_a_pause_lasts_as_long_as_it_should(clock: Clock) -> None:
    began_ns = clock.monotonic_ns()
    sleeper = asyncio.create_task(clock.sleep_for(3))
    await let_time_pass(clock)
    await sleeper
    assert clock.monotonic_ns() - began_ns >= 3_000_000
    await clock.sleep_for(0)
    await clock.sleep_for(-1)


async def test_a_cancelled_sleeper_leaves_nothing_behind(clock: Clock) -> None:
    sleeper = asyncio.create_task(clock.sleep_until(later(clock.now(), by_ms=86_400_000)))
    await asyncio.sleep(0)
    sleeper.cancel()
    await asyncio.gather(sleeper, return_exceptions=True)
    assert sleeper.cancelled()
    if isinstance(clock, ManualClock):
        assert clock.next_deadline() is None


class Wall:
    """A wall clock in a test's hands: each pause moves it by what was slept, plus a script."""

    def __init__(self, *jumps_ms: int) -> None:
        self.ns = to_micros(DAWN) * 1_000
        self.jumps_ms = list(jumps_ms)
        self.pauses_s: list[float] = []

    def read(self) -> int:
        return self.ns

    async def pause(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        jump_ms = self.jumps_ms.pop(0) if self.jumps_ms else 0
        self.ns += round(seconds * 1_000_000_000) + jump_ms * 1_000_000


@pytest.mark.parametrize(
    ("jumps_ms", "pause_count"),
    [
        pytest.param([], 5, id="no jump"),
        pytest.param([3_600_000], 1, id="forwards past the deadline"),
        pytest.param([-4_000], 7, id="back"),
    ],
)
async def test_the_system_clock_notices_jumps(jumps_ms: list[int], pause_count: int) -> None:
    wall = Wall(*jumps_ms)
    clock = SystemClock(wall_ns=wall.read, pause=wall.pause)
    deadline = later(clock.now(), by_ms=5 * JUMP_NOTICED_MS)
    await clock.sleep_until(deadline)
    assert clock.now() >= deadline
    assert len(wall.pauses_s) == pause_count
    assert max(wall.pauses_s) <= JUMP_NOTICED_MS / 1_000


async def test_the_system_clock_waits_out_a_fraction_of_a_microsecond() -> None:
    wall = Wall()
    wall.ns -= 1
    clock = SystemClock(wall_ns=wall.read, pause=wall.pause)
    await clock.sleep_until(DAWN)
    assert wall.pauses_s == [1e-9]


@pytest.mark.requirement("hostile:pauses-ignore-the-wall-clock")
@pytest.mark.parametrize("jump_ms", [8 * 3_600_000, -86_400_000], ids=["+8 h", "-1 d"])
async def test_a_jump_of_the_wall_makes_no_pause_longer_or_shorter(jump_ms: int) -> None:
    clock = ManualClock()
    pause = asyncio.create_task(clock.sleep_for(1_000))
    await asyncio.sleep(0)
    clock.jump(jump_ms)
    clock.advance(999)
    await asyncio.sleep(0)
    assert not pause.done()
    clock.advance(1)
    await asyncio.sleep(0)
    assert pause.done()


@pytest.mark.requirement("hostile:pauses-ignore-the-wall-clock")
async def test_a_pause_of_the_system_clock_is_one_sleep_whatever_the_wall_says() -> None:
    wall = Wall(-86_400_000)
    await SystemClock(wall_ns=wall.read, pause=wall.pause).sleep_for(1_500)
    assert wall.pauses_s == [1.5]
