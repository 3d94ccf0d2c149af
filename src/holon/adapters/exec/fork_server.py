"""The process that makes supervisors, each a fork of itself.

Owns:  having a supervisor ready at all times, and what one does while it has no command.
Rule 1: it is small, has one thread, and is started once. A fork of it stands by for each next
        request, so that a command waits neither for an interpreter nor for a fork.
Rule 2: it ends with the runtime that started it: its only socket is closed then. Supervisors with a
        command are processes of their own and stay.
Rule 3: a request is the path of a run folder and a pipe. The supervisor answers on the pipe and
        holds it until the end of the command is on record. A pipe that is closed without an answer
        says that nothing was started.
Rule 4: a supervisor whose command left nothing asks to stand by again, which saves the fork of
        another one. While it has a command it does not have the socket of requests: it would take
        in what nobody reads when all others are gone.
Rule 5: it is started without site packages and sees the standard library only.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple, NoReturn

from holon.adapters.exec.process_table import ProcessIdentity, boot_id, facts_of, last_pid
from holon.adapters.exec.run_folder import FORCED, POLITE, RunFolder
from holon.adapters.exec.supervisor import InheritedLimits, Supervisor, inherited_limits_of, spawn

REQUEST_BYTES_MAX: Final = 8 * 1024
HANDLES_COUNT_MAX: Final = 1 << 20
STAND_IN_PAUSE_S: Final = 0.05  # before the next one, when one died or could not be made
READY_COUNT_MAX: Final = 2  # one for the next command, and the one that comes back from the last
COMMANDS_COUNT_MAX: Final = 64  # of one supervisor: it collects no garbage
_PR_SET_CHILD_SUBREAPER: Final = 36
_TAKEN: Final = b"+"  # said by a supervisor that has taken a request
_DONE: Final = b"-"  # and by one that could take another


def main() -> None:
    """Have a supervisor stand by until the runtime is gone."""
    os.chdir("/")
    os.closerange(3, HANDLES_COUNT_MAX)  # what the runtime had from whoever started it
    requests = socket.socket(fileno=0)
    boot, adopt_orphans = boot_id(), _orphan_adoption()
    adopt_orphans()  # what a command leaves that killed its own supervisor stays below us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors that end are nobody's business
    gc.disable()
    gc.freeze()  # what is never touched again need not be copied by each fork
    crew = _SupervisorPool(requests)
    while not crew.is_dismissed:
        line = crew.enlarged()
        if line is not None:
            _be_supervisor(requests, line, boot, adopt_orphans)
        if crew.is_ready:
            crew.listen()


class _SupervisorPool:
    """The supervisors of this server, as far as they may come back, each at the end of a line."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._lines: dict[int, socket.socket] = {}
        self._ready: set[int] = set()
        self._poll = select.poll()
        self.is_dismissed = False

    @property
    def is_ready(self) -> bool:
        """Whether somebody stands by."""
        return bool(self._ready)

    def enlarged(self) -> socket.socket | None:
        """Have somebody stand by, if that can be; the new one returns with its end of the line."""
        if self._ready:
            return None
        ours, theirs = socket.socketpair()
        try:
            is_supervisor = os.fork() == 0
        except OSError:  # no more processes for now
            ours.close()
            theirs.close()
            self._pause()
            return None
        if is_supervisor:
            for line in (ours, *self._lines.values()):
                line.close()  # or nobody would hear of our end
            return theirs
        theirs.close()
        self._lines[ours.fileno()] = ours
        self._ready.add(ours.fileno())
        self._poll.register(ours, select.POLLIN)
        return None

    def listen(self) -> None:
        """Wait until one of them says something, or is gone."""
        for number, _ in self._poll.poll():
            said = _received(self._lines[number])
            if said == _TAKEN:
                self._ready.discard(number)
            elif said == _DONE and len(self._ready) < READY_COUNT_MAX:
                self._ready.add(number)
                with contextlib.suppress(OSError):  # it is heard of at the next look
                    socket.send_fds(self._lines[number], [_DONE], [self._requests.fileno()])
            else:
                self._let_go(number)

    def _let_go(self, number: int) -> None:
        self._poll.unregister(number)
        self._lines.pop(number).close()
        if number in self._ready:  # it went while it stood by
            self._ready.discard(number)
            self._pause()

    def _pause(self) -> None:
        self.is_dismissed = _is_over(self._requests)
        if not self.is_dismissed and not self._ready:
            time.sleep(STAND_IN_PAUSE_S)


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(1)
    except OSError:
        return b""


def _is_over(requests: socket.socket) -> bool:
    try:
        return not requests.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _orphan_adoption() -> Callable[[], object]:
    """Return what makes a process the one that orphans below it are given to."""
    try:
        import ctypes  # an interpreter may lack it; processes are then found by their marker

        libc = ctypes.CDLL(None)
        nothing = ctypes.c_ulong(0)
        return lambda: libc.prctl(
            _PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), nothing, nothing, nothing
        )
    except (ImportError, OSError):
        return lambda: None


class _Request(NamedTuple):
    """A command to look after: its folder, and the pipe to answer on."""

    folder: RunFolder
    pipe: int


