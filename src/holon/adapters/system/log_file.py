"""The log of a service.

Owns:  opening it for writing, moving a large one aside while it is written, and reading its end.
Rule 1: a link or a file of somebody else's at its place is never opened.
Rule 2: however large it is, reading its end costs a bounded number of bytes.
Rule 3: several processes may write to it: a line is one write, and whoever finds the file moved
        aside or gone goes on in the new one. Only the holder of the file's lock moves it.
Rule 4: what a process prints follows its log into the new file, where it was printed there before.
"""

import fcntl
import os
import stat
from pathlib import Path
from typing import NamedTuple

from holon.adapters.system.run_files import require_own_file
from holon.model.limits import DAEMON_LOG_BYTES_MAX, DAEMON_LOG_READ_BYTES_MAX


class LogTail(NamedTuple):
    """The last lines of a log, oldest first, as somebody wrote them."""

    lines: tuple[str, ...]
    truncated: bool  # there is more before them


def open_log(path: Path) -> int:
    """Open it for appending; a large one becomes `<name>.1`, in place of the one before."""
    if require_own_file(path) and path.stat().st_size > DAEMON_LOG_BYTES_MAX:
        move_aside(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def earlier_log(path: Path) -> Path:
    """Where a log goes that was moved aside."""
    return path.with_name(f"{path.name}.1")


def move_aside(path: Path) -> None:
    """Make a log the earlier one, in place of the one before."""
    earlier = earlier_log(path)
    require_own_file(earlier)
    path.replace(earlier)


class GrowingLog:
    """A log that is written line by line and never grows beyond its bound."""

    def __init__(self, path: Path, *, bytes_max: int = DAEMON_LOG_BYTES_MAX) -> None:
        """Open it; raises UnsafePlaceError or OSError."""
        self._path = path
        self._bytes_max = bytes_max
        self._handle = open_log(path)
        self._printed = tuple(h for h in (1, 2) if _is_same(h, self._handle))

    @property
    def is_printed_to(self) -> bool:
        """Whether what this process prints ends up here as well."""
        return bool(self._printed)

    def append(self, line: bytes) -> None:
        """Write one line; raises OSError or UnsafePlaceError when that is not possible now."""
        found = os.fstat(self._handle)
        if not self._is_current(found):
            self._reopen()
        elif found.st_size and found.st_size + len(line) > self._bytes_max:
            self._turn_over()
        os.write(self._handle, line)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._handle)

    def _is_current(self, held: os.stat_result) -> bool:
        try:
            named = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(held, named)

    def _turn_over(self) -> None:
        """Move the file aside, unless somebody else is doing so or has done so."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # this line still goes into the old one
        if self._is_current(os.fstat(self._handle)):
            move_aside(self._path)
        self._reopen()

    def _reopen(self) -> None:
        handle = open_log(self._path)
        for printed in self._printed:
            os.dup2(handle, printed)
        os.close(self._handle)
        self._handle = handle


def _is_same(one: int, other: int) -> bool:
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:
        return False  # nothing is open there


def read_tail(path: Path, *, lines_max: int, line_chars_max: int) -> LogTail:
    """Return its last lines; none when there is no log, or none that may be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return LogTail((), truncated=False)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return LogTail((), truncated=False)
        start = max(0, found.st_size - DAEMON_LOG_READ_BYTES_MAX)
        file.seek(start)
        text = file.read(DAEMON_LOG_READ_BYTES_MAX).decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n") if text else []
    if start > 0 and len(lines) > 1:
        lines = lines[1:]  # begun before what was read
    kept = lines[-lines_max:] if lines_max > 0 else []
    return LogTail(
        tuple(line[:line_chars_max] for line in kept), truncated=start > 0 or len(kept) < len(lines)
    )
