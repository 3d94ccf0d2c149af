"""The log of a runtime in the background.

Owns:  opening it for writing, moving a large one aside, and reading its end.
Rule 1: a link or a file of somebody else's at its place is never opened.
Rule 2: however large it is, reading its end costs a bounded number of bytes.
"""

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
        earlier = path.with_name(f"{path.name}.1")
        require_own_file(earlier)
        path.replace(earlier)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


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
