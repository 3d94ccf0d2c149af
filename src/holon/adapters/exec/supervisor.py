"""The supervisor of one command, in a process of its own that outlives the runtime.

Owns:  spawning the command (session, working directory, kernel limits, stdio), copying its output
       to files up to a cap, enforcing its limits, and recording how it ended.
Rule 1: the command gets its own session; with a terminal, that terminal controls it.
Rule 2: inherited settings are applied to the supervisor itself before the spawn, so the kernel's
        fast spawn works and reports at once when the shell cannot be executed.
Rule 3: when memory runs out, the kernel kills the command before its supervisor and before the
        runtime.
Rule 4: output beyond the cap is read and discarded, so that the command is ended by a limit and not
        by a full pipe; nothing beyond the cap reaches the disk. Output the disk refuses is
        discarded too and reported separately from the cap.
Rule 5: the combined file is created with the first byte of the second stream; until then the first
        stream's file holds everything. It contains exactly what the streams have on disk, so their
        caps bound it. When the disk refuses it, it is removed and the streams continue.
Rule 6: everything the command starts stays below the supervisor, even in another session, because
        the kernel reparents orphans to it. The supervisor is done when nothing is left below it.
Rule 7: the status is recorded when the command has ended and its streams have ended too, were quiet
        for a moment, or a bounded time has passed: a process that keeps a stream open cannot delay
        the result. Copying continues afterwards. On a full disk the status waits for room, unless
        the supervisor is asked to exit: then the run is found lost.
Rule 8: SIGTERM requests a polite end with a grace period, SIGUSR1 a forced one. A limit that is
        exceeded ends the command the same way; a command with too many processes gets no grace
        period.
Rule 9: when the record says that the command ended by itself and left nothing, and no request is
        pending, the process may serve another command. In any other case it exits.
Rule 10: the fork server imports this module, so it uses the standard library only.
"""

import errno
import fcntl
import os
import pty
import resource
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from holon.adapters.exec.process_table import (
    ProcessFacts,
    descendants_of,
    kill_all,
    last_pid,
    send,
    tasks_count,
)
from holon.adapters.exec.run_folder import FORCED, NO_SPACE_ERRORS, POLITE, RunFolder, is_held
from holon.model.limits import COMMAND_DRAIN_MS_MAX, COMMAND_STOP_GRACE_MS

CHUNK_BYTES: Final = 64 * 1024
PIPE_CHUNKS_COUNT_MAX: Final = 64  # more than a pipe or a terminal can hold
# Readable, since the combined file begins with what the first stream has written so far.
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
ROWS_AND_COLUMNS: Final = (24, 80)
COMMAND_OOM_SCORE: Final = 500  # added to the process's badness: half of all memory
_OOM_SCORE: Final = "/proc/self/oom_score_adj"
THREADS_PER_PROCESS_COUNT: Final = 4  # the kernel's limit counts threads, ours does not

# Python ignores two of these and the supervisor handles the others; a command gets the defaults.
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
TICK_MS: Final = 200  # how often processes are counted
QUIET_MS: Final = 150  # after the end, a stream that is silent for so long is complete
KILL_AGAIN_MS_MIN: Final = (
    20  # doubled each time: a process blocked on a dead disk cannot be killed
)
KILL_AGAIN_MS_MAX: Final = 1_000


class CombinedFile:
    """Both streams of a command in order of arrival, once both have written."""

    def __init__(self, path: str, *, streams_count: int) -> None:
        self._path = path
        self._open_count = streams_count
        self._file: int | None = None
        self._first: int | None = None  # our descriptor of the only stream file so far
        self._first_path: str | None = None
        self._is_closed = False

    def add(self, data: memoryview, *, path: str, file: int) -> None:
        """Append what a stream has just written to its own file."""
        if self._is_closed or not data:
            return
        try:
            if self._first_path is None:
                self._first, self._first_path = os.dup(file), path
            if self._file is None:
                if path == self._first_path:
                    return
                self._begin()
            self._append(data)
        except OSError:
            self._give_up()

    def stream_ended(self) -> None:
        """Close the files once no stream is left."""
        self._open_count -= 1
        if self._open_count == 0:
            self._close()

    def _close(self) -> None:
        for file in (self._file, self._first):
            if file is not None:
                os.close(file)
        self._file = self._first = None
        self._is_closed = True

    def _begin(self) -> None:
        self._file = os.open(self._path, _CREATE, 0o600)
        offset = 0
        while self._first is not None and (chunk := os.pread(self._first, CHUNK_BYTES, offset)):
            self._append(memoryview(chunk))
            offset += len(chunk)

    def _append(self, data: memoryview) -> None:
        while data and self._file is not None:
            data = data[os.write(self._file, data) :]

    def _give_up(self) -> None:
        was_ours = self._file is not None
        self._close()
        if was_ours:
            with suppress(OSError):
                os.unlink(self._path)


