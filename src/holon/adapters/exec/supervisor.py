"""What looks after one command, in a process of its own that outlives the runtime.

Owns:  copying from a pipe or a terminal to a file, never more than the cap, and the combined file;
       the session, the working directory, the limits the kernel keeps, and where the process reads
       and writes; the command's output, its limits, its end, and saying on disk how it ended.
Rule 1: what does not fit is read and thrown away, so that a command is ended by us and not by a
        pipe that is not emptied; nothing beyond the cap ever reaches the disk. What the disk will
        not take is thrown away as well, and told apart from the cap.
Rule 2: a combined file is made with the first byte of the second stream: until then the file of the
        first stream holds everything. It holds what the streams have on disk and nothing else, so
        their caps bound it. Where the disk will not take it, it is removed; the streams go on.
Rule 3: this module is loaded by the fork server, which sees the standard library only.
Rule 4: the process gets a session of its own; with a terminal, that terminal controls it.
Rule 5: what the process inherits is set on the supervisor before, so that the kernel's fast spawn
        does the rest and says at once when the shell cannot be run.
Rule 6: when memory runs out, a command goes first: before its supervisor and before the runtime.
Rule 7: this module is loaded by the fork server, which sees the standard library only.
Rule 8: whatever the command started stays below the supervisor, also what left its session, since
        the kernel gives orphans to it. It is done as soon as nothing is left below it.
Rule 9: the status is written when the command itself has ended and its streams have ended too, or
        were quiet for a moment, or a bounded time has passed: nobody who keeps a stream open can
        hold the result back. The streams are still copied afterwards. On a full disk the status
        waits for room, unless somebody asks us to go: then it is found lost.
Rule 10: SIGTERM asks for a polite end with a grace, SIGUSR1 for a certain one. A limit that is
         passed ends the command the same way. What left too many processes gets no grace.
Rule 11: where the record says that the command ended by itself and left nothing, and nobody wants
         anything of us for it, the process may look after another one. In any other case it goes.
Rule 12: this module is loaded by the fork server, which sees the standard library only.
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
    end_for_certain,
    last_pid,
    send,
    tasks_count,
)
from holon.adapters.exec.run_folder import FORCED, POLITE, ROOM_MAY_COME, RunFolder, is_held
from holon.model.limits import COMMAND_DRAIN_MS_MAX, COMMAND_STOP_GRACE_MS

CHUNK_BYTES: Final = 64 * 1024
PIPE_CHUNKS_COUNT_MAX: Final = 64  # more than a pipe or a terminal can hold
# Readable, since the combined file begins with what the first stream has written so far.
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class CombinedFile:
    """Both streams of a command in the order they came, once there are two."""

    def __init__(self, path: str, *, streams_count: int) -> None:
        self._path = path
        self._open_count = streams_count
        self._file: int | None = None
        self._first: int | None = None  # our own handle of the only file there is so far
        self._first_path: str | None = None
        self._is_given_up = False

    def take(self, data: memoryview, *, path: str, file: int) -> None:
        """Add what a stream has just written to its file."""
        if self._is_given_up or not data:
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
        """Give back the handles once no stream is left."""
        self._open_count -= 1
        if self._open_count == 0:
            self._close()

    def _close(self) -> None:
        for file in (self._file, self._first):
            if file is not None:
                os.close(file)
        self._file = self._first = None
        self._is_given_up = True

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
    """Where one stream ends up."""

    def __init__(self, path: str, *, bytes_max: int, combined: CombinedFile | None = None) -> None:
        self._path = path
        self._combined = combined
        self._file: int | None = None
        self._room = bytes_max
        self.is_full = False
        self.is_lost = False  # the disk did not take what was within the cap
        self.heard_s = time.monotonic()

    def take(self, source: int) -> int | None:
        """Copy what is there, one chunk at most: 0 at the end of the stream, None when it waits."""
        try:
            chunk = os.read(source, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that everybody has left
                raise
            return 0
        if chunk:
            self.heard_s = time.monotonic()
            self._write(chunk)
        return len(chunk)

    def drain(self, source: int) -> None:
        """Copy what was left in a stream that is not written to any more."""
        for _ in range(PIPE_CHUNKS_COUNT_MAX):
            if not self.take(source):
                return

    def close(self) -> None:
        """Give back the file."""
        if self._file is not None:
            os.close(self._file)
        if self._combined is not None:
            self._combined.stream_ended()

    def _write(self, chunk: bytes) -> None:
        if len(chunk) > self._room and not self.is_lost:
            self.is_full = True
        kept = memoryview(chunk)[: self._room]
        self._room -= len(kept)
        rest = kept
        try:
            if self._file is None:
                self._file = os.open(self._path, _CREATE, 0o600)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:  # the disk has a cap of its own, or the folder is gone
            self._room, self.is_lost = 0, not self.is_full
        if self._combined is not None and self._file is not None:
            written = kept[: len(kept) - len(rest)]
            self._combined.take(written, path=self._path, file=self._file)


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


class InheritedLimits(NamedTuple):
    """What a supervisor cannot take back once it has started a command."""

    file_bytes: int
    handles_count: int
    umask: int | None


def inherited_limits_of(asked: Mapping[str, Any]) -> InheritedLimits:
    """Return what a command leaves its supervisor with."""
    return InheritedLimits(asked["file_bytes"], asked["handles_count"], asked.get("umask"))


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


TICK_MS: Final = 200  # how often processes are counted
QUIET_MS: Final = 150  # after the end, a stream that says nothing for so long has said all
KILL_AGAIN_MS_MIN: Final = 20  # doubled each time: what waits for a dead disk cannot be killed
KILL_AGAIN_MS_MAX: Final = 1_000


class Supervisor:
    """Looks after one spawned command until nothing of it is left."""

    def __init__(
        self,
        folder: RunFolder,
        asked: Mapping[str, Any],
        spawned: Spawned,
        *,
        wakeup: int,
        held: int,
    ) -> None:
        self.lasting = inherited_limits_of(asked)
        self._folder = folder
        self._record = folder.opened()
        self._spawned = spawned
        self._is_tty = bool(asked["tty"])
        self._sinks = dict(spawned.sinks)
        self._typed = bytearray()
        self._processes_max = int(asked["processes_count"])
        self._deadline_s = time.monotonic() + int(asked["wall_clock_ms"]) / 1_000
        self._counted = (1, last_pid())
        self._cause: str | None = None
        self._kill_s: float | None = None
        self._kill_again_ms = KILL_AGAIN_MS_MIN
        self._ended_s: float | None = None
        self._wait_status: int | None = None
        self._is_settled = False
        self._is_alone = False
        self._has_said_alone = False
        self._is_hurried = False
        self._held = held
        self._wakeup = wakeup
        self._poll = select.poll()
        for fd in (*self._sinks, wakeup, spawned.typed):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Return once nothing of the command is left and its end was written down, if it could."""
        while not (self._is_alone and (self._is_settled or self._wait_status is None)):
            for fd, _ in self._poll.poll(self._patience_ms()):
                self._hear(fd)
            self._collect()
            self._settle()
            self._keep_limits()

    def may_leave(self) -> bool:
        """Give back what the command took; whether this process may look after another one."""
        for source, sink in self._sinks.items():
            os.close(source)
            sink.close()
        for fd in (self._spawned.typed, self._spawned.kept):
            if fd is not None:
                os.close(fd)
        record = self._record
        if record is None or not self._has_said_alone or is_held(record):
            return False
        os.close(record)
        # Nobody means this run any more; whoever did before has been heard by now.
        return self._cause is None and not self._is_hurried and not self._requests()

    def _requests(self) -> list[int]:
        """Which signals have come that ask for the end."""
        try:
            return [number for number in os.read(self._wakeup, 256) if number in (POLITE, FORCED)]
        except BlockingIOError:
            return []

    def _hear(self, fd: int) -> None:
        if fd == self._wakeup:
            for number in self._requests():
                self._is_hurried = True
                self._stop("requested", at_once=number == FORCED)
        elif fd == self._spawned.typed:
            self._typed += os.read(fd, select.PIPE_BUF)
            self._type(fd)
        else:
            self._copy(fd)
            if self._typed and self._spawned.typed is not None:
                self._type(self._spawned.typed)

    def _copy(self, source: int) -> None:
        sink = self._sinks[source]
        if sink.take(source) == 0:
            self._poll.unregister(source)
            os.close(source)
            sink.close()
            del self._sinks[source]
        elif sink.is_lost:
            self._stop("output_lost")
        elif sink.is_full:
            self._stop("output_size")

    def _type(self, source: int) -> None:
        """Type what has arrived; until the terminal took it all, we take no more."""
        terminal = next(iter(self._sinks), None)
        if terminal is None:
            self._typed.clear()
            return
        try:
            del self._typed[: os.write(terminal, self._typed)]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:  # everybody has left the terminal
                raise
            self._typed.clear()
        self._poll.modify(source, 0 if self._typed else select.POLLIN)
        self._poll.modify(terminal, select.POLLIN | (select.POLLOUT if self._typed else 0))

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

    def _keep_limits(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._deadline_s:
            self._stop("wall_clock")
        if self._kill_s is not None and now_s >= self._kill_s:
            end_for_certain(self._below)
            self._kill_s = time.monotonic() + self._kill_again_ms / 1_000
            self._kill_again_ms = min(2 * self._kill_again_ms, KILL_AGAIN_MS_MAX)
        elif self._has_too_many_processes():
            self._stop("processes", at_once=True)

    def _has_too_many_processes(self) -> bool:
        # As long as the whole machine forked too little for it, the processes need no counting.
        count, newest = self._counted
        latest = last_pid()
        if newest <= latest and count + latest - newest <= self._processes_max:
            return False
        self._counted = (len(self._below()), latest)
        return self._counted[0] > self._processes_max

    def _below(self) -> list[ProcessFacts]:
        return descendants_of(os.getpid())

    def _stop(self, cause: str, *, at_once: bool = False) -> None:
        now_s = time.monotonic()
        if self._cause is None and self._wait_status is None:
            self._cause = cause
        if at_once:
            self._kill_s = now_s
        elif self._kill_s is None:
            self._kill_s = now_s + COMMAND_STOP_GRACE_MS / 1_000
            # What was stopped hears nothing until it goes on; a shell on a terminal heeds SIGHUP.
            polite = [signal.SIGTERM, signal.SIGCONT]
            if self._is_tty:
                polite.append(signal.SIGHUP)
            send(self._below(), *polite)

    def _settle(self) -> None:
        """Write down how the command ended, as soon as that can be said."""
        if self._is_settled or self._wait_status is None or not self._has_said_all():
            return
        code = os.waitstatus_to_exitcode(self._wait_status)
        try:
            self._folder.ended(
                exit_status=code if code >= 0 else 128 - code,
                signal_number=-code if code < 0 else None,
                stopped=self._cause,
                is_alone=self._is_alone,
            )
            self._has_said_alone = self._is_alone
        except OSError as error:
            if error.errno in ROOM_MAY_COME and not self._is_hurried:
                return  # said at a later tick, once there is room: the end is known, and not lost
        self._is_settled = True
        os.close(self._held)  # whoever reads from the other end knows now

    def _has_said_all(self) -> bool:
        if self._is_alone:
            for source, sink in self._sinks.items():
                sink.drain(source)
        if not self._sinks or self._is_alone or self._ended_s is None:
            return True
        now_s = time.monotonic()
        heard_s = max(self._ended_s, *(sink.heard_s for sink in self._sinks.values()))
        return (
            now_s - heard_s >= QUIET_MS / 1_000
            or now_s - self._ended_s >= COMMAND_DRAIN_MS_MAX / 1_000
        )

    def _patience_ms(self) -> float:
        soonest = self._deadline_s if self._kill_s is None else self._kill_s
        patience_ms = min(TICK_MS, 1_000 * (soonest - time.monotonic()))
        if self._ended_s is not None and not self._is_settled:
            patience_ms = min(patience_ms, QUIET_MS)
        return max(0, patience_ms)
