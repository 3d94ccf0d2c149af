"""Commands on the local machine.

A command must outlive the runtime, be found again, and keep to its limits meanwhile, so each has a
supervisor: a small process that copies its output, counts its processes, and writes down how it
ended. A supervisor in shell language starts fast but can do none of that; a new interpreter for
each can, but takes several times as long to start as the command. So one small interpreter is
started once (fork_server) and each supervisor is a fork of it, which looks after one command after
the other: that costs less than a shell, and a terminal, the input and every limit live on when the
runtime is killed. The runtime itself is never forked: it has threads, and much memory.

Owns:  what is asked of a supervisor, refusing what cannot be started, and finding runs again.
Rule 1: a run id names one command for good: a second start under it is refused.
Rule 2: a command is started at most once, whoever is killed when (see RunFolder.claim).
Rule 3: a run of another home, of which this one is a copy, is as good as none: the processes it
        names belong to the original, and are neither waited for nor ended. Its files are ours.
Rule 4: the facts about processes come from /proc and process handles, which makes this a shell for
        Linux.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from holon.adapters.exec.environment import command_environment
from holon.adapters.exec.fork_client import ForkClient
from holon.adapters.exec.local_command import LocalCommand
from holon.adapters.exec.process_table import is_living
from holon.adapters.exec.removal import Removal
from holon.adapters.exec.run_folder import (
    NOBODY,
    PRIVATE_FOLDER,
    ROOM_MAY_COME,
    RunFacts,
    RunFolder,
    identity_said,
)
from holon.adapters.system.home_identity import HomeIdentity
from holon.model.command import CommandSpec, EndedRun
from holon.model.limits import ID_CHARS_MAX
from holon.ports.clock import Clock
from holon.ports.shell import CommandNoRoomError, CommandSpawnError

SHELL_DEFAULT: Final = "sh"
ATTEMPTS_COUNT_MAX: Final = 3
SHELLS_KEPT_COUNT_MAX: Final = 32
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:.-]*")


class LocalShell:
    """Runs commands on this machine; their files are under `root`, a folder each."""

    def __init__(
        self, root: Path, environ: Mapping[str, str], clock: Clock, *, umask: int | None = None
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._environ = dict(environ)
        self._clock = clock
        self._umask = umask
        self._home: HomeIdentity | None = None
        self._forks = ForkClient(environ)
        self._removal = Removal(self._root)

    def prepare(self) -> None:
        """Get ready for the first command, so that it need not wait for that."""
        self._forks.prepare()

    def belong_to(self, home: HomeIdentity) -> None:
        """From now on runs are started for this home, and only such runs are taken up."""
        self._home = home

    @property
    def server_pid(self) -> int | None:
        """The process commands are started by, while there is one."""
        return self._forks.pid

    def close(self) -> None:
        """Give up what commands are started with. Those that run go on."""
        self._forks.close()
        self._removal.close()

    def output_paths(self, spec: CommandSpec) -> Sequence[str]:
        """Where a command will write; CommandSpawnError when it can never be started as asked."""
        folder = self._new_folder(spec)
        self._asked(spec, folder)
        return folder.streams(is_tty=spec.tty)

    def _new_folder(self, spec: CommandSpec) -> RunFolder:
        folder = self._folder(spec.run_id)
        if folder is None:
            raise CommandSpawnError(f"{spec.run_id[:ID_CHARS_MAX]!r} cannot be the id of a run")
        return folder

    async def start(self, spec: CommandSpec) -> LocalCommand:
        """Start a command, or raise CommandSpawnError."""
        folder = self._new_folder(spec)
        asked = self._asked(spec, folder)
        attempts_left = ATTEMPTS_COUNT_MAX
        while True:
            attempts_left -= 1
            self._make(folder, asked)
            answer, pipe = await self._ask(folder)
            said = json.loads(answer) if answer else {}
            command = LocalCommand(
                spec.run_id,
                folder,
                is_tty=spec.tty,
                pipe=pipe,
                supervisor=identity_said(said.get("supervisor")),
            )
            refused = _refusal(spec, said)
            if refused is None:
                return command
            command.close()
            is_untouched = not answer and _claim_for_nobody(folder)
            if not answer and not is_untouched:
                command.found_or_lost()  # it may have begun, with nobody to look after it
                return command
            folder.remove()
            # Whoever took the request may have been killed over it: then the next one will do.
            if answer != b"" or not attempts_left:
                raise refused

    def _make(self, folder: RunFolder, asked: Mapping[str, Any]) -> None:
        try:
            if not os.path.isdir(self._root):
                self._root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            folder.make(asked, takes_input=asked["accepts_input"])
        except FileExistsError as error:
            raise CommandSpawnError("a command was already started under this id") from error
        except OSError as error:
            folder.remove()
            raise _no_place(error) from error

    async def _ask(self, folder: RunFolder) -> tuple[bytes | None, int]:
        try:
            return await self._forks.ask(folder.path)
        except OSError as error:
            folder.remove()
            raise CommandSpawnError(f"no process could be made: {error.strerror}") from error

    async def attach(self, run_id: str) -> LocalCommand | None:
        """Find a command an earlier process started; None when nothing is known of it."""
        folder = self._folder(run_id)
        if folder is None or not folder.exists():
            return None
        facts = folder.read()
        if self._is_foreign(facts, folder) and not facts.left_nothing:
            return None
        if facts.supervisor is None and facts.asked:
            with contextlib.suppress(OSError):  # a record that takes no word is nobody's, too
                folder.claim(NOBODY)  # or by somebody who came just before us
            facts = folder.read()
        command = LocalCommand(run_id, folder, is_tty=bool(facts.asked.get("tty")))
        if not is_living(facts.supervisor):
            command.found_or_lost()
        return command

    async def unended_runs(self) -> Sequence[str]:
        """The runs of which something may still go on, whoever started them, in no order."""
        return await anyio.to_thread.run_sync(self._unended_runs)

    def _unended_runs(self) -> list[str]:
        names = os.listdir(self._root) if self._root.is_dir() else []
        return [name for name in names if self._may_run(self._folder(name))]

    async def ended_runs(self) -> Sequence[EndedRun]:
        """What ended commands still have on disk, in no order."""
        return await anyio.to_thread.run_sync(self._ended_runs)

    def _ended_runs(self) -> list[EndedRun]:
        found = list[EndedRun]()
        with contextlib.suppress(FileNotFoundError):  # nothing was ever started
            for name in os.listdir(self._root):
                folder = self._folder(name)
                if folder is not None and not self._is_looked_after(folder):
                    with contextlib.suppress(OSError):  # it has just been forgotten
                        ended_s, size_bytes = folder.left_behind()
                        ended_at = _moment(ended_s, now=self._clock.now())
                        found.append(
                            EndedRun(run_id=name, ended_at=ended_at, size_bytes=size_bytes)
                        )
        return found

    async def forget(self, run_id: str) -> None:
        """Remove what an ended command left on disk; what it left running is ended first."""
        folder = self._folder(run_id)
        if folder is None or not folder.exists():
            return
        facts = folder.read()
        if self._is_foreign(facts, folder):
            self._removal.take(folder)
            return
        if not facts.left_nothing and (facts.ended is None or is_living(facts.supervisor)):
            command = LocalCommand(run_id, folder, is_tty=bool(facts.asked.get("tty")))
            await command.stop(force=True)
        self._removal.take(folder)

    def _may_run(self, folder: RunFolder | None) -> bool:
        facts = None if folder is None else folder.read()
        if folder is None or facts is None or not facts.asked or self._is_foreign(facts, folder):
            return False
        if facts.supervisor is None:
            return facts.ended is None  # a supervisor may still take it up
        return _runs(facts)

    def _is_looked_after(self, folder: RunFolder) -> bool:
        facts = folder.read()
        return _runs(facts) and not self._is_foreign(facts, folder)

    def _is_foreign(self, facts: RunFacts, folder: RunFolder) -> bool:
        return facts.is_foreign(folder.path, None if self._home is None else self._home.id)

    def _folder(self, run_id: str) -> RunFolder | None:
        if len(run_id) > ID_CHARS_MAX or not _RUN_ID.fullmatch(run_id):
            return None
        return RunFolder(f"{self._root}/{run_id}")

    def _asked(self, spec: CommandSpec, folder: RunFolder) -> dict[str, Any]:
        environment = command_environment(
            self._environ, spec.environment, folder=folder.path, is_tty=spec.tty
        )
        shell = _found_shell(spec.shell or SHELL_DEFAULT, environment["PATH"])
        # A shell would take a command that begins like an option for one.
        cmd = f" {spec.cmd}" if spec.cmd.startswith(("-", "+")) else spec.cmd
        login = ["-l"] if spec.login else []
        return {
            "argv": [shell, *login, "-c", cmd],
            "workdir": spec.workdir,
            "environment": environment,
            "tty": spec.tty,
            "accepts_input": spec.accepts_input,
            "wall_clock_ms": spec.limits.wall_clock_ms,
            "output_bytes": spec.limits.output_bytes,
            "processes_count": spec.limits.processes_count,
            "file_bytes": spec.limits.file_bytes,
            "handles_count": spec.limits.handles_count,
            "umask": self._umask,
            "asked_at": self._clock.now().isoformat(),
            "home": None if self._home is None else msgspec.to_builtins(self._home),
        }


def _moment(seconds: float, *, now: datetime) -> datetime:
    """Return the time a file tells, which a command may have set: never one to come."""
    return datetime.fromtimestamp(min(max(0, seconds), now.timestamp()), UTC)


def _runs(facts: RunFacts) -> bool:
    """Whether anything of it runs: its supervisor stays as long as something is left below it."""
    return not facts.left_nothing and is_living(facts.supervisor)


@lru_cache(maxsize=SHELLS_KEPT_COUNT_MAX)
def _found_shell(wanted: str, path: str) -> str:
    found = shutil.which(wanted, path=path)
    if found is None or ("/" in wanted and not os.path.isabs(wanted)):
        raise CommandSpawnError(
            f"there is no shell {wanted!r}", hint="name a shell that is installed, or none"
        )
    return os.path.abspath(found)


def _claim_for_nobody(folder: RunFolder) -> bool:
    """Whether nothing has begun in a folder, and nothing will."""
    try:
        return folder.claim(NOBODY)
    except OSError as error:
        if folder.read().supervisor is not None:
            return False
        folder.remove()  # nobody can claim it any more, so nothing runs for it
        raise _no_place(error) from error


def _no_place(error: OSError) -> CommandSpawnError:
    if error.errno in ROOM_MAY_COME:
        return CommandNoRoomError(f"a command has no place: {error.strerror}")
    return CommandSpawnError(f"a command has no place: {error.strerror}")


def _refusal(spec: CommandSpec, said: Mapping[str, Any]) -> CommandSpawnError | None:
    """Return why no command runs, or nothing when one does."""
    if not said:
        return CommandSpawnError("nobody could look after the command", hint="try again")
    if "pid" in said:
        return None
    reason = os.strerror(said["errno"]) if said["errno"] else "it is no text a process can be given"
    if said["failed"] == "workdir":
        return CommandSpawnError(
            f"the working directory {spec.workdir} cannot be used: {reason}",
            hint="give an existing directory",
        )
    return CommandSpawnError(f"the command could not be started: {reason}")
