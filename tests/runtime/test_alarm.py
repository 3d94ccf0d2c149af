"""A nudge or a moment, whichever comes first; a nudge is never lost."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

import anyio
import pytest

from holon.runtime.background import Alarm
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.sim_loop import SimLoop

MINUTE = timedelta(minutes=1)


def run(act: Callable[[Alarm, ManualClock], Awaitable[None]]) -> None:
    """Run a scene on virtual time."""
    clock = ManualClock()

    async def scene() -> None:
        await act(Alarm(clock), clock)

    SimLoop(clock, Random(0)).run_life(scene())


def test_a_nudge_that_comes_before_the_wait_is_kept() -> None:
    async def act(alarm: Alarm, clock: ManualClock) -> None:
        alarm.nudge()
        alarm.nudge()
        await alarm.wait(until=DAWN + MINUTE)
        assert clock.now() == DAWN
        await alarm.wait(until=DAWN + MINUTE)
        assert clock.now() == DAWN + MINUTE, "two nudges before one look are one"

    run(act)


@pytest.mark.parametrize("until", [None, DAWN + 2 * MINUTE])
def test_a_nudge_ends_the_wait_before_its_moment(until: object) -> None:
    async def act(alarm: Alarm, clock: ManualClock) -> None:
        clock.call_at(DAWN + MINUTE, alarm.nudge)
        await alarm.wait(until=None if until is None else DAWN + 2 * MINUTE)
        assert clock.now() == DAWN + MINUTE

    run(act)


def test_a_moment_in_the_past_rings_at_once() -> None:
    async def act(alarm: Alarm, clock: ManualClock) -> None:
        await alarm.wait(until=DAWN - MINUTE)
        assert clock.now() == DAWN

    run(act)


def test_a_wait_can_be_cut_off_and_begun_again() -> None:
    async def act(alarm: Alarm, clock: ManualClock) -> None:
        with anyio.CancelScope() as scope:
            clock.call_at(DAWN + MINUTE, scope.cancel)
            await alarm.wait(until=DAWN + 3 * MINUTE)
        assert clock.now() == DAWN + MINUTE
        await alarm.wait(until=DAWN + 2 * MINUTE)
        assert clock.now() == DAWN + 2 * MINUTE

    run(act)
