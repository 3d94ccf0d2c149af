"""Mutants in what becomes of commands and tasks when a host is cut off."""

from collections.abc import Collection, Sequence

from holon.decide.command_promotion import run_id_of
from holon.model.commit import AdvanceTask, Commit, FinishToolCall
from holon.model.ids import TaskId
from holon.model.task import TaskRecord
from holon.runtime.command_task import CommandTask
from holon.runtime.recovery import Recovery
from holon.runtime.task_desk import TaskDesk
from holon.runtime.task_supervisor import TaskSupervisor
from tests.mutants.planting import plant_method


def plant_h1() -> None:
    """Give up every task at a start, and leave its command running."""

    async def give_up(self: TaskSupervisor, tasks: Sequence[TaskRecord]) -> Collection[TaskId]:
        del self, tasks
        return ()

    plant_method(TaskSupervisor, "take_up", give_up)


def plant_h2() -> None:
    """Answer calls that were cut off without ending what they started."""

    async def leave(self: Recovery, interrupted: Sequence[FinishToolCall]) -> None:
        del self, interrupted

    plant_method(Recovery, "_end_commands_of", leave)


def plant_h3() -> None:
    """Attach to what still runs, and forget what ended while nobody looked."""

    async def attach(self: TaskSupervisor, tasks: Sequence[TaskRecord]) -> Collection[TaskId]:
        found: list[TaskId] = []
        for task in tasks:
            run_id = run_id_of(task)
            command = await self._services.shell.attach(run_id) if run_id is not None else None
            if command is not None:
                found.append(task.id)
                if command.exit is None:
                    self._hold(CommandTask(task, command))
        return found

    plant_method(TaskSupervisor, "take_up", attach)


def plant_h4() -> None:
    """Send the result of a task ahead, and once more with its end."""
    honest = TaskDesk._end

    async def twice(self: TaskDesk, task: TaskRecord, advance: AdvanceTask) -> Commit:
        ahead = await honest(self, task, advance)
        told = tuple(change for change in ahead.changes if not isinstance(change, AdvanceTask))
        early = Commit(commit_id=f"{ahead.commit_id}:ahead", at=ahead.at, changes=told)
        await self._services.store.apply(early)
        return await honest(self, task, advance)

    plant_method(TaskDesk, "_end", twice)


def plant_h5() -> None:
    """Look only at what rows speak of."""

    async def look_away(self: Recovery, open_tasks: Sequence[TaskRecord]) -> None:
        del self, open_tasks

    plant_method(Recovery, "_end_strays", look_away)
