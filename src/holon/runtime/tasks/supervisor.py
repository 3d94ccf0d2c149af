"""Looks after every command that runs in the background.

Owns:  what is known of a running command task besides its row: the live command, who wants it to
       end, and the moment its end is durable; keeping an error about one command from ending the
       host, and what is then taken for true; turning the end of a command into the end of its task,
       and the patience this takes; running command tasks, from the commit that records them to the
       commit that ends them.
Rule 1: a request to end is never taken back; an agent's stop outranks a task's.
Rule 2: a command can reach its own files, and a machine can run out of handles: what goes wrong
        when we look is noted in the journal, and costs that look, not the work of all agents.
Rule 3: a command that cannot be waited for has an end nobody saw; what may be left of it is ended.
Rule 4: only errors of the machine are held back. Those of the store go on to whoever answers for
        it, and a bug is not hidden here.
Rule 5: a report is repeated until it is recorded or cannot matter any more; the desk's commit makes
        a repeat harmless.
Rule 6: a task whose output cannot be looked at ends all the same, without it.
Rule 7: a task is over when it is told as ended: what its command left running has no name any more,
        and is ended before the result is.
Rule 8: a result is freed of secrets before it is kept: it goes to the model.
Rule 9: a command becomes a task only once its row is durable. When the call that wanted it is
        answered otherwise, the command is ended: no process without a row.
Rule 10: a task's end goes to the desk, which records it together with its one result message.
Rule 11: the end of this process is no end of a task: the next one attaches to the same command.
         Only what cannot be found any more is interrupted.
Rule 12: a stopped agent's commands are ended first and recorded as interrupted afterwards, so that
         a crash in between leaves no process behind.
Rule 13: an error about one command is an error about that one: a task that cannot be waited for has
         an end nobody saw, what cannot be attached to was not found, and the host goes on.
Rule 14: so is a bug about one task. It is noted, and the task and its command stay as they are:
         they can be stopped, and the next start takes them up again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from holon.decide.tasks.commands import (
    LEFTOVERS_ENDED,
    EndRequest,
    end_of_task,
    is_terminal,
    run_id_of,
)
from holon.decide.text.bounded import transcript_of
from holon.model.agents import AgentStatus
from holon.model.commits import AdvanceTask
from holon.model.errors import RefusalCode, RefusedError
from holon.model.limits import ESTIMATED_TOKEN_BYTES, STORE_RETRY_MS_MIN, TASK_OUTPUT_TOKENS
from holon.model.record import Record
from holon.model.tasks import CommandExit, OutputSpan, TaskRecord, TaskStatus
from holon.model.values import AgentId, TaskId, TurnId
from holon.ports.clock import Clock
from holon.ports.journal import About, Journal, LogLevel, Redactor
from holon.ports.reads import StoreReads
from holon.ports.tasks import RunningCommand, Shell, StopRequest
from holon.runtime.background import BugBoundary, bug_noted
from holon.runtime.commits import patiently
from holon.runtime.tasks.records import TaskDesk
from holon.tools.tasks.foreground import looked_at


class OfferedBy(Record, frozen=True, kw_only=True):
    """The call whose result is about to record the task."""

    turn_id: TurnId
    effect_id: str


class CommandTask:
    """A command task that has a live owner."""

    def __init__(
        self, task: TaskRecord, command: RunningCommand, *, offered_by: OfferedBy | None = None
    ) -> None:
        self.task: Final = task
        self.command: Final = command
        self.offered_by = offered_by  # nobody, once the row exists
        self.ended: Final = anyio.Event()
        self.asked = EndRequest.NOT_REQUESTED
        if task.status is TaskStatus.CANCELLING:
            self.asked = EndRequest.TASK_STOP
        self._news = anyio.Event()

    @property
    def as_it_stands(self) -> TaskRecord:
        """The record, with the status it has while it runs here."""
        if self.asked is EndRequest.NOT_REQUESTED:
            return self.task
        return msgspec.structs.replace(self.task, status=TaskStatus.CANCELLING)

    def tell_news(self) -> None:
        """Rows of the task's agent have changed."""
        self._news.set()

    def about_to_look(self) -> anyio.Event:
        """Return what will be set by news that comes from now on."""
        self._news = anyio.Event()
        return self._news

    def ask_end(self, by: EndRequest) -> None:
        """Note who wants the end."""
        if self.asked is not EndRequest.AGENT_STOP:
            self.asked = by


async def became_durable(held: CommandTask, reads: StoreReads) -> bool:
    """Wait for the task's row; False when the call that wanted it was answered without it."""
    while held.offered_by is not None:
        news = held.about_to_look()
        answered = await _is_answered(held.offered_by, reads)
        if await reads.task(held.task.id) is not None:
            held.offered_by = None
        elif answered:
            return False
        else:
            await news.wait()
    return True


async def _is_answered(call: OfferedBy, reads: StoreReads) -> bool:
    log = await reads.turn_log(call.turn_id)
    return log is None or any(
        recorded.call.effect_id == call.effect_id and recorded.receipt is not None
        for recorded in log.calls
    )


