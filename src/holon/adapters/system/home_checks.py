"""Check whether a home is safe to serve.

Owns:  the check of a home's folders and files before any of them is used.
Rule 1: nothing is repaired silently: any user who could write to a home may have left something in
        it, so a person decides. The error says what to run.
Rule 2: a missing file is fine; it will be created private.
Rule 3: an unusable home is reported in one sentence with the path and the remedy.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holon.adapters.system.run_files import (
    RUN_FOLDER,
    RunFiles,
    UnsafePathError,
    require_own_file,
    require_owned,
)
from holon.model.errors import HomeUnusableError

_WRITING: Final = 0o022
_EVERYTHING: Final = 0o077
_FOLDERS: Final = ((".", _WRITING), (RUN_FOLDER, _EVERYTHING), ("state", _WRITING))
_ROOM_BYTES_MIN: Final = 1_048_576  # less, and not even an empty database fits
_DATABASE: Final = ("runtime.sqlite", "runtime.sqlite-wal", "runtime.sqlite-shm")


@contextmanager
def home_errors(home: Path) -> Iterator[None]:
    """Tell what the system says of a home inside the block as HomeUnusableError."""
    try:
        yield
    except OSError as error:
        named = Path(os.fsdecode(error.filename)) if error.filename is not None else home
        where = f"{named}" if named.is_relative_to(home) else f"{home} ({named})"
        raise HomeUnusableError(f"{where} cannot be used: {error.strerror}") from error


def is_full(home: Path) -> bool:
    """Whether the disk of a home has no room for what a runtime writes as it starts."""
    try:
        disk = os.statvfs(home)
    except OSError:
        return False
    # A disk that does not count its files says it may have none.
    has_files = disk.f_favail > 0 or disk.f_files == 0
    return disk.f_bavail * disk.f_frsize < _ROOM_BYTES_MIN or not has_files


def require_safe_home(home: Path) -> None:
    """Raise UnsafePathError when others could have a hand in this home."""
    with home_errors(home):
        _require_safe(home)


def _require_safe(home: Path) -> None:
    for name, forbidden_mode in _FOLDERS:
        _require_safe_folder(home / name if name != "." else home, forbidden_mode=forbidden_mode)
    for name in _DATABASE:
        require_own_file(home / "state" / name)
    run = RunFiles(home)
    _require_own_socket(run.socket)
    require_own_file(run.token, forbidden_mode=_EVERYTHING)
    for path in (
        run.folder / "lock",
        run.pid,
        run.record,
        run.log,
        run.startup_failure,
        run.shutdown_failure,
    ):
        require_own_file(path)


def _require_safe_folder(path: Path, *, forbidden_mode: int) -> None:
    try:
        # A person may keep a home, or its database, on another disk; a run folder is always here.
        facts = os.stat(path, follow_symlinks=path.name != RUN_FOLDER)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(facts.st_mode):
        raise UnsafePathError(f"{path} is not a folder", hint="look what it is, and move it away")
    require_owned(facts, path, forbidden_mode=forbidden_mode)


def _require_own_socket(path: Path) -> None:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(facts.st_mode):
        raise UnsafePathError(
            f"{path} is not a socket", hint="look what it is, and move it away; nothing was touched"
        )
    require_owned(facts, path, forbidden_mode=0)
