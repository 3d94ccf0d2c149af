"""Is a home fit to be served?

Owns:  the look at a home's folders and files before anything of them is used.
Rule 1: nothing is repaired on the quiet: whoever could have written to a home may have left
        something in it, so a person looks first. The error says what to run.
Rule 2: what is not there is in order; it will be made private.
"""

import os
import stat
from pathlib import Path
from typing import Final

from holon.adapters.system.run_files import (
    RunFiles,
    UnsafePlaceError,
    require_own_file,
    require_owned,
)
from holon.adapters.system.run_paths import RUN_FOLDER

_WRITING: Final = 0o022
_EVERYTHING: Final = 0o077
_FOLDERS: Final = ((".", _WRITING), (RUN_FOLDER, _EVERYTHING), ("state", _WRITING))
_DATABASE: Final = ("runtime.sqlite", "runtime.sqlite-wal", "runtime.sqlite-shm")


def require_safe_home(home: Path) -> None:
    """Raise UnsafePlaceError when others could have a hand in this home."""
    for name, shut in _FOLDERS:
        _require_safe_folder(home / name if name != "." else home, shut=shut)
    for name in _DATABASE:
        require_own_file(home / "state" / name)
    run = RunFiles(home)
    _require_own_socket(run.socket)
    require_own_file(run.token, shut=_EVERYTHING)
    for path in (
        run.folder / "lock",
        run.pid,
        run.record,
        run.log,
        run.startup_failure,
        run.shutdown_failure,
    ):
        require_own_file(path)


def _require_safe_folder(path: Path, *, shut: int) -> None:
    try:
        # A person may keep a home, or its database, on another disk; a run folder is always here.
        found = os.stat(path, follow_symlinks=path.name != RUN_FOLDER)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafePlaceError(f"{path} is not a folder", hint="look what it is, and move it away")
    require_owned(found, path, shut=shut)


def _require_own_socket(path: Path) -> None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise UnsafePlaceError(
            f"{path} is not a socket", hint="look what it is, and move it away; nothing was touched"
        )
    require_owned(found, path, shut=0)