class OutputSink:
    """The file of one output stream."""

    def __init__(self, path: str, *, bytes_max: int, combined: CombinedFile | None = None) -> None:
        self._path = path
        self._combined = combined
        self._file: int | None = None
        self._room = bytes_max
        self.is_full = False
        self.is_lost = False  # the disk refused output within the cap
        self.last_data_s = time.monotonic()

    def add(self, source: int) -> int | None:
        """Copy at most one chunk; return its size, 0 at the end, None when none is ready."""
        try:
            chunk = os.read(source, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that every process has closed
                raise
            return 0
        if chunk:
            self.last_data_s = time.monotonic()
            self._write(chunk)
        return len(chunk)

    def drain(self, source: int) -> None:
        """Copy what remains in a stream without writers."""
        for _ in range(PIPE_CHUNKS_COUNT_MAX):
            if not self.add(source):
                return

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
        if self._combined is not None:
            self._combined.stream_ended()

    def _write(self, chunk: bytes) -> None:
        if len(chunk) > self._room and not self.is_lost:
            self.is_full = True
        accepted = memoryview(chunk)[: self._room]
        self._room -= len(accepted)
        rest = accepted
        try:
            if self._file is None:
                self._file = os.open(self._path, _CREATE, 0o600)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:  # a full disk, or the folder is gone
            self._room, self.is_lost = 0, not self.is_full
        if self._combined is not None and self._file is not None:
            written = accepted[: len(accepted) - len(rest)]
            self._combined.add(written, path=self._path, file=self._file)


class Spawned(NamedTuple):
    """A spawned process, with the supervisor's ends of its streams."""

    pid: int
    sinks: Mapping[int, OutputSink]
    input_fifo: int | None = None  # of a terminal: the FIFO whose content is typed into it
    input_keeper: int | None = (
        None  # of a pipe: held open so that the input does not end between writes
    )


class InheritedLimits(NamedTuple):
    """Process limits a supervisor cannot raise again after a command."""

    file_bytes: int
    handles_count: int
    umask: int | None


def inherited_limits_of(command: Mapping[str, Any]) -> InheritedLimits:
    """Return the limits a command leaves its supervisor with."""
    return InheritedLimits(command["file_bytes"], command["handles_count"], command.get("umask"))


def spawn(folder: RunFolder, command: Mapping[str, Any]) -> Spawned:
    """Start the process, or raise OSError or ValueError."""
    _limit_processes(int(command["processes_count"]))
    _limit_to(resource.RLIMIT_CORE, 0)  # a dump may hold what was in the input
    _limit_to(resource.RLIMIT_FSIZE, int(command["file_bytes"]))
    _limit_to(resource.RLIMIT_NOFILE, int(command["handles_count"]))
    return (_spawn_on_terminal if command["tty"] else _spawn_on_pipes)(folder, command)


def _limit_to(kind: int, maximum: int) -> None:
    """Lower the soft and the hard limit, unless they are lower already."""
    soft, hard = (
        maximum if limit == resource.RLIM_INFINITY else min(limit, maximum)
        for limit in resource.getrlimit(kind)
    )
    resource.setrlimit(kind, (soft, hard))


def _limit_processes(processes_count: int) -> None:
    # Counts everything the user runs, so it can only be a backstop to the supervisor's own count.
    wanted = tasks_count() + THREADS_PER_PROCESS_COUNT * processes_count
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    maximum = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (maximum, hard))


def _spawn_on_pipes(folder: RunFolder, command: Mapping[str, Any]) -> Spawned:
    out_read, out_write = os.pipe2(os.O_CLOEXEC)
    err_read, err_write = os.pipe2(os.O_CLOEXEC)
    sinks = _sinks((out_read, err_read), folder, command)
    source, both_ends, input_keeper = "/dev/null", None, None
    if command["accepts_input"]:
        # Opening one side of a FIFO fails or blocks without the other: hold both until then.
        source = folder.input
        both_ends = os.open(source, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        input_keeper = os.open(source, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, source, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out_write, 1),
        (os.POSIX_SPAWN_DUP2, err_write, 2),
    ]
    pid = _posix_spawn(command, actions)
    for fd in (out_write, err_write, both_ends):
        if fd is not None:
            os.close(fd)
    return Spawned(pid, sinks, input_keeper=input_keeper)


