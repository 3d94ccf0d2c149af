"""A handle on one command: wait, write input, stop, read output.

Owns:  the runtime's view of a command, whether this process or an earlier one started it.
Rule 1: all state is read from the run folder, so a command of an earlier process is handled the
        same way. Knowing which supervisor answered the start matters only where a command has
        damaged its folder.
Rule 2: a command whose supervisor died without recording an end is lost. What is left of it is
        killed: a command must not run without a supervisor.
Rule 3: reading a command's files neither fails nor blocks, whatever the command made of them:
        anything but a regular file counts as empty. When no file descriptor is left to read with,
        it waits.
"""

import contextlib
import os
import signal
import weakref
from collections.abc import Sequence
from typing import Final

import anyio

from holon.adapters.exec.process_table import (
    ProcessIdentity,
    descendants_of,
    end_for_certain,
    is_living,
    marked_with,
    open_living,
)
from holon.adapters.exec.run_folder import (
    FORCED,
    POLITE,
    SCARCE,
    RunFolder,
    is_within_reach,
    marker_of,
    opened_pipe,
    opened_plain,
)
from holon.model.limits import COMMAND_STOP_GRACE_MS, SECOND_MS
from holon.model.tasks import CommandExit, OutputSpan, OutputStream, StopCause

FEED_MS_MAX: Final = 2 * SECOND_MS  # for a command that does not read what it is fed
LOOK_AGAIN_MS: Final = 50  # for the end of a command that an earlier life of ours started
CERTAIN_MS: Final = COMMAND_STOP_GRACE_MS + 3 * SECOND_MS  # then we do the supervisor's work
_LOST: Final = CommandExit(exit_status=None)


class LocalCommand:
    """A command that was started, by us or by an earlier life of the runtime."""

    def __init__(
        self,
        run_id: str,
        folder: RunFolder,
        *,
        is_tty: bool,
        pipe: int | None = None,
        supervisor: ProcessIdentity | None = None,
    ) -> None:
        self._run_id = run_id
        self._folder = folder
        self._is_tty = is_tty
        self._exit: CommandExit | None = None
        self._left_nothing = False
        self._feeding = anyio.Lock()
        # Its supervisor holds the other end until it has ended; only one of our own has this.
        self._pipe = pipe
        self._supervisor = supervisor  # as it answered on the pipe
        self._let_go = weakref.finalize(self, _close, pipe)

    @property
    def run_id(self) -> str:
        """The id it was started under."""
        return self._run_id

    @property
    def exit(self) -> CommandExit | None:
        """How it ended, once that is known."""
        if self._exit is None:
            facts = self._folder.read()
            ended, self._left_nothing = facts.ended, facts.left_nothing
            if ended is not None:
                self._exit = CommandExit(
                    exit_status=ended.get("exit_status"),
                    signal=ended.get("signal"),
                    stopped=next((c for c in StopCause if c == ended.get("stopped")), None),
                )
        return self._exit

    @property
    def left_running(self) -> bool:
        """Whether it has ended and something it started has not."""
        if self.exit is None or self._left_nothing:
            return False
        supervisor = self._folder.read().supervisor
        if supervisor is None or not is_living(supervisor):
            return False
        try:
            return bool(descendants_of(supervisor.pid))
        except OSError:  # no handle to look at the processes with
            return True

    async def wait(self) -> CommandExit:
        """Return once it has ended and its output is on disk."""
        if self._exit is None:
            if self._pipe is not None:
                await _pipe_ends(self._pipe)
            else:
                await self._record_ends()
            await self._within_reach()
        found = self.found_or_lost()
        self.close()
        return found

    def found_or_lost(self) -> CommandExit:
        """Return how a command ended that has no supervisor any more."""
        found = self.exit
        if found is None:
            found = self._exit = _LOST
            self._sweep()
        return found

    def close(self) -> None:
        """Give back what waiting takes, once there is no waiter."""
        self._pipe = None
        self._let_go()

    async def _record_ends(self) -> None:
        """Return once the record says how it ended, or no supervisor is left to write it."""
        await self._within_reach()
        facts = self._folder.read()
        await _process_ends(facts.process)
        # Its output is drained now, for a bounded time: a few looks at the record will do.
        while self.exit is None and is_living(facts.supervisor):
            with anyio.move_on_after(LOOK_AGAIN_MS / 1_000):
                await _process_ends(facts.supervisor)

    async def _within_reach(self) -> None:
        """Return once the record can be looked at: without a handle to spare it says nothing."""
        while not is_within_reach(self._folder.record):  # noqa: ASYNC110 - no event tells of free handles
            await anyio.sleep(LOOK_AGAIN_MS / 1_000)

    async def feed(self, data: bytes) -> int:
        """Write to its input; 0 when it takes none any more."""
        if self.exit is not None:
            return 0
        async with self._feeding:
            pipe = opened_pipe(self._folder.input)
            if pipe is None:  # no such pipe, or it has no reader any more
                return 0
            try:
                return await _write(pipe, data)
            finally:
                os.close(pipe)

    async def stop(self, *, force: bool = False) -> None:
        """End it and everything it started; return once all that is gone."""
        await self._within_reach()
        record = self._folder.hold()
        if record is None and self._folder.read().left_nothing:
            return
        identity = self._folder.read().supervisor
        if record is None:
            identity = self._supervisor_at_the_pipe()
        handle = None if identity is None else open_living(identity)
        try:
            if identity is None or handle is None:
                self._sweep()
            elif not await _ends(handle, FORCED if force else POLITE):
                self._end_ourselves(identity, handle)
        finally:
            _close(handle)
            _close(record)

    def _supervisor_at_the_pipe(self) -> ProcessIdentity | None:
        """Who looks after the command, whatever that has made of its record.

        The pipe is held until the end is on record: so its holder is still at this command.
        """
        return self._supervisor if self._pipe is not None and _is_held(self._pipe) else None

    def _end_ourselves(self, supervisor: ProcessIdentity, handle: int) -> None:
        """Do the work of a supervisor that does not do it."""
        with contextlib.suppress(OSError):
            end_for_certain(lambda: descendants_of(supervisor.pid))
        with contextlib.suppress(ProcessLookupError):  # it has just gone by itself
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        self._sweep()
        if self.exit is None:
            self._exit = CommandExit(exit_status=None, stopped=StopCause.REQUESTED)

    def output(self, *, head_bytes: int, tail_bytes: int) -> Sequence[OutputSpan]:
        """Look at what it has written so far: two streams, or one combined for a terminal."""
        paths = self._folder.streams(is_tty=self._is_tty)
        return [_span(path, head_bytes=head_bytes, tail_bytes=tail_bytes) for path in paths]

    @property
    def combined_path(self) -> str | None:
        """The file that holds all it has written, in the order it came; None where none does."""
        written = [each for each in self.output(head_bytes=0, tail_bytes=0) if each.total_bytes]
        if len(written) == 1:
            return written[0].path
        path = self._folder.combined
        return path if written and _span(path, head_bytes=0, tail_bytes=0).total_bytes else None

    def _sweep(self) -> None:
        marker = marker_of(self._folder.path)
        with contextlib.suppress(OSError):  # no handle to look at the processes with
            end_for_certain(lambda: marked_with(marker))


