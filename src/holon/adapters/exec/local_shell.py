"""Commands on the local machine.

Owns:  folders that are forgotten but still there. They have a name no run can have, so that a run
       is gone for everybody as soon as it is forgotten; starting it, asking it for a supervisor,
       starting it again when it has died, ending it; what is asked of a supervisor, refusing what
       cannot be started, and finding runs again.
Rule 1: the disk may take longer to remove a folder than a command took to run, so that is done on a
        thread of its own, started with the first folder. It does so now and then, for all that have
        gathered: removing one while the next is made keeps the next one waiting.
Rule 2: a command may have put folders into its own, however deep: they go as well.
Rule 3: what a runtime that was killed left behind is removed by the next one that forgets a run.
Rule 4: it is started by the first command, or before by `prepare`; while it starts, requests wait
        in its socket.
Rule 5: it sees the environment commands see, and nothing else of ours.
Rule 6: nobody waits for it. One that leaves a request without an answer is replaced by the next
        request, and it is killed rather than asked to go: it holds nothing, and what it has made
        lives on, or sees our end of its socket close.
Rule 7: a run id names one command for good: a second start under it is refused.
Rule 8: a command is started at most once, whoever is killed when (see RunFolder.claim).
Rule 9: a run of another home, of which this one is a copy, is as good as none: the processes it
        names belong to the original, and are neither waited for nor ended. Its files are ours.
Rule 10: the facts about processes come from /proc and process handles, which makes this a shell for
         Linux.

A command must outlive the runtime, be found again, and keep to its limits meanwhile, so each has a
supervisor: a small process that copies its output, counts its processes, and writes down how it
ended. A supervisor in shell language starts fast but can do none of that; a new interpreter for
each can, but takes several times as long to start as the command. So one small interpreter is
started once (fork_server) and each supervisor is a fork of it, which looks after one command after
the other: that costs less than a shell, and a terminal, the input and every limit live on when the
runtime is killed. The runtime itself is never forked: it has threads, and much memory.
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
    NOBODY,
    PRIVATE_FOLDER,
    ROOM_MAY_COME,
    RunFolder,
    RunRecord,
    command_environment,
    identity_said,
    passed_on,
)
from holon.adapters.system.home_identity import HomeIdentity
from holon.model.limits import ID_CHARS_MAX
from holon.model.tasks import CommandSpec, EndedRun
from holon.ports.clock import Clock
from holon.ports.tasks import CommandNoSpaceError, CommandSpawnError

FORGOTTEN: Final = ".forgotten_"
GATHER_S: Final = 1.0


class FolderRemover:
    """Removes run folders under one root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: queue.SimpleQueue[RunFolder | None] = queue.SimpleQueue()
        self._is_closing = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, folder: RunFolder) -> None:
        """Make a folder disappear at once; its files go a little later."""
        gone = f"{self._root}/{FORGOTTEN}{os.path.basename(folder.path)}"
        try:
            os.rename(folder.path, gone)
        except FileNotFoundError:
            return
        except OSError:  # a namesake that was left behind, or a disk that takes no new names
            _remove(folder)  # on a read-only disk it stays, for retention
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="holon-removal", daemon=True)
            self._thread.start()
        self._waiting.put(RunFolder(gone))

    def close(self) -> None:
        """Return once everything that was taken is removed."""
        if self._thread is not None:
            self._is_closing.set()
            self._waiting.put(None)
            self._thread.join()
            self._thread = None
            self._is_closing.clear()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            for name in os.listdir(self._root):
                if name.startswith(FORGOTTEN):
                    _remove(RunFolder(self._root / name))
        is_first = True
        while (folder := self._waiting.get()) is not None:
            if is_first:
                self._is_closing.wait(GATHER_S)
            _remove(folder)
            is_first = self._waiting.empty()


def _remove(folder: RunFolder) -> None:
    """Remove a folder as far as that can be done; the next runtime tries again."""
    try:
        folder.remove()
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder.path, ignore_errors=True)


ANSWER_BYTES_MAX: Final = 4 * 1024
ANSWER_S_MAX: Final = 30.0  # of a machine so busy that a fork takes this long, no good is expected
ROOM_AGAIN_S: Final = 0.05  # between two looks at a socket that is full of requests
SERVERS_COUNT_MAX: Final = 2  # tried for one request
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from holon.adapters.exec.fork_server import main; main()"
)
_PACKAGES: Final = str(Path(__file__).resolve().parents[3])
_LIBRARIES: Final = "LD_LIBRARY_PATH"  # an interpreter may need it to start at all


class ForkServerClient:
    """Asks the fork server of this runtime for supervisors."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = passed_on(environ)
        if _LIBRARIES in environ:
            self._environ[_LIBRARIES] = environ[_LIBRARIES]
        self._socket: socket.socket | None = None
        self.pid: int | None = None

    def prepare(self) -> None:
        """Start the server unless it runs, without waiting for it."""
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
        """Return a supervisor's answer and the pipe it holds, which is the caller's to close.

        Nothing is said when there came to be no supervisor; None when it took too long to tell.
        """
        heard, said = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        answer = None
        try:
            try:
                asked = await self._send(folder, said)
            finally:
                os.close(said)
            # Whether a process was started must be known, so this is not left half done.
            with anyio.move_on_after(ANSWER_S_MAX, shield=True):
                await anyio.wait_readable(heard)
                answer = os.read(heard, ANSWER_BYTES_MAX)
            if answer is None and self._socket is asked:
                self.close()
        except BaseException:
            os.close(heard)
            raise
        return answer, heard

    async def _send(self, folder: str, said: int) -> socket.socket | None:
        """Send a request, if that can be done; return the socket it went by."""
        servers_left = SERVERS_COUNT_MAX
        with anyio.move_on_after(ANSWER_S_MAX, shield=True):
            while servers_left:
                self.prepare()
                assert self._socket is not None
                try:
                    socket.send_fds(self._socket, [os.fsencode(folder)], [said])
                except BlockingIOError:  # hundreds wait there; the others must not wait for them
                    await anyio.sleep(ROOM_AGAIN_S)
                except (BrokenPipeError, ConnectionResetError):
                    self.close()  # it was killed; the next one is as good
                    servers_left -= 1
                else:
                    return self._socket
        return None

    def close(self) -> None:
        """Let the server go. Supervisors and their commands stay."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self.pid is not None:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
            self.pid = None


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
        self._forks = ForkServerClient(environ)
        self._removal = FolderRemover(self._root)

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

    def _is_foreign(self, facts: RunRecord, folder: RunFolder) -> bool:
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


def _runs(facts: RunRecord) -> bool:
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
        return CommandNoSpaceError(f"a command has no place: {error.strerror}")
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
