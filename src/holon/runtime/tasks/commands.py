"""Command tasks as an operator handles them: start, feed, stop, read output.

Owns:  command tasks as control-plane mutations. The supervisor runs them, as it does for an agent.
Rule 1: an operator's command runs where the agent's own would: inside its execution root, with the
        same environment and limits; its result reaches the agent as a message.
Rule 2: the row comes first: no process without a row. A task stays queued until its command runs.
        After a crash, the next process finds the row and starts the command, or attaches to it.
Rule 3: once the row exists, a start is not cancelled: the caller may be gone, and the task goes on.
Rule 4: an idempotency key runs its command at most once: the run id is the task's own id, so a
        repeat finds what an earlier attempt started and returns it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import anyio
import msgspec

from holon.decide.agents.lifecycle import admits, refuse_stopped, refuse_unknown
from holon.decide.budgets.budget import task_quota
from holon.decide.queue.idempotency import key_conflict, keyed_id
from holon.decide.tasks.commands import not_started, run_id_of, spec_of
from holon.model.commits import AdvanceTask
from holon.model.errors import BadInputError, RefusedError, StoreFullError
from holon.model.limits import (
    COMMAND_INPUT_BYTES_MAX,
    COMMAND_YIELD_MS_DEFAULT,
    EVENT_TEXT_CHARS_MAX,
)
from holon.model.queue import TrustLevel
from holon.model.record import Record
from holon.model.tasks import (
    CommandRecovery,
    CommandSpec,
    CommandTaskSpec,
    TaskKind,
    TaskQuota,
    TaskRecord,
    TaskStatus,
)
from holon.model.text_size import one_line
from holon.model.turns.tools import ToolRefused
from holon.model.values import AgentId, IdPrefix, MessageId, TaskId, TurnId, parse_agent_id
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Redactor
from holon.ports.reads import StoreReads
from holon.ports.tasks import CommandNoSpaceError, CommandSpawnError, Shell, StopRequest
from holon.ports.workspaces import Directories, DirectoryNoSpaceError, DirectoryRefusedError
from holon.projections.tasks import OutputExcerpt
from holon.runtime.commits import patiently
from holon.runtime.tasks.records import TaskService
from holon.runtime.tasks.supervisor import TaskSupervisor
from holon.runtime.workspaces.place import AgentPlaces
from holon.tools.tasks.foreground import UncheckedCommand, checked_command
from holon.tools.tasks.task_tools import feed_task, read_output
from holon.tools.tool import ToolExecution, ToolScene


class CommandRefusedError(BadInputError):
    """A command cannot be started as requested."""

    code = "command_refused"


class CommandRequest(Record, frozen=True, kw_only=True):
    """An operator's request to run a command."""

    cmd: str
    summary: str | None = None
    workdir: str | None = None
    shell: str | None = None
    login: bool = False
    tty: bool = False
    accepts_input: bool = False
    yield_time_ms: int | None = None
    max_output_tokens: int | None = None

    @property
    def wait_ms(self) -> int:
        """The wait a foreground call would have used."""
        return COMMAND_YIELD_MS_DEFAULT if self.yield_time_ms is None else self.yield_time_ms


class InputReceipt(Record, frozen=True, kw_only=True):
    """How many bytes of input were accepted, and a summary for people."""

    bytes_written: int
    summary_text: str


