"""The process that makes supervisors, each a fork of itself.

Owns:  having a supervisor ready at all times, and what one does before it has a command.
Rule 1: it is small, has one thread, and is started once. A fork of it stands by for each next
        request, so that a command waits neither for an interpreter nor for a fork.
Rule 2: it ends with the runtime that started it: its only socket is closed then. Supervisors with a
        command are processes of their own and stay.
Rule 3: a request is the path of a run folder and a pipe. The supervisor answers on the pipe and
        holds it until the end of the command is on record. A pipe that is closed without an answer
        says that nothing was started.
Rule 4: it is started without site packages and sees the standard library only.
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
from typing import Any, Final, NoReturn

from holon.adapters.exec.process_table import ProcessIdentity, boot_id, facts_of, last_pid
from holon.adapters.exec.run_folder import FORCED, POLITE, RunFolder
from holon.adapters.exec.spawning import spawn
from holon.adapters.exec.supervisor import Supervisor

REQUEST_BYTES_MAX: Final = 8 * 1024
HANDLES_COUNT_MAX: Final = 1 << 20
STAND_IN_PAUSE_S: Final = 0.05  # before the next one, when one died while it stood by
_PR_SET_CHILD_SUBREAPER: Final = 36


def main() -> None:
    """Have a supervisor stand by until the runtime is gone."""
    os.chdir("/")
    os.closerange(3, HANDLES_COUNT_MAX)  # what the runtime had from whoever started it
    requests = socket.socket(fileno=0)
    boot, adopt_orphans = boot_id(), _orphan_adoption()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors that end are nobody's business
    gc.disable()
    gc.freeze()  # what is never touched again need not be copied by each fork
    while True:
        heard, said = os.pipe2(os.O_CLOEXEC)
        try:
            is_supervisor = os.fork() == 0
        except OSError:  # no more processes for now
            is_supervisor = False
        if is_supervisor:
            os.close(heard)
            _be_supervisor(requests, said, boot, adopt_orphans)
        os.close(said)
        is_busy = os.read(heard, 1)
        os.close(heard)
        if not is_busy:
            if _is_over(requests):
                return
            time.sleep(STAND_IN_PAUSE_S)


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


def _be_supervisor(
    requests: socket.socket, busy: int, boot: str, adopt_orphans: Callable[[], object]
) -> NoReturn:
    """Stand by, then look after one command to its end and that of this process."""
    os.setsid()
    wakeup = _listen_to_signals()
    adopt_orphans()
    facts = facts_of(os.getpid())
    _touch_memory()
    path, pipes, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 1)
    if path and pipes and facts is not None:
        os.set_inheritable(pipes[0], False)  # or what the command starts would hold it, too
        requests.close()
        os.open("/dev/null", os.O_RDWR)  # takes the place of the socket
        folder = RunFolder(os.fsdecode(path))
        sys.excepthook = partial(_leave_trace, folder)
        identity = ProcessIdentity(facts.pid, facts.start_ticks, boot)
        supervisor = _start(folder, identity, pipes[0], wakeup)
        with contextlib.suppress(OSError):  # the server may be gone; we are needed all the same
            os.write(busy, b"+")
        os.close(busy)
        if supervisor is not None:
            supervisor.run()
    os._exit(0)


def _leave_trace(
    folder: RunFolder, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say what went wrong with us where those look who find the command lost."""
    with contextlib.suppress(OSError), open(f"{folder.path}/trace", "w", encoding="utf-8") as file:
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
    _answer(pipe, {"pid": spawned.pid})
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
