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
    is_living,
    kill_all,
    marked_with,
    open_living,
)
from holon.adapters.exec.run_folder import (
    DESCRIPTOR_SHORTAGE,
    FORCED,
    POLITE,
    RunFolder,
    can_be_opened,
    marker_of,
    open_fifo,
    open_regular_file,
)
from holon.model.limits import COMMAND_STOP_GRACE_MS, SECOND_MS
from holon.model.tasks import CommandExit, OutputSpan, OutputStream, StopCause

FEED_MS_MAX: Final = 2 * SECOND_MS  # for a command that does not read its input
POLL_MS: Final = 50  # for the end of a command that an earlier process started
SUPERVISOR_EXIT_MS: Final = (
    COMMAND_STOP_GRACE_MS + 3 * SECOND_MS
)  # then the runtime kills the command itself
_LOST: Final = CommandExit(exit_status=None)


class LocalCommand:
    """A command started by this runtime or by an earlier process of it."""

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
        # The supervisor holds the other end until the command ends. None for an earlier command.
        self._pipe = pipe
        self._supervisor = supervisor  # as it replied on the pipe
        self._release_pipe = weakref.finalize(self, _close, pipe)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._run_id

    @property
    def exit(self) -> CommandExit | None:
        """How the command ended, once that is known."""
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
        """Whether the command has ended and left processes running."""
        if self.exit is None or self._left_nothing:
            return False
        supervisor = self._folder.read().supervisor
        if supervisor is None or not is_living(supervisor):
            return False
        try:
            return bool(descendants_of(supervisor.pid))
        except OSError:  # no free descriptor to list the processes with
            return True

    async def wait(self) -> CommandExit:
        """Wait until the command has ended and its output is on disk."""
        if self._exit is None:
            if self._pipe is not None:
                await _pipe_closes(self._pipe)
            else:
                await self._until_recorded()
            await self._until_readable()
        command_exit = self.exit_or_lost()
        self.close()
        return command_exit

    def exit_or_lost(self) -> CommandExit:
        """Return how a command without a supervisor ended; kill what is left of a lost one."""
        command_exit = self.exit
        if command_exit is None:
            command_exit = self._exit = _LOST
            self._kill_marked()
        return command_exit

    def close(self) -> None:
        """Close the pipe, once nothing waits on it."""
        self._pipe = None
        self._release_pipe()

    async def _until_recorded(self) -> None:
        """Wait until the end is recorded, or no supervisor is left to record it."""
        await self._until_readable()
        facts = self._folder.read()
        await _process_exits(facts.process)
        # Its output is being drained for a bounded time, so a few polls of the record suffice.
        while self.exit is None and is_living(facts.supervisor):
            with anyio.move_on_after(POLL_MS / 1_000):
                await _process_exits(facts.supervisor)

    async def _until_readable(self) -> None:
        """Wait until the record can be opened, which needs a free file descriptor."""
        while not can_be_opened(self._folder.record):  # noqa: ASYNC110 - no event reports free descriptors
            await anyio.sleep(POLL_MS / 1_000)

    async def feed(self, data: bytes) -> int:
        """Write to the command's input; return the bytes written, 0 when it reads no more."""
        if self.exit is not None:
            return 0
        async with self._feeding:
            pipe = open_fifo(self._folder.input)
            if pipe is None:  # no FIFO, or no reader
                return 0
            try:
                return await _write(pipe, data)
            finally:
                os.close(pipe)

    async def stop(self, *, force: bool = False) -> None:
        """End the command and everything it started, and wait until all of it has exited."""
        await self._until_readable()
        record = self._folder.hold()
        if record is None and self._folder.read().left_nothing:
            return
        identity = self._folder.read().supervisor
        if record is None:
            identity = self._supervisor_on_pipe()
        handle = None if identity is None else open_living(identity)
        try:
            if identity is None or handle is None:
                self._kill_marked()
            elif not await _exits(handle, FORCED if force else POLITE):
                self._kill_directly(identity, handle)
        finally:
            _close(handle)
            _close(record)

    def _supervisor_on_pipe(self) -> ProcessIdentity | None:
        """Return the supervisor, even if the command has damaged its record.

        The supervisor holds the pipe until the end is recorded, so a held pipe means that it still
        serves this command.
        """
        return self._supervisor if self._pipe is not None and _is_held(self._pipe) else None

    def _kill_directly(self, supervisor: ProcessIdentity, handle: int) -> None:
        """Kill a command whose supervisor did not, and the supervisor."""
        with contextlib.suppress(OSError):
            kill_all(lambda: descendants_of(supervisor.pid))
        with contextlib.suppress(ProcessLookupError):  # it has just exited
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        self._kill_marked()
        if self.exit is None:
            self._exit = CommandExit(exit_status=None, stopped=StopCause.REQUESTED)

    def output(self, *, head_bytes: int, tail_bytes: int) -> Sequence[OutputSpan]:
        """Return the output so far: two streams, or one combined stream of a terminal."""
        paths = self._folder.streams(is_tty=self._is_tty)
        return [_span(path, head_bytes=head_bytes, tail_bytes=tail_bytes) for path in paths]

    @property
    def combined_path(self) -> str | None:
        """The file with all output in order of arrival; None where there is none."""
        written = [each for each in self.output(head_bytes=0, tail_bytes=0) if each.total_bytes]
        if len(written) == 1:
            return written[0].path
        path = self._folder.combined
        return path if written and _span(path, head_bytes=0, tail_bytes=0).total_bytes else None

    def _kill_marked(self) -> None:
        marker = marker_of(self._folder.path)
        with contextlib.suppress(OSError):  # no free descriptor to list the processes with
            kill_all(lambda: marked_with(marker))


def _close(pipe: int | None) -> None:
    if pipe is not None:
        os.close(pipe)


async def _exits(handle: int, request: signal.Signals) -> bool:
    """Signal a supervisor to end its command; return whether it exited, as it then should."""
    try:
        signal.pidfd_send_signal(handle, request)
    except ProcessLookupError:
        return True  # it has exited already
    with anyio.move_on_after(SUPERVISOR_EXIT_MS / 1_000) as timeout:
        await anyio.wait_readable(handle)
    return not timeout.cancelled_caught


async def _pipe_closes(pipe: int) -> None:
    own = await _duplicate(
        pipe
    )  # a loop allows one reader per descriptor, so every waiter has its own
    try:
        while _is_held(own):
            await anyio.wait_readable(own)
    finally:
        os.close(own)


async def _duplicate(pipe: int) -> int:
    while True:
        try:
            return os.dup(pipe)
        except OSError as error:
            if error.errno not in DESCRIPTOR_SHORTAGE:
                raise
        await anyio.sleep(POLL_MS / 1_000)


def _is_held(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return True


async def _process_exits(identity: ProcessIdentity | None) -> None:
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
    file = open_regular_file(path)
    if file is None:  # created with the first byte
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
