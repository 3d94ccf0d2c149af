"""What looks after one command, in a process of its own that outlives the runtime.

Owns:  the command's output, its limits, its end, and saying on disk how it ended.
Rule 1: whatever the command started stays below the supervisor, also what left its session, since
        the kernel gives orphans to it. It is done as soon as nothing is left below it.
Rule 2: the status is written when the command itself has ended and its streams have ended too, or
        were quiet for a moment, or a bounded time has passed: nobody who keeps a stream open can
        hold the result back. The streams are still copied afterwards. On a full disk the status
        waits for room, unless somebody asks us to go: then it is found lost.
Rule 3: SIGTERM asks for a polite end with a grace, SIGUSR1 for a certain one. A limit that is
        passed ends the command the same way. What left too many processes gets no grace.
Rule 4: where the record says that the command ended by itself and left nothing, and nobody wants
        anything of us for it, the process may look after another one. In any other case it goes.
Rule 5: this module is loaded by the fork server, which sees the standard library only.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Mapping
from typing import Any, Final

from holon.adapters.exec.process_table import (
    ProcessFacts,
    descendants_of,
    end_for_certain,
    last_pid,
    send,
)
from holon.adapters.exec.run_folder import FORCED, POLITE, ROOM_MAY_COME, RunFolder, is_held
from holon.adapters.exec.spawning import Spawned, lasting_of
from holon.model.command_limits import COMMAND_DRAIN_MS_MAX, COMMAND_STOP_GRACE_MS

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
        self.lasting = lasting_of(asked)
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
