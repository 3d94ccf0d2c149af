"""The mark stands whenever the work has the processor, and never while it waits."""

import asyncio

import pytest

from holon.model.values import TurnId
from holon.runtime.turns.lane import Marked

TURN = TurnId("turn_1")


class Seen:
    """A mark, and what is seen of it."""

    left_by: TurnId | None = None

    def __init__(self) -> None:
        self.now: TurnId | None = None

    def enter(self, turn_id: TurnId) -> None:
        self.now = turn_id

    def leave(self) -> None:
        self.now = None


@pytest.mark.requirement("hostile-text:only-the-turn-at-work-is-blamed")
async def test_the_mark_stands_at_work_and_not_while_waiting() -> None:
    mark, gate, seen = Seen(), asyncio.Event(), list[object]()

    async def work() -> str:
        seen.append(mark.now)
        await gate.wait()
        seen.append(mark.now)
        return "done"

    async def through() -> str:
        return await Marked(work(), mark, TURN)

    running = asyncio.create_task(through())
    await asyncio.sleep(0)
    seen.append(mark.now)
    gate.set()
    assert await running == "done"
    assert seen == [TURN, None, TURN]
    assert mark.now is None


@pytest.mark.requirement("hostile-text:only-the-turn-at-work-is-blamed")
async def test_a_cancellation_reaches_the_work_which_may_still_finish_something() -> None:
    mark, seen = Seen(), list[object]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(mark.now)
            await asyncio.sleep(0)
            seen.append(mark.now)

    async def through() -> None:
        await Marked(work(), mark, TURN)

    running = asyncio.create_task(through())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == [TURN, TURN]
    assert mark.now is None


async def test_an_error_of_the_work_comes_out_and_leaves_no_mark() -> None:
    mark = Seen()

    async def work() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await Marked(work(), mark, TURN)
    assert mark.now is None
