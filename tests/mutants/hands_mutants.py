"""Mutants in what becomes of commands and tasks when a host is cut off."""

from collections.abc import Collection, Sequence

import anyio

from holon.decide.events.audit import audited
from holon.decide.tasks.commands import run_id_of
from holon.model.commits import AdvanceTask, Commit, FinishToolCall
from holon.model.tasks import TaskRecord
from holon.model.values import AgentId, TaskId
from holon.runtime.tasks.commands import CommandRequest, CommandService
from holon.runtime.tasks.records import TaskService
from holon.runtime.tasks.supervisor import CommandTask, TaskSupervisor
from holon.runtime.turns.recovery import Recovery
from tests.mutants.planting import plant_method


def plant_h1() -> None:
    """Give up every task at a start, and leave its command running."""

    async def give_up(self: TaskSupervisor, tasks: Sequence[TaskRecord]) -> Collection[TaskId]:
        del self, tasks
        return ()

    plant_method(TaskSupervisor, "reattach", give_up)


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
            command = await self._shell.attach(run_id) if run_id is not None else None
            if command is not None:
                found.append(task.id)
                if command.exit is None:
                    self._hold(CommandTask(task, command))
        return found

    plant_method(TaskSupervisor, "reattach", attach)


def plant_h4() -> None:
    """Send the result of a task ahead, and once more with its end."""
    honest = TaskService._end

    async def twice(self: TaskService, task: TaskRecord, advance: AdvanceTask) -> Commit:
        ahead = await honest(self, task, advance)
        told = tuple(change for change in ahead.changes if not isinstance(change, AdvanceTask))
        early = Commit(commit_id=f"{ahead.commit_id}:ahead", at=ahead.at, changes=told)
        await self._store.apply(audited(early))
        return await honest(self, task, advance)

    plant_method(TaskService, "_end", twice)


def plant_h5() -> None:
    """Look only at what rows speak of."""

    async def look_away(self: Recovery, open_tasks: Sequence[TaskRecord]) -> None:
        del self, open_tasks

    plant_method(Recovery, "_end_strays", look_away)


def plant_s1() -> None:
    """Cut a start off with whoever asked for it, and end what had begun."""

    async def hasty(
        self: CommandService, agent_id: AgentId, order: CommandRequest, task_id: str
    ) -> TaskRecord:
        await self._require_admits(agent_id)
        command = await self._checked(agent_id, task_id, order)
        task = self._task(agent_id, TaskId(task_id), order, command=command)
        try:
            await self._task_service.open(task)
            await self._begin(task, command)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                begun = await self._shell.attach(command.run_id)
                if begun is not None:
                    await begun.stop()
            raise
        return task

    plant_method(CommandService, "_start", hasty)


def plant_s2() -> None:
    """Leave a task that was recorded and not yet started to whoever asks again."""

    async def pass_over(self: CommandService, task: TaskRecord) -> bool:
        del self, task
        return False

    plant_method(CommandService, "start_left", pass_over)
