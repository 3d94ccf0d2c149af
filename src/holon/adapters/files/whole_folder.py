"""Directories that appear whole or not at all.

Owns:  scratch directories beside their target, the rename that makes them count, and removal.
Rule 1: a scratch directory has a name no target can have; those of a killed process are removed by
        the next one that works there.
Rule 2: whoever changes what is in a parent holds its lock.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from holon.adapters.system.private_file import sync_folder

SCRATCH_PREFIX: Final = ".holon-new-"


@contextmanager
def scratch_in(parent: Path) -> Iterator[Path]:
    """Lend an empty private directory inside `parent`; afterwards it is gone, unless moved."""
    scratch = parent / f"{SCRATCH_PREFIX}{os.urandom(8).hex()}"
    scratch.mkdir(mode=0o700)
    try:
        yield scratch
    finally:
        remove_tree(scratch)


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
