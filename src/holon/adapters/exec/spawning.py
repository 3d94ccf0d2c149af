"""Starting the process of a command, from inside its supervisor.

Owns:  the session, the working directory, the limits the kernel keeps, and where the process reads
       and writes.
Rule 1: the process gets a session of its own; with a terminal, that terminal controls it.
Rule 2: what the process inherits is set on the supervisor before, so that the kernel's fast spawn
        does the rest and says at once when the shell cannot be run.
Rule 3: when memory runs out, a command goes first: before its supervisor and before the runtime.
Rule 4: this module is loaded by the fork server, which sees the standard library only.
"""

import fcntl
import os
import pty
import resource
import signal
import struct
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from holon.adapters.exec.output_sink import CombinedFile, OutputSink
from holon.adapters.exec.process_table import tasks_count
from holon.adapters.exec.run_folder import RunFolder

ROWS_AND_COLUMNS: Final = (24, 80)
COMMAND_OOM_SCORE: Final = 500  # added by the kernel to what a process is worth: half of all memory
_OOM_SCORE: Final = "/proc/self/oom_score_adj"
THREADS_PER_PROCESS_COUNT: Final = 4  # the kernel's limit counts threads, ours does not
# Python ignores two of these for itself, and we handle the others: a command gets none of that.
SIGNALS_RESET: Final = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
)


class Spawned(NamedTuple):
    """A process with the supervisor's ends of what it reads and writes."""

    pid: int
    sinks: Mapping[int, OutputSink]
    typed: int | None = None  # of a terminal: what arrives here is to be typed
    kept: int | None = None  # of a pipe: held open so that the input does not end between feeds


class Lasting(NamedTuple):
    """What a supervisor cannot take back once it has started a command."""

    file_bytes: int
    handles_count: int
    umask: int | None


def lasting_of(asked: Mapping[str, Any]) -> Lasting:
    """Return what a command leaves its supervisor with."""
    return Lasting(asked["file_bytes"], asked["handles_count"], asked.get("umask"))


def spawn(folder: RunFolder, asked: Mapping[str, Any]) -> Spawned:
    """Start the process, or raise OSError or ValueError."""
    _limit_processes(int(asked["processes_count"]))
    _limit_to(resource.RLIMIT_CORE, 0)  # a dump may hold what was in the input
    _limit_to(resource.RLIMIT_FSIZE, int(asked["file_bytes"]))
    _limit_to(resource.RLIMIT_NOFILE, int(asked["handles_count"]))
    return (_spawn_on_terminal if asked["tty"] else _spawn_on_pipes)(folder, asked)


def _limit_to(kind: int, most: int) -> None:
    """Lower both limits, for good, unless they are lower already."""
    soft, hard = (
        most if limit == resource.RLIM_INFINITY else min(limit, most)
        for limit in resource.getrlimit(kind)
    )
    resource.setrlimit(kind, (soft, hard))


def _limit_processes(processes_count: int) -> None:
    # Counts everything the user runs, so it can only be a backstop to the supervisor's own count.
    wanted = tasks_count() + THREADS_PER_PROCESS_COUNT * processes_count
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))


def _spawn_on_pipes(folder: RunFolder, asked: Mapping[str, Any]) -> Spawned:
    out_read, out_write = os.pipe2(os.O_CLOEXEC)
    err_read, err_write = os.pipe2(os.O_CLOEXEC)
    sinks = _sinks((out_read, err_read), folder, asked)
    source, both, kept = "/dev/null", None, None
    if asked["accepts_input"]:
        # A named pipe is opened for one side only while the other is held: hold both, for now.
        source = folder.input
        both = os.open(source, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        kept = os.open(source, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, source, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out_write, 1),
        (os.POSIX_SPAWN_DUP2, err_write, 2),
    ]
    pid = _posix_spawn(asked, actions)
    for fd in (out_write, err_write, both):
        if fd is not None:
            os.close(fd)
    return Spawned(pid, sinks, kept=kept)


def _spawn_on_terminal(folder: RunFolder, asked: Mapping[str, Any]) -> Spawned:
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", *ROWS_AND_COLUMNS, 0, 0))
    sinks = _sinks((terminal,), folder, asked)
    typed = None
    if asked["accepts_input"]:
        typed = os.open(folder.input, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    # The leader of a session without a terminal gets the one it opens first.
    name = os.ttyname(end)
    actions = [(os.POSIX_SPAWN_OPEN, fd, name, os.O_RDWR, 0) for fd in range(3)]
    pid = _posix_spawn(asked, actions)
    os.close(end)
    return Spawned(pid, sinks, typed=typed)


def _sinks(
    sources: Sequence[int], folder: RunFolder, asked: Mapping[str, Any]
) -> dict[int, OutputSink]:
    bytes_max = int(asked["output_bytes"])
    for source in sources:
        os.set_blocking(source, False)
    paths = folder.streams(is_tty=asked["tty"])
    combined = CombinedFile(folder.combined, streams_count=2) if len(paths) > 1 else None
    return {
        source: OutputSink(path, bytes_max=bytes_max, combined=combined)
        for source, path in zip(sources, paths, strict=True)
    }


def _posix_spawn(asked: Mapping[str, Any], actions: Sequence[tuple[Any, ...]]) -> int:
    argv: list[str] = asked["argv"]
    if (umask := asked.get("umask")) is not None:
        os.umask(umask)  # ours too, from here on: what we make ourselves says for whom it is
    with _first_to_go():
        return os.posix_spawn(
            argv[0],
            argv,
            asked["environment"],
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=SIGNALS_RESET,
        )


@contextmanager
def _first_to_go() -> Iterator[None]:
    """What is spawned in the block is what the kernel ends first when there is no memory left."""
    own = _oom_score()
    if own is None or own >= COMMAND_OOM_SCORE:
        yield
        return
    _set_oom_score(COMMAND_OOM_SCORE)
    try:
        yield
    finally:
        _set_oom_score(own)


def _oom_score() -> int | None:
    try:
        with open(_OOM_SCORE, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _set_oom_score(score: int) -> None:
    # A system without it, or a sandbox that forbids it, runs commands all the same.
    with suppress(OSError), open(_OOM_SCORE, "w", encoding="ascii") as file:
        file.write(str(score))
