"""Reads the end of the service log, and follows it across rotation.

Owns:  the report of `holon daemon logs`; the follower. Lines are returned as written; the terminal
       layer sanitizes them.
Rule 1: a rotated log is read to its end, then the new file from its beginning: rotation neither
        loses nor repeats a line.
Rule 2: a line is returned once it is complete, truncated to the display limit. A symlink or
        anything else that is not a regular file is not read.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.logs import read_tail
from holon.adapters.system.run_files import RunFiles
from holon.model.limits import (
    DAEMON_LOG_LINE_CHARS_MAX,
    DAEMON_LOG_LINES_COUNT_MAX,
    DAEMON_LOG_READ_BYTES_MAX,
)
from holon.model.record import Record
from holon.projections.runtime_status import DaemonStatus, FailurePhase, LastFailure


class LogReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The log of a daemon, its paths and its failures."""

    ok: bool
    log_path: str
    metadata_path: str
    last_failure: LastFailure | None  # as `holon daemon status` tells it
    last_failure_path: str | None
    startup_failure_path: str
    shutdown_failure_path: str
    startup_failure: LastFailure | None
    shutdown_failure: LastFailure | None
    lines: tuple[str, ...]
    truncated: bool


def log_report(files: RunFiles, *, lines_max: int, status: DaemonStatus | None = None) -> LogReport:
    """Return the report; a missing log has no lines. `status` provides the last failure."""
    failures = FailureFiles(files)
    tail = read_tail(
        files.log,
        lines_max=min(lines_max, DAEMON_LOG_LINES_COUNT_MAX),
        line_chars_max=DAEMON_LOG_LINE_CHARS_MAX,
    )
    return LogReport(
        ok=True,
        log_path=str(files.log),
        metadata_path=str(files.record),
        last_failure=None if status is None else status.last_failure,
        last_failure_path=None if status is None else status.last_failure_path,
        startup_failure_path=str(files.startup_failure),
        shutdown_failure_path=str(files.shutdown_failure),
        startup_failure=failures.of(FailurePhase.STARTUP),
        shutdown_failure=failures.of(FailurePhase.SHUTDOWN),
        lines=tail.lines,
        truncated=tail.truncated,
    )


class LogFollower:
    """Reads the last lines of a log, then follows it. The caller closes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._begun = b""  # of a line whose end is not written yet

    def last_lines(self, lines_max: int) -> tuple[str, ...]:
        """Open the log and return its last lines; `new_lines` continues after them."""
        self._handle = self._opened()
        if self._handle is None:
            return ()
        start = max(0, os.fstat(self._handle).st_size - DAEMON_LOG_READ_BYTES_MAX)
        os.lseek(self._handle, start, os.SEEK_SET)
        lines = self._whole_lines(self._handle)
        if start > 0:
            lines = lines[1:]  # begun before what was read
        return tuple(lines[-lines_max:]) if lines_max > 0 else ()

    def new_lines(self) -> tuple[str, ...]:
        """Return the lines written since the last call, up to a bound."""
        if self._handle is None:
            self._handle = self._opened()
            return () if self._handle is None else tuple(self._whole_lines(self._handle))
        is_old = self._is_elsewhere(self._handle)  # before it is read: it may still grow until then
        lines = self._whole_lines(self._handle)
        if is_old and not lines:
            self.close()
        return tuple(lines)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._begun = None, b""

    def _opened(self) -> int | None:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with suppress(OSError):
            handle = os.open(self._path, flags)
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return handle
            os.close(handle)
        return None

    def _is_elsewhere(self, handle: int) -> bool:
        """Whether the file was replaced or truncated."""
        held = os.fstat(handle)
        try:
            named = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False  # rotated, and not written since
        return not os.path.samestat(held, named) or held.st_size < os.lseek(handle, 0, os.SEEK_CUR)

    def _whole_lines(self, handle: int) -> list[str]:
        *whole, self._begun = (self._begun + os.read(handle, DAEMON_LOG_READ_BYTES_MAX)).split(
            b"\n"
        )
        self._begun = self._begun[:DAEMON_LOG_READ_BYTES_MAX]
        return [line.decode("utf-8", "replace")[:DAEMON_LOG_LINE_CHARS_MAX] for line in whole]
