"""A shell of scripted commands in virtual time, and directories that exist by name.

Owns:  a shell whose commands are scripts of output and time, and a directory port without a disk.
Rule 1: like real processes, commands outlive the host that started them; only their watchers die
        with it.
Rule 2: everything that happens to a command is a function of the clock, so a run replays exactly.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import anyio
import msgspec

from holon.model.limits import COMMAND_STOP_GRACE_MS
from holon.model.tasks import (
    CommandExit,
    CommandSpec,
    EndedRun,
    OutputSpan,
    OutputStream,
    StopCause,
)
from holon.model.values import later
from holon.ports.clock import Clock
from holon.ports.tasks import CommandSpawnError, RunningCommand
from holon.ports.workspaces import DirectoryRefusedError

SIGTERM: Final = 15
SIGKILL: Final = 9


class CommandScript(msgspec.Struct, frozen=True, kw_only=True):
    """What a command does: runs so long, writes this at once, ends so."""

    after_ms: int = 0
    exit_status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    ignores_terminate: bool = False
    cannot_start: str | None = None
    echoes: bool = False  # what it is fed, it writes
    leaves_running: bool = False  # something it started goes on after its end
    is_lost: bool = False  # its end is not seen


class ScriptedProcess:
    """One command that was started."""

    def __init__(self, spec: CommandSpec, script: CommandScript, clock: Clock) -> None:
        self.spec = spec
        self.fed = b""
        self.stop_count = 0
        self._script = script
        self._clock = clock
        self._ends_at: datetime = later(clock.now(), by_ms=script.after_ms)
        self._end = CommandExit(exit_status=None if script.is_lost else script.exit_status)
        self._leftovers = script.leaves_running
        self._watchers: list[anyio.Event] = []

    @property
    def run_id(self) -> str:
        """The id it was started under."""
        return self.spec.run_id

    @property
    def exit(self) -> CommandExit | None:
        """How it ended, once its moment has come."""
        return self._end if self._clock.now() >= self._ends_at else None

    @property
    def left_running(self) -> bool:
        """Whether it has ended and something it started has not."""
        return self._leftovers and self.exit is not None

    @property
    def left_behind(self) -> EndedRun:
        """What it has on disk after its end."""
        size_bytes = sum(span.total_bytes for span in self.output(head_bytes=0, tail_bytes=0))
        return EndedRun(run_id=self.run_id, ended_at=self._ends_at, size_bytes=size_bytes)

    async def wait(self) -> CommandExit:
        """Return once it has ended."""
        while (ended := self.exit) is None:
            changed = anyio.Event()
            self._watchers.append(changed)
            async with anyio.create_task_group() as race:
                race.start_soon(self._wake_at_end, race.cancel_scope)
                await changed.wait()
                race.cancel_scope.cancel()
        return ended

    async def _wake_at_end(self, race: anyio.CancelScope) -> None:
        await self._clock.sleep_until(self._ends_at)
        race.cancel()

    async def feed(self, data: bytes) -> int:
        """Take input, if it was started to take any."""
        if not self.spec.accepts_input or self.exit is not None:
            return 0
        self.fed += data
        return len(data)

    async def stop(self, *, force: bool = False) -> None:
        """End it now, or after the grace when it will not listen."""
        self.stop_count += 1
        self._leftovers = False
        if self.exit is not None:
            return
        if self._script.ignores_terminate and not force:
            self._end_by(SIGKILL, later(self._clock.now(), by_ms=COMMAND_STOP_GRACE_MS))
            await self.wait()
        else:
            self._end_by(SIGKILL if force else SIGTERM, self._clock.now())

    def _end_by(self, signal: int, moment: datetime) -> None:
        self._end = CommandExit(exit_status=None, signal=signal, stopped=StopCause.REQUESTED)
        self._ends_at = min(self._ends_at, moment)
        self._wake_watchers()

    def clock_was_set(self, by_ms: int) -> None:
        """The wall clock was set: it takes as long as before, and what ended stays so."""
        self._ends_at = later(self._ends_at, by_ms=by_ms)
        self._wake_watchers()

    def _wake_watchers(self) -> None:
        for watcher in self._watchers:
            watcher.set()
        self._watchers.clear()

    def kill_from_outside(self) -> None:
        """A signal from outside ends it."""
        self._end_by(SIGKILL, self._clock.now())
        self._end = CommandExit(exit_status=None, signal=SIGKILL)

    def forget_watchers(self) -> None:
        """The waiters are gone."""
        self._watchers.clear()

    def output(self, *, head_bytes: int, tail_bytes: int) -> Sequence[OutputSpan]:
        """Look at what it has written."""
        stdout = self._script.stdout + (self.fed if self._script.echoes else b"")
        stderr = self._script.stderr
        written = (stdout + stderr,) if self.spec.tty else (stdout, stderr)
        streams = dict(zip(_streams_of(self.spec), written, strict=True))
        return [
            OutputSpan(
                stream=stream,
                path=f"/runs/{self.run_id}/{stream.value}",
                head=data[:head_bytes],
                tail=data[max(head_bytes, len(data) - tail_bytes) :],
                total_bytes=len(data),
            )
            for stream, data in streams.items()
        ]

    @property
    def combined_path(self) -> str | None:
        """The file that holds all it has written."""
        written = [each for each in self.output(head_bytes=0, tail_bytes=0) if each.total_bytes]
        if len(written) == 1:
            return written[0].path
        return f"/runs/{self.run_id}/{OutputStream.COMBINED.value}" if written else None


def _streams_of(spec: CommandSpec) -> tuple[OutputStream, ...]:
    return (OutputStream.COMBINED,) if spec.tty else (OutputStream.STDOUT, OutputStream.STDERR)


class ScriptedShell:
    """Starts scripts instead of processes. An unknown command ends at once, without a word."""

    def __init__(self, clock: Clock, scripts: Mapping[str, CommandScript] | None = None) -> None:
        self._clock = clock
        self._scripts = dict(scripts or {})
        self._known: dict[str, ScriptedProcess] = {}
        self.started: list[ScriptedProcess] = []

    @property
    def running(self) -> list[ScriptedProcess]:
        """The commands that have not ended."""
        return [process for process in self.started if process.exit is None]

    @property
    def kept(self) -> list[str]:
        """The runs whose files are still there."""
        return list(self._known)

    def output_paths(self, spec: CommandSpec) -> Sequence[str]:
        """Where a script will write."""
        return [f"/runs/{spec.run_id}/{stream.value}" for stream in _streams_of(spec)]

    async def start(self, spec: CommandSpec) -> RunningCommand:
        """Start a script."""
        if spec.run_id in self._known:
            raise AssertionError(f"{spec.run_id} was started twice")
        script = self._scripts.get(spec.cmd, CommandScript())
        if script.cannot_start is not None:
            raise CommandSpawnError(script.cannot_start)
        process = ScriptedProcess(spec, script, self._clock)
        self._known[spec.run_id] = process
        self.started.append(process)
        return process

    async def attach(self, run_id: str) -> RunningCommand | None:
        """Find a script that was started."""
        return self._known.get(run_id)

    async def unended_runs(self) -> Sequence[str]:
        """The commands that still run and can be found."""
        return [run_id for run_id, process in self._known.items() if process.exit is None]

    async def ended_runs(self) -> Sequence[EndedRun]:
        """What the commands that have ended left behind."""
        return [process.left_behind for process in self._known.values() if process.exit is not None]

    async def forget(self, run_id: str) -> None:
        """Drop what it left behind."""
        self._known.pop(run_id, None)

    def lose(self, run_id: str) -> None:
        """The machine itself went down: the process and its traces are gone."""
        self._known.pop(run_id).kill_from_outside()

    def clock_was_set(self, by_ms: int) -> None:
        """The wall clock was set; commands still take the time they take."""
        for process in self.started:
            process.clock_was_set(by_ms)

    def begin_life(self) -> None:
        """A new host is up; those who waited for the old one's commands are gone."""
        for process in self.started:
            process.forget_watchers()


class NamedPlaces:
    """Directories that exist because they were named, and links between them."""

    def __init__(
        self, directories: Iterable[str] = (), links: Mapping[str, str] | None = None
    ) -> None:
        self.directories = set(directories)
        self.refusal: str | None = None
        self.links = dict(links or {})

    async def ensure(self, path: str) -> None:
        """Make the directory, unless something is in the way."""
        if self.refusal is not None:
            raise DirectoryRefusedError(self.refusal)
        self.directories.add(path)

    async def resolved(self, path: str) -> str | None:
        """Follow links, then `..`, and say whether a directory is there."""
        parts: list[str] = []
        for part in path.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                whole = "/" + "/".join((*parts, part))
                parts = self.links.get(whole, whole).strip("/").split("/")
        found = "/" + "/".join(parts)
        return found if found in self.directories else None
