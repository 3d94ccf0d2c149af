"""Task supervisor: runs background commands from their first commit to their last.

Owns:  each live command task (its process, who asked for its end, when its end is durable); the
       report that turns a command's exit into its task's end; the error boundary around one
       command.
Rule 1: a request to end is never withdrawn; an agent's stop outranks a task's.
Rule 2: a command can tamper with its own files, and a machine can run out of handles: an OS error
        while examining a command is logged and skips that one operation; other agents are not
        affected.
Rule 3: a command that cannot be waited for has an unknown exit; what may be left of it is ended. A
        command that cannot be attached to counts as not found.
Rule 4: only OS errors are suppressed. Store errors propagate, and bugs are not hidden here.
Rule 5: a report is repeated until it is recorded or cannot matter any more; the commit makes a
        repeat harmless.
Rule 6: a task whose output cannot be read ends all the same, without it.
Rule 7: a task's end is final: processes its command left running have no owner any more, and are
        ended before the result is recorded.
Rule 8: secrets are redacted from a result before it is stored: it goes to the model.
Rule 9: a command becomes a task only once its row is durable. When its call is answered without
        recording the task, the command is ended: no process without a row.
Rule 10: a task's end and its one result message are recorded in one commit by the task service.
Rule 11: the end of this process does not end a task: the next process attaches to the same command.
         Only a command that cannot be found any more is interrupted.
Rule 12: a stopped agent's commands are ended first and recorded as interrupted afterwards, so that
         a crash in between leaves no process behind.
Rule 13: a bug about one task is logged, and the task and its command stay as they are: they can be
         stopped, and the next start attaches to them again.
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
from holon.runtime.tasks.records import TaskService
from holon.tools.tasks.foreground import looked_at


class RecordingCall(Record, frozen=True, kw_only=True):
    """The call whose result is about to record the task."""

    turn_id: TurnId
    effect_id: str


class CommandTask:
    """A command task that this process supervises."""

    def __init__(
        self, task: TaskRecord, command: RunningCommand, *, recorded_by: RecordingCall | None = None
    ) -> None:
        self.task: Final = task
        self.command: Final = command
        self.recorded_by = recorded_by  # None once the row exists
        self.ended: Final = anyio.Event()
        self.asked = EndRequest.NOT_REQUESTED
        if task.status is TaskStatus.CANCELLING:
            self.asked = EndRequest.TASK_STOP
        self._changed = anyio.Event()

    @property
    def as_it_stands(self) -> TaskRecord:
        """The record, with CANCELLING as its status once an end was requested."""
        if self.asked is EndRequest.NOT_REQUESTED:
            return self.task
        return msgspec.structs.replace(self.task, status=TaskStatus.CANCELLING)

    def rows_changed(self) -> None:
        """Wake the waiting callers: rows of the task's agent changed."""
        self._changed.set()

    def watch_rows(self) -> anyio.Event:
        """Return an event that is set by the next change of the agent's rows."""
        self._changed = anyio.Event()
        return self._changed

    def ask_end(self, by: EndRequest) -> None:
        """Record who requested the end."""
        if self.asked is not EndRequest.AGENT_STOP:
            self.asked = by


async def became_durable(held: CommandTask, reads: StoreReads) -> bool:
    """Wait for the task's row; False when its call was answered without recording it."""
    while held.recorded_by is not None:
        changed = held.watch_rows()
        answered = await _is_answered(held.recorded_by, reads)
        if await reads.tasks.task(held.task.id) is not None:
            held.recorded_by = None
        elif answered:
            return False
        else:
            await changed.wait()
    return True


async def _is_answered(call: RecordingCall, reads: StoreReads) -> bool:
    log = await reads.turns.turn_log(call.turn_id)
    return log is None or any(
        recorded.call.effect_id == call.effect_id and recorded.receipt is not None
        for recorded in log.calls
    )