def _close(pipe: int | None) -> None:
    if pipe is not None:
        os.close(pipe)


async def _ends(handle: int, asked: signal.Signals) -> bool:
    """Ask a supervisor to end what it looks after; whether it has gone, as it then does."""
    try:
        signal.pidfd_send_signal(handle, asked)
    except ProcessLookupError:
        return True  # by itself
    with anyio.move_on_after(CERTAIN_MS / 1_000) as patience:
        await anyio.wait_readable(handle)
    return not patience.cancelled_caught


async def _pipe_ends(pipe: int) -> None:
    own = await _own(pipe)  # each who waits has a handle, since a loop takes one reader for each
    try:
        while _is_held(own):
            await anyio.wait_readable(own)
    finally:
        os.close(own)


async def _own(pipe: int) -> int:
    while True:
        try:
            return os.dup(pipe)
        except OSError as error:
            if error.errno not in SCARCE:
                raise
        await anyio.sleep(LOOK_AGAIN_MS / 1_000)


def _is_held(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return True


async def _process_ends(identity: ProcessIdentity | None) -> None:
    handle = None if identity is None else open_living(identity)
    if handle is None:
        return
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


async def _write(pipe: int, data: bytes) -> int:
    rest = memoryview(data)
    with anyio.move_on_after(FEED_MS_MAX / 1_000):
        while rest:
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(pipe)
            except BrokenPipeError:
                break
    return len(data) - len(rest)


def _span(path: str, *, head_bytes: int, tail_bytes: int) -> OutputSpan:
    stream = OutputStream(os.path.basename(path))
    nothing = OutputSpan(stream=stream, path=path, head=b"", tail=b"", total_bytes=0)
    file = opened_plain(path)
    if file is None:  # made with the first byte
        return nothing
    try:
        total_bytes = os.fstat(file).st_size
        head = _read_at(file, 0, min(head_bytes, total_bytes))
        tail_begins = max(len(head), total_bytes - tail_bytes)
        tail = _read_at(file, tail_begins, total_bytes - tail_begins)
    except OSError:
        return nothing
    finally:
        os.close(file)
    return OutputSpan(
        stream=stream,
        path=path,
        head=head,
        tail=tail,
        total_bytes=total_bytes,
    )


def _read_at(file: int, offset: int, count: int) -> bytes:
    chunks: list[bytes] = []
    while count > 0 and (chunk := os.pread(file, count, offset)):
        chunks.append(chunk)
        offset += len(chunk)
        count -= len(chunk)
    return b"".join(chunks)