def _be_supervisor(
    requests: socket.socket, line: socket.socket, boot: str, adopt_orphans: Callable[[], object]
) -> NoReturn:
    """Stand by, then look after one command to its end, and maybe after others."""
    os.setsid()
    wakeup = _listen_to_signals()
    adopt_orphans()
    facts = facts_of(os.getpid())
    _touch_memory()
    if facts is not None:
        own = ProcessIdentity(facts.pid, facts.start_ticks, boot)
        worker = _SupervisorProcess(own, line, wakeup)
        source: socket.socket | None = requests
        while source is not None and worker.serve(source):
            source = worker.back()
    os._exit(0)


class _SupervisorProcess:
    """This process, when it is a supervisor."""

    def __init__(self, own: ProcessIdentity, line: socket.socket, wakeup: int) -> None:
        self._own = own
        self._line = line
        self._wakeup = wakeup
        self._lasting: InheritedLimits | None = None  # what the commands before have left us with
        self._commands_left = COMMANDS_COUNT_MAX

    def serve(self, requests: socket.socket) -> bool:
        """Look after the next command to its end; whether another may follow."""
        request = _taken(requests)
        if request is None:
            return False
        folder = request.folder
        sys.excepthook = partial(_leave_trace, folder)
        if self._lasting is not None and inherited_limits_of(folder.read().asked) != self._lasting:
            return False  # nothing was started, so that another one will be asked
        _forget_signals(self._wakeup)  # whoever sent them did not mean this command
        supervisor = _start(folder, self._own, request.pipe, self._wakeup)
        with contextlib.suppress(OSError):  # the server may be gone; we are needed all the same
            self._line.send(_TAKEN)
        if supervisor is None:
            return False
        supervisor.run()
        self._lasting = supervisor.lasting
        self._commands_left -= 1
        return supervisor.may_leave() and self._commands_left > 0

    def back(self) -> socket.socket | None:
        """Ask to stand by again; return where requests come from, or nothing when we are to go."""
        try:
            self._line.send(_DONE)
            _, found, _, _ = socket.recv_fds(self._line, 1, 1)
        except OSError:
            return None
        return socket.socket(fileno=found[0]) if found else None  # closed before a command starts


def _taken(requests: socket.socket) -> _Request | None:
    """Wait for a request, and give up the socket it came by."""
    path, pipes, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 1)
    is_input = requests.fileno() == 0
    requests.close()
    if is_input:
        os.open("/dev/null", os.O_RDWR)  # takes its place
    if not path or not pipes:
        return None
    os.set_inheritable(pipes[0], False)  # or what the command starts would hold it, too
    return _Request(RunFolder(os.fsdecode(path)), pipes[0])


def _forget_signals(wakeup: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(wakeup, select.PIPE_BUF)


def _leave_trace(
    folder: RunFolder, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say what went wrong with us where those look who find the command lost."""
    # Made anew: the command may have put a pipe or a link there.
    with contextlib.suppress(OSError), open(f"{folder.path}/trace", "x", encoding="utf-8") as file:
        file.writelines(traceback.format_exception(kind, error, trace))


def _touch_memory() -> None:
    """Use what a command will need, so that its memory is our own before a command waits for it."""
    json.loads(json.dumps({"asked": {"argv": ["", ""], "tty": False, "wall_clock_ms": 1}}))
    last_pid()
    RunFolder("/").read()
    poll = select.poll()
    for fd in os.pipe2(os.O_CLOEXEC):
        poll.register(fd, select.POLLIN)
        os.set_blocking(fd, False)
        poll.unregister(fd)
        os.close(fd)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def _start(
    folder: RunFolder, identity: ProcessIdentity, pipe: int, wakeup: int
) -> Supervisor | None:
    facts = folder.claimed(identity)
    if facts is None:
        return None
    asked = facts.asked
    try:
        os.chdir(asked["workdir"])
    except OSError as error:
        _answer(pipe, {"failed": "workdir", "errno": error.errno})
        return None
    try:
        spawned = spawn(folder, asked)
    except (OSError, ValueError) as error:
        _answer(pipe, {"failed": "spawn", "errno": getattr(error, "errno", None)})
        return None
    _answer(pipe, {"pid": spawned.pid, "supervisor": identity._asdict()})
    os.chdir("/")
    process = facts_of(spawned.pid)
    if process is not None:
        with contextlib.suppress(OSError):  # a full disk: the command is found through us
            folder.started(ProcessIdentity(process.pid, process.start_ticks, identity.boot_id))
    return Supervisor(folder, asked, spawned, wakeup=wakeup, held=pipe)


def _listen_to_signals() -> int:
    """Have every signal we heed written to a pipe, and return where it is read."""
    heard, written = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, POLITE, FORCED):
        signal.signal(number, _take_note)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return heard


def _take_note(number: int, frame: FrameType | None) -> None:
    """Let the wakeup pipe do it."""


def _answer(pipe: int, content: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a runtime that is gone asks by way of the folder
        os.write(pipe, json.dumps(content).encode("ascii"))