class _OsErrorBoundary:
    """A context manager that logs an OS error and continues after the block."""

    def __init__(self, journal: Journal, what: str, about: Mapping[str, About]) -> None:
        self._journal = journal
        self._what = what
        self._about = about

    def __enter__(self) -> None:
        """Enter the guarded block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: object
    ) -> bool:
        """Suppress an OSError, and nothing else."""
        if not isinstance(error, OSError):
            return False
        self._journal.note(
            "command_out_of_reach", self._what, level=LogLevel.ERROR, error=error, **self._about
        )
        return True


def os_errors_noted(journal: Journal, what: str, **about: About) -> _OsErrorBoundary:
    """Log and suppress an OSError inside a block; `what` says what was left undone."""
    return _OsErrorBoundary(journal, what, about)


async def stop_command(journal: Journal, held: CommandTask, force: bool) -> None:
    """Stop a task's command; an OS error is logged."""
    with os_errors_noted(journal, "a command could not be stopped", **_about(held)):
        await held.command.stop(force=force)


async def wait_for_exit(journal: Journal, held: CommandTask) -> CommandExit:
    """Wait for a task's command; force its end when it cannot be waited for."""
    with os_errors_noted(journal, "a command could not be waited for; it is ended", **_about(held)):
        return await held.command.wait()
    await stop_command(journal, held, force=True)
    return CommandExit(exit_status=None)


async def end_leftovers(journal: Journal, held: CommandTask) -> bool:
    """End the processes an ended command left running; returns whether there were any."""
    with os_errors_noted(journal, "what a command left running could not be ended", **_about(held)):
        if held.command.left_running:
            await held.command.stop()
            return True
    return False


def _about(held: CommandTask) -> Mapping[str, About]:
    return {"agent_id": held.task.agent_id, "task_id": held.task.id}


