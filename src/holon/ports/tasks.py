"""Commands and background tasks.

Contract of Shell and RunningCommand (kept by tests/contract/test_shell.py):
- `start` returns once the process exists, in a session and process group of its own, its output
  going to files from the first byte; or raises CommandSpawnError, having left nothing behind;
- the process outlives the runtime: a runtime that is killed and started again finds it by
  `attach`;
- `wait` returns once the process itself has ended and its output was drained for a bounded time: a
  grandchild that keeps a pipe open cannot hold it. Cancelling `wait` leaves the command running;
- `stop` ends the whole group: first politely, then, with `force` or after a grace, by force. It
  also ends leftover processes of a command that has ended itself (`left_running`);
- the environment of a command is an allow-list plus what the spec adds: no key, no token.

Contract of TaskControl (kept by runtime/tasks/supervisor):
- `offer` hands over a running command together with the record a commit is about to create. Once
  that record is durable the command is supervised to its end; when it never becomes durable, the
  command is ended;
- `running` is exact: every task it lists has a live owner in this process;
- `stop` asks politely the first time and forces the second time; the record says `cancelling`
  before any caller learns of the stop.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.errors import HolonError
from holon.model.record import Record
from holon.model.tasks import CommandExit, CommandSpec, EndedRun, OutputSpan, TaskRecord
from holon.model.values import AgentId, TaskId, TurnId


class CommandSpawnError(HolonError):
    """The command could not be started."""

    code = "command_spawn_failed"


class CommandNoSpaceError(CommandSpawnError):
    """The disk has no room for the files of a command; the same may be tried again."""

    code = "storage_full"
    hint = "free disk space under HOLON_HOME, then try again"


class RunningCommand(Protocol):
    """A command that was started, by this process or an earlier one."""

    @property
    def run_id(self) -> str:
        """The id it was started under."""
        ...

    @property
    def exit(self) -> CommandExit | None:
        """How it ended, once that is known."""
        ...

    @property
    def left_running(self) -> bool:
        """Whether it has ended and something it started has not."""
        ...

    async def wait(self) -> CommandExit:
        """Return once it has ended and its output is on disk."""
        ...

    async def feed(self, data: bytes) -> int:
        """Write to its input; 0 when it takes none any more."""
        ...

    async def stop(self, *, force: bool = False) -> None:
        """End it, and everything it started in its group."""
        ...

    def output(self, *, head_bytes: int, tail_bytes: int) -> Sequence[OutputSpan]:
        """Return its output so far: two streams, or one combined for a terminal."""
        ...

    @property
    def combined_path(self) -> str | None:
        """The file that holds all it has written, in the order it came; None where none does.

        If only one of two streams has output, that is the file of this stream.
        """
        ...


class Shell(Protocol):
    """Where commands run."""

    def output_paths(self, spec: CommandSpec) -> Sequence[str]:
        """Where a command will write; CommandSpawnError when it can never be started as asked."""
        ...

    async def start(self, spec: CommandSpec) -> RunningCommand:
        """Start a command, or raise CommandSpawnError."""
        ...

    async def attach(self, run_id: str) -> RunningCommand | None:
        """Find a command an earlier process started; None when nothing is known of it."""
        ...

    async def unended_runs(self) -> Sequence[str]:
        """The runs that may still have processes, started by any runtime, in no order.

        A command that has ended may have left processes behind: then its run is one of them.
        """
        ...

    async def ended_runs(self) -> Sequence[EndedRun]:
        """What ended commands still have on disk, in no order."""
        ...

    async def forget(self, run_id: str) -> None:
        """Remove what an ended command left on disk."""
        ...


class StopRequest(Record, frozen=True, kw_only=True):
    """What a stop set in motion."""

    stop_requested: bool
    force_stop_requested: bool = False


class TaskControl(Protocol):
    """The background commands of one host."""

    def offer(
        self, task: TaskRecord, command: RunningCommand, *, turn_id: TurnId, effect_id: str
    ) -> None:
        """Hand over a command; `effect_id` names the call whose result creates the record."""
        ...

    def running(self, agent_id: AgentId) -> Sequence[TaskRecord]:
        """The agent's command tasks that run right now, oldest first."""
        ...

    def running_count(self) -> int:
        """How many command tasks of all agents run right now."""
        ...

    def command(self, task_id: TaskId) -> RunningCommand | None:
        """The command of a running task."""
        ...

    async def wait_ended(self, task_id: TaskId) -> None:
        """Return once the task's end is durable; at once for a task that does not run here."""
        ...

    async def stop(self, task_id: TaskId) -> StopRequest:
        """End a task: politely the first time, for certain the second time."""
        ...
