"""The fork server: a small interpreter that forks one supervisor per command.

Owns:  the pool of standby supervisors, and the protocol of a supervisor that has no command.
Rule 1: the fork server is small, single-threaded and started once. A fork stands by for the next
        request, so a command waits neither for an interpreter nor for a fork.
Rule 2: it exits with the runtime that started it, when its only socket closes. Supervisors that run
        a command are separate processes and keep running.
Rule 3: a request is the path of a run folder and a pipe. The supervisor replies on the pipe and
        keeps it open until the end of the command is recorded. A pipe that closes without a reply
        means that nothing was started.
Rule 4: a supervisor whose command left no processes returns to standby, which saves a fork. While
        it runs a command it does not hold the request socket; otherwise requests could be delivered
        to a process that does not read them once all other holders are gone.
Rule 5: it starts without site packages and may import the standard library only.
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
STANDBY_RETRY_S: Final = 0.05  # before the next fork, when one died or failed
READY_COUNT_MAX: Final = 2  # one for the next command, and one that returns from the last
COMMANDS_COUNT_MAX: Final = 64  # per supervisor, whose garbage collector is off
_PR_SET_CHILD_SUBREAPER: Final = 36
_ACCEPTED: Final = b"+"  # sent by a supervisor that accepted a request
_DONE: Final = b"-"  # sent by a supervisor that can accept another


def main() -> None:
    """Keep a supervisor on standby until the runtime exits."""
    os.chdir("/")
    os.closerange(3, HANDLES_COUNT_MAX)  # descriptors inherited through the runtime
    requests = socket.socket(fileno=0)
    boot, become_subreaper = boot_id(), _subreaper_call()
    become_subreaper()  # orphans of a command that killed its supervisor stay below us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors that exit
    gc.disable()
    gc.freeze()  # untouched objects stay shared between the forks (copy on write)
    pool = _SupervisorPool(requests)
    while not pool.is_closed:
        channel = pool.add_standby()
        if channel is not None:
            _run_supervisor(requests, channel, boot, become_subreaper)
        if pool.is_ready:
            pool.handle_messages()


class _SupervisorPool:
    """The supervisors that may return to standby, each connected by a socket pair (its channel)."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._channels: dict[int, socket.socket] = {}
        self._ready: set[int] = set()
        self._poll = select.poll()
        self.is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether a supervisor is on standby."""
        return bool(self._ready)

    def add_standby(self) -> socket.socket | None:
        """Fork a standby supervisor if resources allow. In the child, return its channel."""
        if self._ready:
            return None
        ours, theirs = socket.socketpair()
        try:
            is_supervisor = os.fork() == 0
        except OSError:  # no more processes for now
            ours.close()
            theirs.close()
            self._back_off()
            return None
        if is_supervisor:
            for channel in (ours, *self._channels.values()):
                channel.close()  # or the server would not see the end of this process
            return theirs
        theirs.close()
        self._channels[ours.fileno()] = ours
        self._ready.add(ours.fileno())
        self._poll.register(ours, select.POLLIN)
        return None

    def handle_messages(self) -> None:
        """Wait for messages of the supervisors, or for one of them to exit."""
        for number, _ in self._poll.poll():
            message = _received(self._channels[number])
            if message == _ACCEPTED:
                self._ready.discard(number)
            elif message == _DONE and len(self._ready) < READY_COUNT_MAX:
                self._ready.add(number)
                with contextlib.suppress(OSError):  # its exit is noticed by the next poll
                    socket.send_fds(self._channels[number], [_DONE], [self._requests.fileno()])
            else:
                self._drop(number)

    def _drop(self, number: int) -> None:
        self._poll.unregister(number)
        self._channels.pop(number).close()
        if number in self._ready:  # it died on standby
            self._ready.discard(number)
            self._back_off()

    def _back_off(self) -> None:
        self.is_closed = _is_disconnected(self._requests)
        if not self.is_closed and not self._ready:
            time.sleep(STANDBY_RETRY_S)


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(1)
    except OSError:
        return b""


def _is_disconnected(requests: socket.socket) -> bool:
    try:
        return not requests.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _subreaper_call() -> Callable[[], object]:
    """Return the call that makes this process the reaper of orphaned descendants."""
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
    """A command to supervise: its folder, and the pipe to reply on."""

    folder: RunFolder
    pipe: int


def _run_supervisor(
    requests: socket.socket,
    channel: socket.socket,
    boot: str,
    become_subreaper: Callable[[], object],
) -> NoReturn:
    """Stand by, then supervise one command to its end, and possibly others after it."""
    os.setsid()
    wakeup = _listen_to_signals()
    become_subreaper()
    facts = facts_of(os.getpid())
    _prefault_memory()
    if facts is not None:
        own = ProcessIdentity(facts.pid, facts.start_ticks, boot)
        worker = _SupervisorProcess(own, channel, wakeup)
        source: socket.socket | None = requests
        while source is not None and worker.serve(source):
            source = worker.stand_by_again()
    os._exit(0)


class _SupervisorProcess:
    """This process in the role of a supervisor."""

    def __init__(self, own: ProcessIdentity, channel: socket.socket, wakeup: int) -> None:
        self._own = own
        self._channel = channel
        self._wakeup = wakeup
        self._inherited: InheritedLimits | None = None  # limits set for earlier commands
        self._commands_left = COMMANDS_COUNT_MAX

    def serve(self, requests: socket.socket) -> bool:
        """Supervise the next command to its end; return whether another may follow."""
        request = _next_request(requests)
        if request is None:
            return False
        folder = request.folder
        sys.excepthook = partial(_write_traceback, folder)
        if (
            self._inherited is not None
            and inherited_limits_of(folder.read().command) != self._inherited
        ):
            return False  # nothing was started, so the client asks another supervisor
        _discard_signals(self._wakeup)  # they were meant for the previous command
        supervisor = _start(folder, self._own, request.pipe, self._wakeup)
        with contextlib.suppress(
            OSError
        ):  # the server may be gone; the command still needs a supervisor
            self._channel.send(_ACCEPTED)
        if supervisor is None:
            return False
        supervisor.run()
        self._inherited = supervisor.inherited_limits
        self._commands_left -= 1
        return supervisor.is_reusable() and self._commands_left > 0

    def stand_by_again(self) -> socket.socket | None:
        """Ask to stand by again; return the request socket, or None when this process must exit."""
        try:
            self._channel.send(_DONE)
            _, fds, _, _ = socket.recv_fds(self._channel, 1, 1)
        except OSError:
            return None
        return socket.socket(fileno=fds[0]) if fds else None  # closed before a command starts


def _next_request(requests: socket.socket) -> _Request | None:
    """Wait for a request, and close the socket it came by."""
    path, pipes, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 1)
    is_input = requests.fileno() == 0
    requests.close()
    if is_input:
        os.open("/dev/null", os.O_RDWR)  # keeps descriptor 0 in use
    if not path or not pipes:
        return None
    os.set_inheritable(pipes[0], False)  # or descendants of the command would hold it as well
    return _Request(RunFolder(os.fsdecode(path)), pipes[0])


def _discard_signals(wakeup: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(wakeup, select.PIPE_BUF)


def _write_traceback(
    folder: RunFolder, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Leave the traceback in the run folder, for the diagnosis of a lost command."""
    # Exclusive creation: the command may have put a FIFO or a link there.
    with contextlib.suppress(OSError), open(f"{folder.path}/trace", "x", encoding="utf-8") as file:
        file.writelines(traceback.format_exception(kind, error, trace))