class TaskReporter:
    """Records the progress and end of one host's command tasks."""

    def __init__(
        self,
        task_service: TaskService,
        *,
        clock: Clock,
        redactor: Redactor,
        journal: Journal,
    ) -> None:
        self._clock = clock
        self._redactor = redactor
        self._journal = journal
        self._task_service = task_service

    async def end(self, held: CommandTask, ended: CommandExit) -> None:
        """Record a task's end with its result message; leftover processes are ended first."""
        had_leftovers = await end_leftovers(self._journal, held)
        redactor = self._redactor
        budget = TASK_OUTPUT_TOKENS * ESTIMATED_TOKEN_BYTES
        spans: Sequence[OutputSpan] = ()
        with os_errors_noted(
            self._journal,
            "the output of a task cannot be read; its result is recorded without it",
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
        """Record that a task's end was requested."""
        await self._report(
            AdvanceTask(agent_id=task.agent_id, task_id=task.id, status=TaskStatus.CANCELLING)
        )

    async def has_ended(self, task_id: TaskId) -> bool:
        """Whether the end of a task is recorded; its command may be held for a moment longer."""
        task = await self._task_service.find(task_id)
        return task is not None and is_terminal(task.status)

    async def cancel_unowned(self, task_id: TaskId) -> StopRequest:
        """Cancel a task that no running command belongs to."""
        task = await self._task_service.find(task_id)
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
        """Record an advance, retrying on a full disk and under contention."""
        clock = self._clock
        while True:
            try:
                await patiently(lambda: self._task_service.report(advance), clock=clock)
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
    """Supervises the background commands of one host."""

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
        """Take over a command whose row is about to be committed."""
        self._hold(
            CommandTask(
                task, command, recorded_by=RecordingCall(turn_id=turn_id, effect_id=effect_id)
            )
        )

    def take(self, task: TaskRecord, command: RunningCommand) -> None:
        """Take over a command whose row is durable; end it if its agent was stopped since."""
        self._hold(CommandTask(task, command))
        self.agent_cut_off(task.agent_id)

    def running(self, agent_id: AgentId) -> Sequence[TaskRecord]:
        """The agent's running command tasks, oldest first."""
        return [held.as_it_stands for held in self._held.values() if held.task.agent_id == agent_id]

    def running_count(self) -> int:
        """The number of running command tasks of all agents."""
        return len(self._held)

    def command(self, task_id: TaskId) -> RunningCommand | None:
        """Return the command of a running task, or None."""
        held = self._held.get(task_id)
        return held.command if held is not None else None

    async def wait_ended(self, task_id: TaskId) -> None:
        """Return once the task's end is durable; at once for a task that does not run here."""
        held = self._held.get(task_id)
        if held is not None:
            await held.ended.wait()

    async def stop(self, task_id: TaskId) -> StopRequest:
        """End a task: gracefully on the first request, by force on the second."""
        held = self._held.get(task_id)
        if held is None:
            request = await self._reporter.cancel_unowned(task_id)
            if (begun := self._held.get(task_id)) is not None:  # its start completed concurrently
                begun.ask_end(EndRequest.TASK_STOP)
                self._end(begun)
            return request
        if await self._reporter.has_ended(task_id):
            return StopRequest(stop_requested=False)
        force = held.asked is not EndRequest.NOT_REQUESTED
        if not force:
            await self._reporter.cancelling(held.task)
            held.ask_end(EndRequest.TASK_STOP)
        self._end(held, force=force)
        return StopRequest(stop_requested=True, force_stop_requested=force)

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Wake tasks waiting for their row: rows of these agents changed."""
        for held in self._held.values():
            if held.recorded_by is not None and held.task.agent_id in touched:
                held.rows_changed()

    def agent_cut_off(self, agent_id: AgentId) -> None:
        """React to an interrupted lane: if its agent was stopped, end its commands too."""
        if self._watching is not None and self.running(agent_id):
            self._watching.start_soon(self._end_if_stopped, agent_id)

    async def reattach(self, tasks: Sequence[TaskRecord]) -> Collection[TaskId]:
        """Attach to commands of an earlier process; return the tasks that need no interruption."""
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
        """Supervise every command until the host ends; the commands themselves keep running."""
        async with anyio.create_task_group() as watching:
            self._watching = watching
            for held in tuple(self._held.values()):
                self._hold(held)
            for agent_id in {held.task.agent_id: None for held in self._held.values()}:
                watching.start_soon(self._end_if_stopped, agent_id)
            await anyio.Event().wait()

    def _hold(self, held: CommandTask) -> None:
        """Register a command; its supervision starts now, or when `run` does."""
        self._held[held.task.id] = held
        if self._watching is not None:
            self._watching.start_soon(self._supervise, held)
            if held.asked is not EndRequest.NOT_REQUESTED:  # requested from an earlier process
                self._end(held)

    def _end(self, held: CommandTask, *, force: bool = False) -> None:
        if self._watching is not None:
            self._watching.start_soon(_stop, self._journal, held, force)

    async def _supervise(self, held: CommandTask) -> None:
        journal = self._journal
        with _guarded(journal, held.task):
            if await became_durable(held, self._reads):
                await self._reporter.end(held, await wait_for_exit(journal, held))
            else:
                journal.note(
                    "command_unowned",
                    "the call that started a command was answered without it; it is ended",
                    agent_id=held.task.agent_id,
                    task_id=held.task.id,
                )
                await stop_command(journal, held, force=False)
                with os_errors_noted(
                    journal, "the files of a command are kept for now", task_id=held.task.id
                ):
                    await self._shell.forget(held.command.run_id)
            del self._held[held.task.id]
            held.ended.set()

    async def _attached(self, task: TaskRecord) -> tuple[CommandTask | None, CommandExit | None]:
        """Find a task's command, if it still exists, and its exit, if it has ended."""
        run_id, command, ended = run_id_of(task), None, None
        with os_errors_noted(self._journal, "a command cannot be attached to", task_id=task.id):
            command = await self._shell.attach(run_id) if run_id is not None else None
            ended = command.exit if command is not None else None
        if task.status is TaskStatus.QUEUED:  # the start was not recorded
            task = msgspec.structs.replace(task, status=TaskStatus.RUNNING)
        return None if command is None else CommandTask(task, command), ended

    async def _end_if_stopped(self, agent_id: AgentId) -> None:
        with bug_noted(
            self._journal,
            "task_crashed",
            f"whether the commands of {agent_id} must end could not be determined (a bug)",
            agent_id=agent_id,
        ):
            agent = await self._reads.agents.agent(agent_id)
            if agent is None or agent.posture.status is not AgentStatus.STOPPED:
                return
            for held in self._held.values():
                if held.task.agent_id == agent_id:
                    held.ask_end(EndRequest.AGENT_STOP)
                    self._end(held)


async def _stop(journal: Journal, held: CommandTask, force: bool) -> None:
    with _guarded(journal, held.task):
        await stop_command(journal, held, force)


def _guarded(journal: Journal, task: TaskRecord) -> BugBoundary:
    return bug_noted(
        journal,
        "task_crashed",
        f"task {task.id} stays as it is, at the longest until the next start (a bug)",
        agent_id=task.agent_id,
        task_id=task.id,
    )
