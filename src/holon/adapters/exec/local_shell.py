"""The shell port on Linux: start, find and remove commands on this machine.

A command must outlive the runtime, be found again after a restart, and stay within its limits
meanwhile, so each one has a supervisor: a small process that copies its output, counts its
processes and records how it ended. A supervisor written in shell language starts fast but can do
none of that; a new interpreter per command can, but takes several times as long to start as the
command. So one small interpreter is started once (fork_server) and each supervisor is a fork of it
that serves one command after another: cheaper than a shell, and terminal, input and limits survive
when the runtime is killed. The runtime itself is never forked: it has threads and much memory.

Owns:  starting commands and finding their runs again; the fork server's process (start, requests,
       restart after it died, end); removal of run folders.
Rule 1: a run id names one command for ever: a second start under it is refused.
Rule 2: a command starts at most once, whichever process is killed and when (see RunFolder.claim).
Rule 3: a run of another home, of which this home is a copy, is treated as absent: the processes it
        names belong to the original and are neither awaited nor ended. Its files are ours.
Rule 4: processes are identified through /proc and pidfds, so this shell runs on Linux only.
Rule 5: the fork server starts with the first command, or earlier through `prepare`; requests queue
        in its socket while it starts. It gets the environment of commands and nothing else.
Rule 6: the fork server is never awaited. One that leaves a request unanswered is replaced by the
        next request, and killed rather than terminated: it holds no state, and its supervisors
        either keep running or see our end of their socket close.
Rule 7: a removed folder is first renamed to a name no run id can have, so the run is gone for every
        reader at once. The deletion itself runs on a separate thread, in batches: it may take
        longer than the command did, and deleting one folder while the next is created delays the
        next.
Rule 8: deletion handles folders of any depth that a command created in its own, and the folders
        that a killed runtime left behind.
"""

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from holon.adapters.exec.local_command import LocalCommand
from holon.adapters.exec.process_table import is_living
from holon.adapters.exec.run_folder import (
    NO_PROCESS,
    NO_SPACE_ERRORS,
    PRIVATE_FOLDER,
    RunFolder,
    RunRecord,
    command_environment,
    identity_from,
    passed_environment,
)
from holon.adapters.system.home_identity import HomeIdentity
from holon.model.limits import ID_CHARS_MAX
from holon.model.tasks import CommandSpec, EndedRun
from holon.ports.clock import Clock
from holon.ports.tasks import CommandNoSpaceError, CommandSpawnError

REMOVED_PREFIX: Final = ".forgotten_"
BATCH_DELAY_S: Final = 1.0
REPLY_BYTES_MAX: Final = 4 * 1024
REPLY_S_MAX: Final = 30.0  # longer than a fork takes on an overloaded machine
SEND_RETRY_S: Final = 0.05  # while the socket is full of requests
SERVERS_COUNT_MAX: Final = 2  # per request
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from holon.adapters.exec.fork_server import main; main()"
)
_LIBRARIES: Final = "LD_LIBRARY_PATH"  # some interpreters need it to start
SHELL_DEFAULT: Final = "sh"
ATTEMPTS_COUNT_MAX: Final = 3
SHELLS_KEPT_COUNT_MAX: Final = 32
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:.-]*")


