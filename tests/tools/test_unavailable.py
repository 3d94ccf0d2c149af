"""A host without hands refuses in the words each port is known for."""

from datetime import UTC, datetime

import pytest

from holon.model.tasks import CommandSpec
from holon.model.values import TaskId, TurnId
from holon.ports.tasks import CommandSpawnError, RunningCommand
from holon.ports.unavailable import (
    NoClock,
    NoDirectories,
    NoFiles,
    NoShell,
    NoTasks,
    UnavailableError,
)
from holon.ports.workspaces import FileRefusedError
from tests.support.builders import MAIN, a_task
from tests.support.manual_clock import ManualClock
from tests.support.scripted_shell import ScriptedShell

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


async def test_commands_and_files_are_refused() -> None:
    spec = CommandSpec(run_id="r", cmd="true", workdir="/")
    with pytest.raises(CommandSpawnError):
        await NoShell().start(spec)
    assert await NoShell().attach("r") is None
    await NoShell().forget("r")
    with pytest.raises(FileRefusedError):
        NoFiles().under("/")
    await NoDirectories().ensure("/")
    assert await NoDirectories().resolved("/") is None


async def test_time_is_not_made_up() -> None:
    for ask in (NoClock().now, NoClock().monotonic_ns):
        with pytest.raises(UnavailableError):
            ask()
    with pytest.raises(UnavailableError):
        await NoClock().sleep_until(MOMENT)


async def test_nothing_runs_in_the_background() -> None:
    tasks, task_id = NoTasks(), TaskId("task_1")
    command: RunningCommand = await ScriptedShell(ManualClock()).start(
        CommandSpec(run_id="r", cmd="true", workdir="/")
    )
    with pytest.raises(UnavailableError):
        tasks.offer(a_task(), command, turn_id=TurnId("turn_1"), effect_id="turn_1.1.0")
    assert list(tasks.running(MAIN)) == []
    assert tasks.command(task_id) is None
    await tasks.wait_ended(task_id)
    assert not (await tasks.stop(task_id)).stop_requested
