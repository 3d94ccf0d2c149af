"""An operator's command, cut off at every place between its request and its first moment."""

import asyncio
from collections.abc import Callable
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from holon.model.errors import HolonError
from holon.model.tasks import TaskStatus
from holon.ports.failpoint import Failpoint
from holon.runtime.tasks.commands import CommandRequest
from tests.runtime.house import House, run_house
from tests.runtime.shellwork import shell_setup, task_results, tasks
from tests.support.armed_failpoints import (
    Armed,
    ArmedFailpoints,
    FailAction,
    FailpointError,
)
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side

ORDER = CommandRequest(cmd="make")
STARTING = [Failpoint.TASK_BEFORE_START, Failpoint.TASK_AFTER_START]
requirement = pytest.mark.requirement("stop:an-acknowledged-task-ends-by-itself")


class Meddling:
    """Does something at a failpoint, once."""

    def __init__(self, point: Failpoint) -> None:
        self.act: Callable[[], object] = lambda: None
        self._point = point

    async def reach(self, point: Failpoint) -> None:
        if point is self._point:
            act, self.act = self.act, lambda: None
            act()
            await anyio.lowlevel.checkpoint()


async def ends_by_itself(house: House) -> None:
    """See the one task come to its own end, with one result."""
    await house.rest(120_000)
    assert [task.status for task in tasks(house)] == [TaskStatus.COMPLETED]
    assert [process.stop_count for process in house.shell.started] == [0]
    assert len(await task_results(house)) == 1


@requirement
@pytest.mark.parametrize("point", STARTING)
def test_who_asked_for_a_command_and_is_gone_does_not_end_it(point: Failpoint) -> None:
    meddling = Meddling(point)

    async def story(house: House) -> None:
        with anyio.CancelScope() as asking:
            meddling.act = asking.cancel
            await house.host.commands.start(MAIN, ORDER, key="k")
        assert asking.cancel_called, "the request was cut off"
        assert len(house.shell.running) == 1
        again = await house.host.commands.start(MAIN, ORDER, key="k")
        assert [task.id for task in tasks(house)] == [again.id]
        await ends_by_itself(house)

    run_house(story, setup=shell_setup(failpoints=meddling))


@requirement
@pytest.mark.parametrize("point", STARTING)
def test_a_command_that_was_being_started_in_a_crash_runs_once_in_the_next_life(
    point: Failpoint,
) -> None:
    armed = ArmedFailpoints({point: Armed(FailAction.RAISE, 1)})

    async def story(house: House) -> None:
        with pytest.raises(FailpointError):
            await house.host.commands.start(MAIN, ORDER, key="k")
        await house.restart()
        again = await house.host.commands.start(MAIN, ORDER, key="k")
        assert [task.id for task in tasks(house)] == [again.id]
        await ends_by_itself(house)

    run_house(story, setup=shell_setup(failpoints=armed))


@requirement
@pytest.mark.parametrize("commit", ["created", "running"])
@pytest.mark.parametrize("side", list(Side))
def test_a_crash_around_each_commit_of_a_start_leaves_one_task_or_none(
    commit: str, side: Side
) -> None:
    plan = CrashPlan(f"task:task_1:{commit}", side)

    async def story(house: House) -> None:
        asking = asyncio.ensure_future(house.host.commands.start(MAIN, ORDER))
        await house.rest(1_000)
        assert not asking.done(), "it was never answered"
        is_on_record = bool(tasks(house))
        assert is_on_record == ((commit, side) != ("created", Side.BEFORE))
        if not is_on_record:
            await house.host.commands.start(MAIN, ORDER)
        await ends_by_itself(house)

    run_house(story, setup=shell_setup(wrap=partial(CrashStore, plan=plan)))
    assert plan.has_struck


def test_a_command_whose_task_was_stopped_before_it_began_is_ended() -> None:
    meddling = Meddling(Failpoint.TASK_AFTER_START)

    async def story(house: House) -> None:
        async with anyio.create_task_group() as asking:
            meddling.act = lambda: asking.start_soon(
                lambda: house.host.commands.stop(tasks(house)[0].id)
            )
            await house.host.commands.start(MAIN, CommandRequest(cmd="server"))
        await house.rest(1_000)
        assert [task.status for task in tasks(house)] == [TaskStatus.CANCELLED]
        assert house.shell.running == []

    run_house(story, setup=shell_setup(failpoints=meddling))


def test_a_command_that_cannot_be_started_after_all_fails_its_task_and_says_why() -> None:
    async def story(house: House) -> None:
        with pytest.raises(HolonError, match="no such shell"):
            await house.host.commands.start(MAIN, CommandRequest(cmd="broken"))
        [task] = tasks(house)
        assert task.status is TaskStatus.FAILED
        assert task.failure is not None
        assert task.failure.kind == "command_not_started"
        assert "no such shell" in (task.result_summary or "")
        await house.restart()
        assert [each.status for each in tasks(house)] == [TaskStatus.FAILED]

    run_house(story, setup=shell_setup())


def test_a_task_left_queued_is_interrupted_when_its_agent_takes_no_commands_any_more() -> None:
    meddling = Meddling(Failpoint.TASK_BEFORE_START)

    async def story(house: House) -> None:
        async with anyio.create_task_group() as asking:
            meddling.act = lambda: asking.start_soon(house.host.control.stop, MAIN)
            await house.host.commands.start(MAIN, CommandRequest(cmd="server"))
        await house.rest(1_000)
        assert [task.status for task in tasks(house)] == [TaskStatus.INTERRUPTED]
        assert house.shell.running == []

    run_house(story, setup=shell_setup(failpoints=meddling))
