"""Directories that appear whole or not at all.

Owns:  scratch directories beside their target, the rename that makes them count, and removal.
Rule 1: a scratch directory has a name no target can have; those of a killed process are removed by
        the next one that works there.
Rule 2: whoever changes what is in a parent holds its lock.
Rule 3: a scratch directory is locked while it is in use. Where the parent has no lock, as where a
        backup goes, those that are not locked are removed.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from holon.adapters.system.private_file import sync_folder

SCRATCH_PREFIX: Final = ".holon-new-"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch_in(parent: Path) -> Iterator[Path]:
    """Lend an empty private directory inside `parent`; afterwards it is gone, unless moved."""
    scratch, lock = _locked_scratch(parent)
    try:
        yield scratch
    finally:
        remove_tree(scratch)
        os.close(lock)


def _locked_scratch(parent: Path) -> tuple[Path, int]:
    while True:
        scratch = parent / f"{SCRATCH_PREFIX}{os.urandom(8).hex()}"
        scratch.mkdir(mode=0o700)
        lock = os.open(scratch, _FOLDER)
        with suppress(OSError):  # of a file system without locks: nothing is removed there
            fcntl.flock(lock, fcntl.LOCK_EX)
        if scratch.is_dir():
            return scratch, lock
        os.close(lock)  # it was removed before it was locked


def place(scratch: Path, target: Path) -> None:
    """Give a complete directory its name; raises OSError where something has it already."""
    if os.path.lexists(target):
        raise FileExistsError(f"{target} is already there")
    scratch.rename(target)
    sync_folder(target.parent)


def remove_tree(path: Path) -> None:
    """Remove a directory, or only the link where it is one. What is not there is fine."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(path.stat(follow_symlinks=False).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def sweep_scratch(parent: Path) -> None:
    """Remove what killed processes left. The caller holds the parent's lock."""
    for name in os.listdir(parent):
        if name.startswith(SCRATCH_PREFIX):
            remove_tree(parent / name)


def sweep_abandoned(parent: Path) -> None:
    """Remove what killed processes of this user left in a parent that has no lock."""
    with suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(SCRATCH_PREFIX):
                _remove_if_abandoned(parent / name)


def _remove_if_abandoned(scratch: Path) -> None:
    with suppress(OSError):  # it is in use, gone by now, or not ours
        lock = os.open(scratch, _FOLDER)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(scratch)
        finally:
            os.close(lock)