class _Boundary:
    """Notes an error, and lets the code behind the block go on."""

    def __init__(self, journal: Journal, what: str, about: Mapping[str, About]) -> None:
        self._journal = journal
        self._what = what
        self._about = about

    def __enter__(self) -> None:
        """Go in."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: object
    ) -> bool:
        """Hold back what the machine objects to, and nothing else."""
        if not isinstance(error, OSError):
            return False
        self._journal.note(
            "command_out_of_reach", self._what, level=LogLevel.ERROR, error=error, **self._about
        )
        return True


def spared(journal: Journal, what: str, **about: About) -> _Boundary:
    """Leave a block at the first error about a command; `what` says what was not done."""
    return _Boundary(journal, what, about)


async def stop_spared(journal: Journal, held: CommandTask, force: bool) -> None:
    """Stop a task's command, as far as that can be done."""
    with spared(journal, "a command could not be stopped", **_about(held)):
        await held.command.stop(force=force)


async def ended_spared(journal: Journal, held: CommandTask) -> CommandExit:
    """Return how a task's command ended."""
    with spared(journal, "a command could not be waited for; it is ended", **_about(held)):
        return await held.command.wait()
    await stop_spared(journal, held, force=True)
    return CommandExit(exit_status=None)


async def leftovers_ended(journal: Journal, held: CommandTask) -> bool:
    """End what the ended command of a task left running; say whether there was anything."""
    with spared(journal, "what a command left running could not be ended", **_about(held)):
        if held.command.left_running:
            await held.command.stop()
            return True
    return False


def _about(held: CommandTask) -> Mapping[str, About]:
    return {"agent_id": held.task.agent_id, "task_id": held.task.id}


class TaskReporter:
    """Reports for one host's command tasks."""

    def __init__(
        self,
        desk: TaskDesk,
        *,
        clock: Clock,
        redactor: Redactor,
        journal: Journal,
    ) -> None:
        self._clock = clock
        self._redactor = redactor
        self._journal = journal
        self._desk = desk

    async def end(self, held: CommandTask, ended: CommandExit) -> None:
        """Record how a task ended, with its result message; what it left running ends with it."""
        had_leftovers = await leftovers_ended(self._journal, held)
        redactor = self._redactor
        budget = TASK_OUTPUT_TOKENS * ESTIMATED_TOKEN_BYTES
        spans: Sequence[OutputSpan] = ()
        with spared(
            self._journal,
            "the output of a task cannot be looked at; it is reported without",
            agent_id=held.task.agent_id,
            task_id=held.task.id,
        ):
            spans = looked_at(held.command, redactor, bytes_max=budget)
        named = msgspec.structs.replace(held.task, summary=redactor.redact(held.task.summary or ""))
        output = transcript_of(spans, bytes_max=budget).text
        if had_leftovers:
            output = f"{output.rstrip()}\n[{LEFTOVERS_ENDED}]".lstrip()
        await self._report(end_of_task(named, ended, asked=held.asked, output=output))

    async def running(self, task: TaskRecord) -> None:
        """Record that the command of a queued task runs."""
        await self._report(
            AdvanceTask(agent_id=task.agent_id, task_id=task.id, status=TaskStatus.RUNNING)
        )

    async def cancelling(self, task: TaskRecord) -> None:
        """Record that a task was asked to end."""
        await self._report(
            AdvanceTask(agent_id=task.agent_id, task_id=task.id, status=TaskStatus.CANCELLING)
        )

    async def cancel_unowned(self, task_id: TaskId) -> StopRequest:
        """End a task on the spot that nobody runs anything for."""
        task = await self._desk.find(task_id)
        if task is None or is_terminal(task.status):
            return StopRequest(stop_requested=False)
        await self._report(
            AdvanceTask(
                agent_id=task.agent_id,
                task_id=task.id,
                status=TaskStatus.CANCELLED,
                result_summary=f"{task.summary or task.kind.value}: nothing ran for it any more",
            )
        )
        return StopRequest(stop_requested=True)

    async def _report(self, advance: AdvanceTask) -> None:
        """Have the desk record it, however full the disk and however busy the rows are."""
        clock = self._clock
        while True:
            try:
                await patiently(lambda: self._desk.report(advance), clock=clock)
            except RefusedError as refused:
                if refused.refusal.code is not RefusalCode.BUSY:
                    self._journal.note(
                        "task_report_refused",
                        refused.refusal.message,
                        level=LogLevel.WARNING,
                        agent_id=advance.agent_id,
                        task_id=advance.task_id,
                    )
                    return
                await clock.sleep_for(STORE_RETRY_MS_MIN)
            else:
                return


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
                begun.ask_end(EndRequest.TASK_STOP)
                self._end(begun)
            return request
        force = held.asked is not EndRequest.NOT_REQUESTED
        if not force:
            await self._reporter.cancelling(held.task)
            held.ask_end(EndRequest.TASK_STOP)
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
            if held.asked is not EndRequest.NOT_REQUESTED:  # requested of an earlier process
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
                    held.ask_end(EndRequest.AGENT_STOP)
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
