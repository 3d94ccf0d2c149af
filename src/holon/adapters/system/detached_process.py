"""A process that outlives its parent.

Owns:  starting it in its own session, waiting for its readiness message, and ending exactly that
       process.
Rule 1: it inherits nothing of ours: empty input, output to the log, every other descriptor closed
        except the readiness pipe, and no ignored signals.
Rule 2: waiting blocks on the kernel (a pidfd, a pipe), never polls.
Rule 3: a signal is sent through a pidfd opened for one identity, so it cannot hit a later process
        with the same pid.
"""

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

from holon.adapters.exec.process_table import ProcessIdentity, identity_of, open_living

READY_HANDLE: Final = 3
READY_WORD: Final = b"ready\n"
_RESET: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)


class ReadyOutcome(StrEnum):
    """How waiting for a process to be ready ended."""

    READY = "ready"
    ENDED = "ended"
    TOO_LONG = "too_long"


class DetachedProcess:
    """A process we started and may leave alone."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], *, log: int) -> None:
        """Start it; the log is an open handle that stays the caller's."""
        self._ready, writing = os.pipe()
        try:
            self.pid = os.posix_spawn(
                argv[0],
                list(argv),
                dict(environ),
                file_actions=(
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                    (os.POSIX_SPAWN_DUP2, writing, READY_HANDLE),
                    *((os.POSIX_SPAWN_CLOSE, handle) for handle in _inherited_handles()),
                ),
                setsid=True,
                setsigmask=(),
                setsigdef=_RESET,
            )
        except OSError:
            os.close(self._ready)
            raise
        finally:
            os.close(writing)
        self._handle = os.pidfd_open(self.pid)  # ours until we collect it, so it is surely this one

    def identity(self) -> ProcessIdentity | None:
        """Who it is, while it lives."""
        return identity_of(self.pid)

    def wait_ready(self, *, ms_max: int) -> ReadyOutcome:
        """Wait until it says it is ready, ends, or has taken too long."""
        received = b""
        deadline_ns = time.monotonic_ns() + ms_max * 1_000_000
        while (left_ms := (deadline_ns - time.monotonic_ns()) // 1_000_000) > 0:
            if not _readable(self._ready, ms_max=left_ms):
                break
            chunk = os.read(self._ready, len(READY_WORD))
            received += chunk
            if READY_WORD in received:
                return ReadyOutcome.READY
            if not chunk:
                return ReadyOutcome.ENDED
        return ReadyOutcome.TOO_LONG

    def ends_within(self, ms_max: int) -> bool:
        """Whether it ends in this time; returns at once when it does."""
        return _readable(self._handle, ms_max=ms_max)

    def end(self, *, grace_ms: int) -> None:
        """End it, politely first, and collect it."""
        signal_handle(self._handle, signal.SIGTERM)
        if not self.ends_within(grace_ms):
            signal_handle(self._handle, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def close(self) -> None:
        """Leave it alone from now on."""
        os.close(self._ready)
        os.close(self._handle)


class LivingProcess:
    """A process started elsewhere, held by a pidfd."""

    def __init__(self, handle: int, identity: ProcessIdentity) -> None:
        self._handle = handle
        self.identity = identity

    @staticmethod
    def find(identity: ProcessIdentity) -> "LivingProcess | None":
        """The very process, or nothing when it is gone."""
        handle = open_living(identity)
        return None if handle is None else LivingProcess(handle, identity)

    def ends_within(self, ms_max: int) -> bool:
        """Whether it ends in this time; returns at once when it does."""
        return _readable(self._handle, ms_max=ms_max)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        signal_handle(self._handle, number)

    def close(self) -> None:
        """Let go of the handle."""
        os.close(self._handle)


def signal_handle(handle: int, number: signal.Signals) -> None:
    """Send a signal to the process a handle stands for, unless it has ended."""
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return


def tell_ready(handle: int) -> None:
    """Report readiness, in the started process; the parent may have exited."""
    try:
        os.write(handle, READY_WORD)
    except OSError:
        pass
    finally:
        os.close(handle)


def _inherited_handles() -> list[int]:
    """Return inherited descriptors of our parent, such as a lock held by being open."""
    # One of them is the listing's own, and gone by now.
    open_ones = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > READY_HANDLE]
    inherited: list[int] = []
    for handle in open_ones:
        with suppress(OSError):
            if os.get_inheritable(handle):
                inherited.append(handle)
    return inherited


def _readable(handle: int, *, ms_max: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(ms_max))
