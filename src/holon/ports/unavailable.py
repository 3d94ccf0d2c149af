"""Stand-ins for ports a host does not have.

Owns:  the stand-ins for commands, files, directories, time and tasks. Each refuses with the error
       of its port, so that no caller needs a second path.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NoReturn

from holon.model.errors import HolonError
from holon.model.tasks import CommandSpec, EndedRun, TaskRecord
from holon.model.values import AgentId, TaskId, TurnId
from holon.model.workspaces import PathProblem, ResolvedDirectory
from holon.ports.tasks import CommandSpawnError, RunningCommand, StopRequest
from holon.ports.workspaces import FileRefusedError, RootedFiles


class UnavailableError(HolonError):
    """The host was not given this port."""

    code = "unsupported_runtime_capability"


class NoShell:
    """Runs no commands."""

    def output_paths(self, spec: CommandSpec) -> Sequence[str]:
        """Refuse."""
        raise CommandSpawnError("this host runs no commands")

    async def start(self, spec: CommandSpec) -> RunningCommand:
        """Refuse."""
        raise CommandSpawnError("this host runs no commands")

    async def attach(self, run_id: str) -> RunningCommand | None:
        """Nothing was ever started."""
        return None

    async def unended_runs(self) -> Sequence[str]:
        """Nothing ever runs."""
        return ()

    async def ended_runs(self) -> Sequence[EndedRun]:
        """Nothing was ever left behind."""
        return ()

    async def forget(self, run_id: str) -> None:
        """Nothing was ever left behind."""


class NoFiles:
    """Gives out no roots."""

    def under(self, root: str) -> RootedFiles:
        """Refuse."""
        raise FileRefusedError("this host touches no files")


class NoDirectories:
    """Knows no directory."""

    async def ensure(self, path: str) -> None:
        """Leave the disk alone."""

    async def resolved(self, path: str) -> str | None:
        """No path leads anywhere."""
        return None


class NoWorkspaces:
    """Knows no directory."""

    async def find(self, path: str) -> ResolvedDirectory | PathProblem:
        """No path leads anywhere."""
        return PathProblem.MISSING


class NoClock:
    """A clock that refuses to tell the time."""

    def now(self) -> datetime:
        """Refuse."""
        self._refuse()

    def monotonic_ns(self) -> int:
        """Refuse."""
        self._refuse()

    async def sleep_until(self, deadline: datetime) -> None:
        """Refuse."""
        self._refuse()

    async def sleep_for(self, ms: int) -> None:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnavailableError("this host was given no clock for its tools")


class NoTasks:
    """Runs nothing in the background."""

    def offer(
        self, task: TaskRecord, command: RunningCommand, *, turn_id: TurnId, effect_id: str
    ) -> None:
        """Refuse."""
        raise UnavailableError("this host runs no background tasks")

    def running(self, agent_id: AgentId) -> Sequence[TaskRecord]:
        """Nothing runs."""
        return ()

    def running_count(self) -> int:
        """Nothing runs."""
        return 0

    def command(self, task_id: TaskId) -> RunningCommand | None:
        """Nothing runs."""
        return None

    async def wait_ended(self, task_id: TaskId) -> None:
        """Return at once: no task runs."""

    async def stop(self, task_id: TaskId) -> StopRequest:
        """Stop nothing: no task runs."""
        return StopRequest(stop_requested=False)
