"""Virtual time, seeded order, and death between two callbacks."""

import asyncio
import gc
from datetime import timedelta
from random import Random

import anyio
import pytest

from tests.support.manual_clock import DAWN, ManualClock
from tests.support.sim_loop import SimLoop, SimulatedCrash, SimulatedDeadlockError

HOUR = timedelta(hours=1)


def test_time_jumps_to_whoever_waits_next() -> None:
    clock = ManualClock()
    woken: list[int] = []

    async def sleeper(hours: int) -> None:
        await clock.sleep_until(DAWN + hours * HOUR)
        woken.append(hours)

    async def life() -> None:
        await asyncio.gather(sleeper(3), sleeper(1), sleeper(2))

    SimLoop(clock, Random(0)).run_life(life())
    assert woken == [1, 2, 3]
    assert clock.now() == DAWN + 3 * HOUR


def test_nobody_ready_and_nobody_waiting_is_an_error() -> None:
    async def life() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(SimulatedDeadlockError):
        SimLoop(ManualClock(), Random(0)).run_life(life())


def _order(seed: int) -> list[int]:
    ran: list[int] = []

    async def runner(number: int) -> None:
        ran.append(number)

    async def life() -> None:
        await asyncio.gather(*(runner(number) for number in range(8)))

    SimLoop(ManualClock(), Random(seed)).run_life(life())
    return ran


def test_a_seed_decides_the_order_and_decides_it_again() -> None:
    orders = [_order(seed) for seed in range(10)]
    assert orders == [_order(seed) for seed in range(10)]
    assert len({tuple(order) for order in orders}) > 5
    assert all(sorted(order) == list(range(8)) for order in orders)


@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_crash_ends_everything_between_two_steps_and_nothing_cleans_up(step: int) -> None:
    clock = ManualClock()
    survivors: list[str] = []

    async def worker() -> None:
        try:
            await clock.sleep_until(DAWN + HOUR)
        except asyncio.CancelledError:
            survivors.append("cancelled")
            raise

    async def life() -> None:
        await asyncio.gather(*(worker() for _ in range(3)))

    loop = SimLoop(clock, Random(0))
    loop.crash_at_step = step
    with pytest.raises(SimulatedCrash):
        loop.run_life(life())
    assert survivors == []
    assert loop.step_count == step
    assert clock.next_deadline() is None, "the dead keep no appointments"


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_task_that_never_began_is_buried_in_silence(step: int) -> None:
    async def worker() -> None:
        await anyio.sleep_forever()

    async def life() -> None:
        async with anyio.create_task_group() as workers:
            for _ in range(3):
                workers.start_soon(worker)

    loop = SimLoop(ManualClock(), Random(0))
    loop.crash_at_step = step
    with pytest.raises(SimulatedCrash):
        loop.run_life(life())
    del loop
    gc.collect()  # a complaint would be an error, because warnings are


def test_no_task_can_hold_a_crash_back() -> None:
    async def stubborn() -> None:
        try:
            raise SimulatedCrash("now")
        except Exception:  # noqa: BLE001 - as broad as it gets without catching everything
            return

    with pytest.raises(SimulatedCrash):
        SimLoop(ManualClock(), Random(0)).run_life(stubborn())


def test_the_loop_tells_the_time_of_the_clock() -> None:
    clock = ManualClock()

    async def life() -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await clock.sleep_until(DAWN + HOUR)
        assert loop.time() - before == pytest.approx(3_600)

    SimLoop(clock, Random(0)).run_life(life())