class FolderRemover:
    """Removes run folders under one root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: queue.SimpleQueue[RunFolder | None] = queue.SimpleQueue()
        self._is_closing = threading.Event()
        self._thread: threading.Thread | None = None

    def remove(self, folder: RunFolder) -> None:
        """Hide a folder at once; its files are deleted a little later."""
        gone = f"{self._root}/{REMOVED_PREFIX}{os.path.basename(folder.path)}"
        try:
            os.rename(folder.path, gone)
        except FileNotFoundError:
            return
        except OSError:  # an old folder with the same name, or a disk that refuses the rename
            _remove(folder)  # on a read-only disk it stays until retention
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="holon-removal", daemon=True)
            self._thread.start()
        self._waiting.put(RunFolder(gone))

    def close(self) -> None:
        """Wait until everything handed over is deleted."""
        if self._thread is not None:
            self._is_closing.set()
            self._waiting.put(None)
            self._thread.join()
            self._thread = None
            self._is_closing.clear()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            for name in os.listdir(self._root):
                if name.startswith(REMOVED_PREFIX):
                    _remove(RunFolder(self._root / name))
        is_first = True
        while (folder := self._waiting.get()) is not None:
            if is_first:
                self._is_closing.wait(BATCH_DELAY_S)
            _remove(folder)
            is_first = self._waiting.empty()


def _remove(folder: RunFolder) -> None:
    """Delete a folder as far as possible; the next runtime tries again."""
    try:
        folder.remove()
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder.path, ignore_errors=True)


_PACKAGES: Final = str(Path(__file__).resolve().parents[3])


class ForkServerClient:
    """Starts the fork server of this runtime and requests supervisors from it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = passed_environment(environ)
        if _LIBRARIES in environ:
            self._environ[_LIBRARIES] = environ[_LIBRARIES]
        self._socket: socket.socket | None = None
        self.pid: int | None = None

    def prepare(self) -> None:
        """Start the server unless it is running, without waiting for it."""
        if self._socket is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _PACKAGES]
        with theirs:
            self.pid = os.posix_spawn(
                sys.executable,
                argv,
                self._environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
            )
        self._socket = ours

    async def ask(self, folder: str) -> tuple[bytes | None, int]:
        """Return a supervisor's reply and the pipe it holds, which the caller closes.

        The reply is empty when no supervisor took the request, and None when it timed out.
        """
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        reply = None
        try:
            try:
                sent_on = await self._send(folder, write_end)
            finally:
                os.close(write_end)
            # Shielded: the caller must learn whether a process was started.
            with anyio.move_on_after(REPLY_S_MAX, shield=True):
                await anyio.wait_readable(read_end)
                reply = os.read(read_end, REPLY_BYTES_MAX)
            if reply is None and self._socket is sent_on:
                self.close()
        except BaseException:
            os.close(read_end)
            raise
        return reply, read_end

    async def _send(self, folder: str, write_end: int) -> socket.socket | None:
        """Send a request if possible; return the socket it was sent on."""
        servers_left = SERVERS_COUNT_MAX
        with anyio.move_on_after(REPLY_S_MAX, shield=True):
            while servers_left:
                self.prepare()
                assert self._socket is not None
                try:
                    socket.send_fds(self._socket, [os.fsencode(folder)], [write_end])
                except BlockingIOError:  # the queue is full; retry without blocking the loop
                    await anyio.sleep(SEND_RETRY_S)
                except (BrokenPipeError, ConnectionResetError):
                    self.close()  # it was killed; start another one
                    servers_left -= 1
                else:
                    return self._socket
        return None

    def close(self) -> None:
        """End the server. Supervisors and their commands keep running."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self.pid is not None:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
            self.pid = None


class LocalShell:
    """Runs commands on this machine; each has a run folder under `root`."""

    def __init__(
        self, root: Path, environ: Mapping[str, str], clock: Clock, *, umask: int | None = None
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._environ = dict(environ)
        self._clock = clock
        self._umask = umask
        self._home: HomeIdentity | None = None
        self._forks = ForkServerClient(environ)
        self._remover = FolderRemover(self._root)

    def prepare(self) -> None:
        """Start the fork server ahead of the first command."""
        self._forks.prepare()

    def belong_to(self, home: HomeIdentity) -> None:
        """Start runs for this home from now on, and attach only to runs of this home."""
        self._home = home

    @property
    def server_pid(self) -> int | None:
        """The pid of the fork server, while it runs."""
        return self._forks.pid

    def close(self) -> None:
        """Give up what commands are started with. Those that run go on."""
        self._forks.close()
        self._remover.close()

    def output_paths(self, spec: CommandSpec) -> Sequence[str]:
        """Where a command will write; CommandSpawnError when it can never be started as asked."""
        folder = self._new_folder(spec)
        self._command_of(spec, folder)
        return folder.streams(is_tty=spec.tty)

    def _new_folder(self, spec: CommandSpec) -> RunFolder:
        folder = self._folder(spec.run_id)
        if folder is None:
            raise CommandSpawnError(f"{spec.run_id[:ID_CHARS_MAX]!r} cannot be the id of a run")
        return folder

    async def start(self, spec: CommandSpec) -> LocalCommand:
        """Start a command, or raise CommandSpawnError."""
        folder = self._new_folder(spec)
        asked = self._command_of(spec, folder)
        attempts_left = ATTEMPTS_COUNT_MAX
        while True:
            attempts_left -= 1
            self._create_folder(folder, asked)
            answer, pipe = await self._ask(folder)
            said = json.loads(answer) if answer else {}
            command = LocalCommand(
                spec.run_id,
                folder,
                is_tty=spec.tty,
                pipe=pipe,
                supervisor=identity_from(said.get("supervisor")),
            )
            refused = _refusal(spec, said)
            if refused is None:
                return command
            command.close()
            is_untouched = not answer and _claim_unstarted(folder)
            if not answer and not is_untouched:
                command.exit_or_lost()  # it may have started without a supervisor
                return command
            folder.remove()
            # An empty reply: the supervisor may have been killed, so another one can be tried.
            if answer != b"" or not attempts_left:
                raise refused

    def _create_folder(self, folder: RunFolder, asked: Mapping[str, Any]) -> None:
        try:
            if not os.path.isdir(self._root):
                self._root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            folder.make(asked, takes_input=asked["accepts_input"])
        except FileExistsError as error:
            raise CommandSpawnError("a command was already started under this id") from error
        except OSError as error:
            folder.remove()
            raise _folder_error(error) from error

    async def _ask(self, folder: RunFolder) -> tuple[bytes | None, int]:
        try:
            return await self._forks.ask(folder.path)
        except OSError as error:
            folder.remove()
            raise CommandSpawnError(
                f"the fork server cannot be started: {error.strerror}"
            ) from error

    async def attach(self, run_id: str) -> LocalCommand | None:
        """Find a command an earlier process started; None when it is unknown."""
        folder = self._folder(run_id)
        if folder is None or not folder.exists():
            return None
        facts = folder.read()
        if self._is_foreign(facts, folder) and not facts.left_nothing:
            return None
        if facts.supervisor is None and facts.command:
            with contextlib.suppress(
                OSError
            ):  # a record that cannot be written has no supervisor either
                folder.claim(NO_PROCESS)
            facts = folder.read()
        command = LocalCommand(run_id, folder, is_tty=bool(facts.command.get("tty")))
        if not is_living(facts.supervisor):
            command.exit_or_lost()
        return command

    async def unended_runs(self) -> Sequence[str]:
        """Return the runs that may still have processes, in no particular order."""
        return await anyio.to_thread.run_sync(self._unended_runs)

    def _unended_runs(self) -> list[str]:
        names = os.listdir(self._root) if self._root.is_dir() else []
        return [name for name in names if self._may_run(self._folder(name))]

    async def ended_runs(self) -> Sequence[EndedRun]:
        """Return the ended runs that still have files, in no particular order."""
        return await anyio.to_thread.run_sync(self._ended_runs)

    def _ended_runs(self) -> list[EndedRun]:
        ended = list[EndedRun]()
        with contextlib.suppress(FileNotFoundError):  # no command was started yet
            for name in os.listdir(self._root):
                folder = self._folder(name)
                if folder is not None and not self._is_supervised(folder):
                    with contextlib.suppress(OSError):  # it has just been removed
                        ended_s, size_bytes = folder.left_behind()
                        ended_at = _moment(ended_s, now=self._clock.now())
                        ended.append(
                            EndedRun(run_id=name, ended_at=ended_at, size_bytes=size_bytes)
                        )
        return ended

    async def forget(self, run_id: str) -> None:
        """Remove the files of an ended command, after ending the processes it left."""
        folder = self._folder(run_id)
        if folder is None or not folder.exists():
            return
        facts = folder.read()
        if self._is_foreign(facts, folder):
            self._remover.remove(folder)
            return
        if not facts.left_nothing and (facts.ended is None or is_living(facts.supervisor)):
            command = LocalCommand(run_id, folder, is_tty=bool(facts.command.get("tty")))
            await command.stop(force=True)
        self._remover.remove(folder)

    def _may_run(self, folder: RunFolder | None) -> bool:
        facts = None if folder is None else folder.read()
        if folder is None or facts is None or not facts.command or self._is_foreign(facts, folder):
            return False
        if facts.supervisor is None:
            return facts.ended is None  # a supervisor may still claim it
        return _runs(facts)

    def _is_supervised(self, folder: RunFolder) -> bool:
        facts = folder.read()
        return _runs(facts) and not self._is_foreign(facts, folder)

    def _is_foreign(self, facts: RunRecord, folder: RunFolder) -> bool:
        return facts.is_foreign(folder.path, None if self._home is None else self._home.id)

    def _folder(self, run_id: str) -> RunFolder | None:
        if len(run_id) > ID_CHARS_MAX or not _RUN_ID.fullmatch(run_id):
            return None
        return RunFolder(f"{self._root}/{run_id}")

    def _command_of(self, spec: CommandSpec, folder: RunFolder) -> dict[str, Any]:
        environment = command_environment(
            self._environ, spec.environment, folder=folder.path, is_tty=spec.tty
        )
        shell = _shell_path(spec.shell or SHELL_DEFAULT, environment["PATH"])
        # A shell would parse a command that begins with a sign as an option.
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
    """Return a file time, which a command may have set, limited to the present."""
    return datetime.fromtimestamp(min(max(0, seconds), now.timestamp()), UTC)


def _runs(facts: RunRecord) -> bool:
    """Whether the run has processes: its supervisor lives as long as any of them."""
    return not facts.left_nothing and is_living(facts.supervisor)


@lru_cache(maxsize=SHELLS_KEPT_COUNT_MAX)
def _shell_path(name: str, path: str) -> str:
    resolved = shutil.which(name, path=path)
    if resolved is None or ("/" in name and not os.path.isabs(name)):
        raise CommandSpawnError(
            f"there is no shell {name!r}", hint="name a shell that is installed, or none"
        )
    return os.path.abspath(resolved)


def _claim_unstarted(folder: RunFolder) -> bool:
    """Claim a run for no process; return whether it has not started and never will."""
    try:
        return folder.claim(NO_PROCESS)
    except OSError as error:
        if folder.read().supervisor is not None:
            return False
        folder.remove()  # no supervisor can claim it any more, so nothing runs for it
        raise _folder_error(error) from error


def _folder_error(error: OSError) -> CommandSpawnError:
    if error.errno in NO_SPACE_ERRORS:
        return CommandNoSpaceError(
            f"the run folder of a command cannot be created: {error.strerror}"
        )
    return CommandSpawnError(f"the run folder of a command cannot be created: {error.strerror}")


def _refusal(spec: CommandSpec, reply: Mapping[str, Any]) -> CommandSpawnError | None:
    """Return why no command was started, or None when one was."""
    if not reply:
        return CommandSpawnError("no supervisor is available for the command", hint="try again")
    if "pid" in reply:
        return None
    reason = (
        os.strerror(reply["errno"])
        if reply["errno"]
        else "the command contains a character that no process argument can hold"
    )
    if reply["failed"] == "workdir":
        return CommandSpawnError(
            f"the working directory {spec.workdir} cannot be used: {reason}",
            hint="give an existing directory",
        )
    return CommandSpawnError(f"the command could not be started: {reason}")