def _prefault_memory() -> None:
    """Touch the memory a command will need, so that copy on write happens during standby."""
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
    command = facts.command
    try:
        os.chdir(command["workdir"])
    except OSError as error:
        _reply(pipe, {"failed": "workdir", "errno": error.errno})
        return None
    try:
        spawned = spawn(folder, command)
    except (OSError, ValueError) as error:
        _reply(pipe, {"failed": "spawn", "errno": getattr(error, "errno", None)})
        return None
    _reply(pipe, {"pid": spawned.pid, "supervisor": identity._asdict()})
    os.chdir("/")
    process = facts_of(spawned.pid)
    if process is not None:
        with contextlib.suppress(
            OSError
        ):  # a full disk: the command is found through its supervisor
            folder.started(ProcessIdentity(process.pid, process.start_ticks, identity.boot_id))
    return Supervisor(folder, command, spawned, wakeup=wakeup, reply_pipe=pipe)


def _listen_to_signals() -> int:
    """Route the handled signals into a pipe, and return its read end."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, POLITE, FORCED):
        signal.signal(number, _ignore_in_handler)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return read_end


def _ignore_in_handler(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wakeup pipe carries the signal."""


def _reply(pipe: int, content: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the next runtime reads the run folder instead
        os.write(pipe, json.dumps(content).encode("ascii"))
