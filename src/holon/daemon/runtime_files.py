"""What a runtime that is gone left under `<home>/run`.

Owns:  which files those are, and removing them.
Rule 1: a file is removed only when it is ours, of the kind it should be, and nobody it could belong
        to lives or listens. Whatever else stands there stays, and a start fails on it.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from holon.adapters.exec.process_table import is_living
from holon.adapters.system.listening_sockets import answers
from holon.adapters.system.run_files import RunFiles


def stale_files(files: RunFiles) -> tuple[Path, ...]:
    """Return the files an earlier process left, which may be removed."""
    record = files.read_record()
    if record is not None and is_living(record.identity()):
        return ()
    found = [path for path in (files.pid, files.record) if _is_ours(path, stat.S_ISREG)]
    if _is_ours(files.socket, stat.S_ISSOCK) and not answers(files.socket):
        found.append(files.socket)
    return tuple(found)


def remove_stale(files: RunFiles) -> tuple[Path, ...]:
    """Remove what an earlier process left, and say what that was."""
    found = stale_files(files)
    for path in found:
        path.unlink(missing_ok=True)
    return found


def _is_ours(path: Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.getuid()
