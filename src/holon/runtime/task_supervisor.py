"""Looks after every command that runs in the background.

Owns:  running command tasks, from the commit that records them to the commit that ends them.
Rule 1: a command becomes a task only once its row is durable. When the call that wanted it is
        answered otherwise, the command is ended: no process without a row.
Rule 2: a task's end goes to the desk, which records it together with its one result message.
Rule 3: the end of this process is no end of a task: the next one attaches to the same command. Only
        what cannot be found any more is interrupted.
Rule 4: a stopped agent's commands are ended first and recorded as interrupted afterwards, so that a
        crash in between leaves no process behind.
Rule 5: an error about one command is an error about that one: a task that cannot be waited for has
        an end nobody saw, what cannot be attached to was not found, and the host goes on.
Rule 6: so is a bug about one task. It is noted, and the task and its command stay as they are: they
        can be stopped, and the next start takes them up again.
"""

from collections.abc import Collection, Sequence

import anyio
import msgspec
from anyio.abc import TaskGroup

from holon.decide.command_end import EndAsked
from holon.decide.command_promotion import run_id_of
from holon.model.agent_status import AgentStatus
from holon.model.command import CommandExit
from holon.model.ids import AgentId, TaskId, TurnId
from holon.model.task import TaskRecord, TaskStatus
from holon.ports.journal import Journal
from holon.ports.shell import RunningCommand, Shell
from holon.ports.store_reads import StoreReads
from holon.ports.task_control import StopRequest
from holon.runtime.bug_boundary import BugBoundary, bug_noted
from holon.runtime.command_boundary import ended_spared, spared, stop_spared
from holon.runtime.command_task import CommandTask, OfferedBy, became_durable
from holon.runtime.task_reporter import TaskReporter


