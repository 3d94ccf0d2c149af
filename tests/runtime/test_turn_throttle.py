"""A few turns go on together; of many, one after the other, with the loop between them."""

from contextlib import ExitStack

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holon.runtime.turns.lane import TOGETHER_COUNT_MAX, TurnThrottle


async def passes_between(turn_count: int) -> list[int]:
    """When each turn got through, counted in passes of the loop."""
    throttle, got_through, loop_passes = TurnThrottle(), list[int](), 0

    async def turn() -> None:
        await throttle.pass_through()
        got_through.append(loop_passes)

    with ExitStack() as running:
        for _ in range(turn_count):
            running.enter_context(throttle.turn())
        async with anyio.create_task_group() as turns:
            for _ in range(turn_count):
                turns.start_soon(turn)
            while len(got_through) < turn_count:
                await checkpoint()
                loop_passes += 1
    return got_through


@pytest.mark.parametrize("turn_count", [1, TOGETHER_COUNT_MAX])
async def test_a_few_turns_go_on_together(turn_count: int) -> None:
    assert len(set(await passes_between(turn_count))) == 1


async def test_of_many_turns_no_two_go_on_in_one_pass() -> None:
    got_through = await passes_between(TOGETHER_COUNT_MAX + 5)
    assert len(set(got_through)) == TOGETHER_COUNT_MAX + 5
    assert got_through == sorted(got_through)


async def test_a_turn_that_gives_up_waiting_lets_the_next_one_through() -> None:
    throttle = TurnThrottle()
    with ExitStack() as running:
        for _ in range(TOGETHER_COUNT_MAX + 1):
            running.enter_context(throttle.turn())
        with anyio.CancelScope() as gives_up:
            gives_up.cancel()
            await throttle.pass_through()
        await throttle.pass_through()
    assert gives_up.cancelled_caught