def _spawn_on_terminal(folder: RunFolder, command: Mapping[str, Any]) -> Spawned:
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", *ROWS_AND_COLUMNS, 0, 0))
    sinks = _sinks((terminal,), folder, command)
    input_fifo = None
    if command["accepts_input"]:
        input_fifo = os.open(folder.input, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    # The leader of a session without a terminal gets the one it opens first.
    name = os.ttyname(end)
    actions = [(os.POSIX_SPAWN_OPEN, fd, name, os.O_RDWR, 0) for fd in range(3)]
    pid = _posix_spawn(command, actions)
    os.close(end)
    return Spawned(pid, sinks, input_fifo=input_fifo)


def _sinks(
    sources: Sequence[int], folder: RunFolder, command: Mapping[str, Any]
) -> dict[int, OutputSink]:
    bytes_max = int(command["output_bytes"])
    for source in sources:
        os.set_blocking(source, False)
    paths = folder.streams(is_tty=command["tty"])
    combined = CombinedFile(folder.combined, streams_count=2) if len(paths) > 1 else None
    return {
        source: OutputSink(path, bytes_max=bytes_max, combined=combined)
        for source, path in zip(sources, paths, strict=True)
    }


def _posix_spawn(command: Mapping[str, Any], actions: Sequence[tuple[Any, ...]]) -> int:
    argv: list[str] = command["argv"]
    if (umask := command.get("umask")) is not None:
        os.umask(umask)  # of the supervisor too: its output files belong to the same command
    with _raised_oom_score():
        return os.posix_spawn(
            argv[0],
            argv,
            command["environment"],
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=SIGNALS_RESET,
        )


@contextmanager
def _raised_oom_score() -> Iterator[None]:
    """Make processes spawned in the block the first that the OOM killer ends."""
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
    # A system without it, or a sandbox that forbids it, still runs commands.
    with suppress(OSError), open(_OOM_SCORE, "w", encoding="ascii") as file:
        file.write(str(score))


class Supervisor:
    """Supervises one spawned command until none of its processes is left."""

    def __init__(
        self,
        folder: RunFolder,
        command: Mapping[str, Any],
        spawned: Spawned,
        *,
        wakeup: int,
        reply_pipe: int,
    ) -> None:
        self.inherited_limits = inherited_limits_of(command)
        self._folder = folder
        self._record = folder.opened()
        self._spawned = spawned
        self._is_tty = bool(command["tty"])
        self._sinks = dict(spawned.sinks)
        self._typed_input = bytearray()
        self._processes_max = int(command["processes_count"])
        self._deadline_s = time.monotonic() + int(command["wall_clock_ms"]) / 1_000
        self._counted = (1, last_pid())
        self._cause: str | None = None
        self._kill_s: float | None = None
        self._kill_again_ms = KILL_AGAIN_MS_MIN
        self._ended_s: float | None = None
        self._wait_status: int | None = None
        self._is_settled = False
        self._is_alone = False
        self._has_recorded_alone = False
        self._is_stop_requested = False
        self._reply_pipe = reply_pipe
        self._wakeup = wakeup
        self._poll = select.poll()
        for fd in (*self._sinks, wakeup, spawned.input_fifo):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Return once no process of the command is left and its end is recorded, if possible."""
        while not (self._is_alone and (self._is_settled or self._wait_status is None)):
            for fd, _ in self._poll.poll(self._poll_timeout_ms()):
                self._handle(fd)
            self._collect()
            self._settle()
            self._enforce_limits()

    def is_reusable(self) -> bool:
        """Release the resources of the command; return whether another one may be served."""
        for source, sink in self._sinks.items():
            os.close(source)
            sink.close()
        for fd in (self._spawned.input_fifo, self._spawned.input_keeper):
            if fd is not None:
                os.close(fd)
        record = self._record
        if record is None or not self._has_recorded_alone or is_held(record):
            return False
        os.close(record)
        # The run is over, so no new signal means it, and earlier ones have been read by now.
        return self._cause is None and not self._is_stop_requested and not self._requests()

    def _requests(self) -> list[int]:
        """Return the pending signals that request the end."""
        try:
            return [number for number in os.read(self._wakeup, 256) if number in (POLITE, FORCED)]
        except BlockingIOError:
            return []

    def _handle(self, fd: int) -> None:
        if fd == self._wakeup:
            for number in self._requests():
                self._is_stop_requested = True
                self._stop("requested", at_once=number == FORCED)
        elif fd == self._spawned.input_fifo:
            self._typed_input += os.read(fd, select.PIPE_BUF)
            self._type_input(fd)
        else:
            self._copy(fd)
            if self._typed_input and self._spawned.input_fifo is not None:
                self._type_input(self._spawned.input_fifo)

    def _copy(self, source: int) -> None:
        sink = self._sinks[source]
        if sink.add(source) == 0:
            self._poll.unregister(source)
            os.close(source)
            sink.close()
            del self._sinks[source]
        elif sink.is_lost:
            self._stop("output_lost")
        elif sink.is_full:
            self._stop("output_size")

    def _type_input(self, source: int) -> None:
        """Type pending input; no more is read until the terminal has taken all of it."""
        terminal = next(iter(self._sinks), None)
        if terminal is None:
            self._typed_input.clear()
            return
        try:
            del self._typed_input[: os.write(terminal, self._typed_input)]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:  # every process has closed the terminal
                raise
            self._typed_input.clear()
        self._poll.modify(source, 0 if self._typed_input else select.POLLIN)
        self._poll.modify(terminal, select.POLLIN | (select.POLLOUT if self._typed_input else 0))

    def _collect(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._is_alone = True
                return
            if pid == 0:
                return
            if pid == self._spawned.pid:
                self._wait_status, self._ended_s = status, time.monotonic()

    def _enforce_limits(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._deadline_s:
            self._stop("wall_clock")
        if self._kill_s is not None and now_s >= self._kill_s:
            kill_all(self._descendants)
            self._kill_s = time.monotonic() + self._kill_again_ms / 1_000
            self._kill_again_ms = min(2 * self._kill_again_ms, KILL_AGAIN_MS_MAX)
        elif self._has_too_many_processes():
            self._stop("processes", at_once=True)

    def _has_too_many_processes(self) -> bool:
        # No count while the whole machine forked too few processes to exceed the limit.
        count, newest = self._counted
        latest = last_pid()
        if newest <= latest and count + latest - newest <= self._processes_max:
            return False
        self._counted = (len(self._descendants()), latest)
        return self._counted[0] > self._processes_max

    def _descendants(self) -> list[ProcessFacts]:
        return descendants_of(os.getpid())

    def _stop(self, cause: str, *, at_once: bool = False) -> None:
        now_s = time.monotonic()
        if self._cause is None and self._wait_status is None:
            self._cause = cause
        if at_once:
            self._kill_s = now_s
        elif self._kill_s is None:
            self._kill_s = now_s + COMMAND_STOP_GRACE_MS / 1_000
            # A stopped process sees SIGTERM after SIGCONT; a shell on a terminal obeys SIGHUP.
            polite = [signal.SIGTERM, signal.SIGCONT]
            if self._is_tty:
                polite.append(signal.SIGHUP)
            send(self._descendants(), *polite)

    def _settle(self) -> None:
        """Record how the command ended, once that is known and its output complete."""
        if self._is_settled or self._wait_status is None or not self._is_output_complete():
            return
        code = os.waitstatus_to_exitcode(self._wait_status)
        try:
            self._folder.ended(
                exit_status=code if code >= 0 else 128 - code,
                signal_number=-code if code < 0 else None,
                stopped=self._cause,
                is_alone=self._is_alone,
            )
            self._has_recorded_alone = self._is_alone
        except OSError as error:
            if error.errno in NO_SPACE_ERRORS and not self._is_stop_requested:
                return  # recorded at a later tick, once there is room
        self._is_settled = True
        os.close(self._reply_pipe)  # the runtime waits for this end of file

    def _is_output_complete(self) -> bool:
        if self._is_alone:
            for source, sink in self._sinks.items():
                sink.drain(source)
        if not self._sinks or self._is_alone or self._ended_s is None:
            return True
        now_s = time.monotonic()
        last_data_s = max(self._ended_s, *(sink.last_data_s for sink in self._sinks.values()))
        return (
            now_s - last_data_s >= QUIET_MS / 1_000
            or now_s - self._ended_s >= COMMAND_DRAIN_MS_MAX / 1_000
        )

    def _poll_timeout_ms(self) -> float:
        soonest = self._deadline_s if self._kill_s is None else self._kill_s
        patience_ms = min(TICK_MS, 1_000 * (soonest - time.monotonic()))
        if self._ended_s is not None and not self._is_settled:
            patience_ms = min(patience_ms, QUIET_MS)
        return max(0, patience_ms)