class CommandService:
    """Command tasks of one host, as an operator handles them."""

    def __init__(
        self,
        task_service: TaskService,
        supervisor: TaskSupervisor,
        *,
        reads: StoreReads,
        clock: Clock,
        ids: IdSource,
        agent_places: AgentPlaces,
        shell: Shell,
        places: Directories,
        redactor: Redactor,
        failpoints: Failpoints,
        task_quota: TaskQuota,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._ids = ids
        self._agent_places = agent_places
        self._shell = shell
        self._places = places
        self._redactor = redactor
        self._failpoints = failpoints
        self._task_quota = task_quota
        self._task_service = task_service
        self._supervisor = supervisor
        self._keyed = anyio.Lock()
        self._starting: dict[TaskId, AgentId] = {}

    async def start(
        self, agent_id: AgentId, order: CommandRequest, *, key: str | None = None
    ) -> TaskRecord:
        """Run a command in the background for an agent; once per key, however often repeated."""
        if key is None:
            return await self._start(agent_id, order, self._ids.fresh(IdPrefix.TASK))
        async with self._keyed:  # of two concurrent repeats, the second finds the first one's task
            task_id = keyed_id(IdPrefix.TASK, parse_agent_id(agent_id), key)
            earlier = await self._task_service.find(TaskId(task_id))
            if earlier is None:
                return await self._start(agent_id, order, task_id)
            if not _is_of(earlier, order):
                raise RefusedError(key_conflict(task_id))
            return earlier

    async def _start(self, agent_id: AgentId, order: CommandRequest, task_id: str) -> TaskRecord:
        await self._require_admits(agent_id)
        command = await self._checked(agent_id, task_id, order)
        with self._reserved(TaskId(task_id), agent_id):
            task = self._task(agent_id, TaskId(task_id), order, command=command)
            with anyio.CancelScope(shield=True):  # a recorded task is never left half started
                await self._task_service.open(task)
                await self._begin(task, command)
        return _as_running(task)

    async def start_left(self, task: TaskRecord) -> bool:
        """Start a task that an earlier process recorded but did not start.

        Returns False when the task is not of that kind, or cannot be started any more.
        """
        spec = spec_of(task)
        if task.status is not TaskStatus.QUEUED or spec is None or run_id_of(task) != task.id:
            return False
        order = CommandRequest(
            cmd=spec.cmd,
            workdir=spec.workdir,
            shell=spec.shell,
            login=spec.login,
            tty=spec.tty,
            accepts_input=spec.accepts_input,
        )
        try:
            await self._require_admits(task.agent_id)
            await self._begin(task, await self._checked(task.agent_id, task.id, order))
        except (RefusedError, CommandRefusedError, StoreFullError):
            return False
        return True

    async def _begin(self, task: TaskRecord, command: CommandSpec) -> None:
        """Start the command of a recorded task, and hand it to the supervisor."""
        await self._failpoints.reach(Failpoint.TASK_BEFORE_START)
        try:
            with _spawn_errors():
                shell = self._shell
                running = await shell.attach(command.run_id) or await shell.start(command)
        except (CommandRefusedError, StoreFullError) as error:
            report = partial(self._task_service.report, not_started(task, error.message))
            await patiently(report, clock=self._clock)
            raise
        await self._failpoints.reach(Failpoint.TASK_AFTER_START)
        self._supervisor.take(_as_running(task), running)
        # On a full disk, or under contention, the row is updated when the task ends.
        with suppress(StoreFullError, RefusedError):
            if not await self._task_service.report(_running(task)):
                await running.stop()  # the task was cancelled before its command started

    async def feed(self, task: TaskRecord, text: str) -> InputReceipt:
        """Write to a task's input; a task that takes none is no error."""
        data = text.encode()
        if len(data) > COMMAND_INPUT_BYTES_MAX:
            raise CommandRefusedError(
                f"the input is longer than {COMMAND_INPUT_BYTES_MAX} bytes",
                hint="send it in parts, or put it into a file the command reads",
            )
        written, summary = await feed_task(task, data, self._supervisor)
        return InputReceipt(bytes_written=written, summary_text=summary)

    async def stop(self, task_id: TaskId) -> StopRequest:
        """End a task: politely the first time, for certain the second time."""
        return await self._supervisor.stop(task_id)

    async def output(self, task: TaskRecord) -> OutputExcerpt:
        """Return a bounded excerpt of a task's output."""
        return await read_output(task, self._redactor, tasks=self._supervisor, shell=self._shell)

    @contextmanager
    def _reserved(self, task_id: TaskId, agent_id: AgentId) -> Iterator[None]:
        """Reserve quota for one more command, counting those being started."""
        starting = [
            each
            for started, each in self._starting.items()
            if self._supervisor.command(started) is None
        ]
        full = task_quota(
            self._task_quota,
            of_agent=len(self._supervisor.running(agent_id)) + starting.count(agent_id),
            of_all=self._supervisor.running_count() + len(starting),
        )
        if full is not None:
            raise RefusedError(full)
        self._starting[task_id] = agent_id
        try:
            yield
        finally:
            del self._starting[task_id]

    async def _require_admits(self, agent_id: AgentId) -> None:
        agent = await self._reads.agents.agent(parse_agent_id(agent_id))
        if agent is None:
            raise RefusedError(refuse_unknown(agent_id))
        if not admits(agent.posture.status):
            raise RefusedError(refuse_stopped(agent_id))

    async def _checked(self, agent_id: AgentId, run_id: str, order: CommandRequest) -> CommandSpec:
        agent_home = self._agent_places.home_of(agent_id)
        place = await self._agent_places.current(agent_id)
        scene = ToolScene(
            agent_id=agent_id,
            turn_id=TurnId(""),
            message_id=MessageId(""),
            effect_id=run_id,
            now=self._clock.now(),
            agent_home=agent_home,
            execution_root=place.execution_root,
            cwd=place.cwd,
            workspace=place,
        )
        unchecked = UncheckedCommand(
            run_id=run_id,
            cmd=order.cmd,
            workdir=order.workdir,
            shell=order.shell,
            login=order.login,
            tty=order.tty,
            accepts_input=order.accepts_input,
        )
        try:
            await self._places.ensure(agent_home)
        except DirectoryNoSpaceError as error:
            raise StoreFullError(error.message, hint=error.hint) from None
        except DirectoryRefusedError as error:
            raise CommandRefusedError(error.message, hint=error.hint) from None
        checked = await checked_command(unchecked, scene, self._places)
        return checked if isinstance(checked, CommandSpec) else _refuse(checked)

    def _task(
        self,
        agent_id: AgentId,
        task_id: TaskId,
        order: CommandRequest,
        *,
        command: CommandSpec,
    ) -> TaskRecord:
        now = self._clock.now()
        shown = self._redactor.redact(order.summary or order.cmd)
        summary = one_line(shown, chars_max=EVENT_TEXT_CHARS_MAX)
        with _spawn_errors():
            paths = self._shell.output_paths(command)
        return TaskRecord(
            id=task_id,
            agent_id=agent_id,
            kind=TaskKind.COMMAND_TASK,
            status=TaskStatus.QUEUED,
            created_at=now,
            updated_at=now,
            summary=summary,
            detail={"run_id": command.run_id, "output_paths": list(paths)},
            recovery=CommandRecovery(
                summary=summary,
                spec=CommandTaskSpec(
                    cmd=command.cmd,
                    workdir=command.workdir,
                    shell=command.shell,
                    login=command.login,
                    tty=command.tty,
                    accepts_input=command.accepts_input,
                    yield_time_ms=order.wait_ms,
                    max_output_tokens=order.max_output_tokens,
                ),
                trust=TrustLevel.TRUSTED_OPERATOR,
            ),
        )


@contextmanager
def _spawn_errors() -> Iterator[None]:
    """Convert errors of the shell into errors of the request."""
    try:
        yield
    except CommandNoSpaceError as error:
        raise StoreFullError(error.message, hint=error.hint) from None
    except CommandSpawnError as error:
        raise CommandRefusedError(error.message, hint=error.hint) from None


def _as_running(task: TaskRecord) -> TaskRecord:
    return msgspec.structs.replace(task, status=TaskStatus.RUNNING)


def _running(task: TaskRecord) -> AdvanceTask:
    return AdvanceTask(agent_id=task.agent_id, task_id=task.id, status=TaskStatus.RUNNING)


def _is_of(task: TaskRecord, order: CommandRequest) -> bool:
    """Whether a task was started by this request, as far as its record shows."""
    spec = spec_of(task)
    return spec is not None and (spec.cmd, spec.shell, spec.login, spec.tty) == (
        order.cmd,
        order.shell,
        order.login,
        order.tty,
    )


def _refuse(refused: ToolExecution) -> CommandSpec:
    outcome = refused.outcome
    assert isinstance(outcome, ToolRefused), "a check that succeeds returns a command"
    raise CommandRefusedError(outcome.error.message, hint=outcome.error.hint)