class TaskSupervisor:
    """The background commands of one host."""

    def __init__(
        self,
        reporter: TaskReporter,
        *,
        reads: StoreReads,
        shell: Shell,
        journal: Journal,
    ) -> None:
        self._reads = reads
        self._shell = shell
        self._journal = journal
        self._reporter = reporter
        self._held: dict[TaskId, CommandTask] = {}
        self._watching: TaskGroup | None = None

    def offer(
        self, task: TaskRecord, command: RunningCommand, *, turn_id: TurnId, effect_id: str
    ) -> None:
        """Hand over a command whose row is about to be committed."""
        self._hold(
            CommandTask(task, command, offered_by=OfferedBy(turn_id=turn_id, effect_id=effect_id))
        )

    def take(self, task: TaskRecord, command: RunningCommand) -> None:
        """Look after a command whose row is durable; if its agent was stopped since, end it."""
        self._hold(CommandTask(task, command))
        self.agent_cut_off(task.agent_id)

    def running(self, agent_id: AgentId) -> Sequence[TaskRecord]:
        """The agent's command tasks that run right now, oldest first."""
        return [held.as_it_stands for held in self._held.values() if held.task.agent_id == agent_id]

    def running_count(self) -> int:
        """How many command tasks of all agents run right now."""
        return len(self._held)

    def command(self, task_id: TaskId) -> RunningCommand | None:
        """The command of a running task."""
        held = self._held.get(task_id)
        return held.command if held is not None else None

    async def wait_ended(self, task_id: TaskId) -> None:
        """Return once the task's end is durable; at once for a task that does not run here."""
        held = self._held.get(task_id)
        if held is not None:
            await held.ended.wait()

    async def stop(self, task_id: TaskId) -> StopRequest:
        """End a task: politely the first time, for certain the second time."""
        held = self._held.get(task_id)
        if held is None:
            request = await self._reporter.cancel_unowned(task_id)
            if (begun := self._held.get(task_id)) is not None:  # it was being started meanwhile
                begun.ask_end(EndAsked.TASK_STOP)
                self._end(begun)
            return request
        force = held.asked is not EndAsked.NOBODY
        if not force:
            await self._reporter.cancelling(held.task)
            held.ask_end(EndAsked.TASK_STOP)
        self._end(held, force=force)
        return StopRequest(stop_requested=True, force_stop_requested=force)

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Rows of these agents changed: a row that was waited for may be there."""
        for held in self._held.values():
            if held.offered_by is not None and held.task.agent_id in touched:
                held.tell_news()

    def agent_cut_off(self, agent_id: AgentId) -> None:
        """The operator took the agent off its lane; if it was stopped, its commands end too."""
        if self._watching is not None and self.running(agent_id):
            self._watching.start_soon(self._end_if_stopped, agent_id)

    async def take_up(self, tasks: Sequence[TaskRecord]) -> Collection[TaskId]:
        """Attach to what an earlier process started; return the tasks that are accounted for."""
        accounted_for: list[TaskId] = []
        for task in tasks:
            held: CommandTask | None = None
            with _guarded(self._journal, task) as boundary:
                held, ended = await self._attached(task)
                if held is not None and ended is not None:
                    await self._reporter.end(held, ended)
                elif held is not None:
                    self._hold(held)
                    if task.status is TaskStatus.QUEUED:
                        await self._reporter.running(held.task)
            if held is not None or boundary.met_bug:
                accounted_for.append(task.id)
        return accounted_for

    async def run(self) -> None:
        """Look after every command until the host ends; the commands themselves go on."""
        async with anyio.create_task_group() as watching:
            self._watching = watching
            for held in tuple(self._held.values()):
                self._hold(held)
            for agent_id in {held.task.agent_id: None for held in self._held.values()}:
                watching.start_soon(self._end_if_stopped, agent_id)
            await anyio.Event().wait()

    def _hold(self, held: CommandTask) -> None:
        """Keep a command, and look after it from now on or from when we run."""
        self._held[held.task.id] = held
        if self._watching is not None:
            self._watching.start_soon(self._see_through, held)
            if held.asked is not EndAsked.NOBODY:  # an earlier process was asked; we carry it out
                self._end(held)

    def _end(self, held: CommandTask, *, force: bool = False) -> None:
        if self._watching is not None:
            self._watching.start_soon(_stop, self._journal, held, force)

    async def _see_through(self, held: CommandTask) -> None:
        journal = self._journal
        with _guarded(journal, held.task):
            if await became_durable(held, self._reads):
                await self._reporter.end(held, await ended_spared(journal, held))
            else:
                journal.note(
                    "command_unowned",
                    "the call that started a command was answered otherwise; it is ended",
                    agent_id=held.task.agent_id,
                    task_id=held.task.id,
                )
                await stop_spared(journal, held, force=False)
                with spared(
                    journal, "the files of a command are left for later", task_id=held.task.id
                ):
                    await self._shell.forget(held.command.run_id)
            del self._held[held.task.id]
            held.ended.set()

    async def _attached(self, task: TaskRecord) -> tuple[CommandTask | None, CommandExit | None]:
        """Find the command of a task, if it is still to be found, and how it ended, if it has."""
        run_id, command, ended = run_id_of(task), None, None
        with spared(self._journal, "a command cannot be attached to", task_id=task.id):
            command = await self._shell.attach(run_id) if run_id is not None else None
            ended = command.exit if command is not None else None
        if task.status is TaskStatus.QUEUED:  # its command was started, and that was not recorded
            task = msgspec.structs.replace(task, status=TaskStatus.RUNNING)
        return None if command is None else CommandTask(task, command), ended

    async def _end_if_stopped(self, agent_id: AgentId) -> None:
        with bug_noted(
            self._journal,
            "task_crashed",
            f"whether the commands of {agent_id} are to end could not be found out (a bug)",
            agent_id=agent_id,
        ):
            agent = await self._reads.agent(agent_id)
            if agent is None or agent.posture.status is not AgentStatus.STOPPED:
                return
            for held in self._held.values():
                if held.task.agent_id == agent_id:
                    held.ask_end(EndAsked.AGENT_STOP)
                    self._end(held)


async def _stop(journal: Journal, held: CommandTask, force: bool) -> None:
    with _guarded(journal, held.task):
        await stop_spared(journal, held, force)


def _guarded(journal: Journal, task: TaskRecord) -> BugBoundary:
    return bug_noted(
        journal,
        "task_crashed",
        f"task {task.id} stays as it is, at the longest until the next start (a bug)",
        agent_id=task.agent_id,
        task_id=task.id,
    )
