"""Drafts: files that are there only while a replacement is under way.

Owns:  their names, telling living ones from those of a process that was killed, and sweeping.
Rule 1: whoever makes drafts in a folder holds a shared lock on it. The system takes the lock back
        when its holder dies, so a folder that can be locked alone has leftovers only.
Rule 2: before drafts are made below the root, one in the root itself lists their folders. The next
        replacement under that root finds leftovers wherever they are.
Rule 3: only regular files with the name of a draft are ever removed, whatever a list says.
"""

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from holon.adapters.files.beneath import open_beneath, open_folder, parts_of
from holon.ports.files import FileRefusedError, PathEscapeError

DRAFT_PREFIX: Final = ".holon-draft-"
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFT: Final = re.compile(re.escape(DRAFT_PREFIX) + r"[0-9a-f]{16}")
_LIST_HEAD: Final = b"folders with drafts\0"
_LIST_BYTES_MAX: Final = 4 << 20
_TRIES_COUNT_MAX: Final = 50
_TRY_AGAIN_S: Final = 0.01


def draft_name() -> str:
    """Return a name nobody has."""
    return f"{DRAFT_PREFIX}{os.urandom(8).hex()}"


def hold_folder(folder: int, *, root: int) -> None:
    """Sweep a folder's leftovers, then lock it for as long as its handle is open."""
    with _alone(folder) as is_alone:
        if is_alone:
            _sweep(folder, root)
    for _ in range(_TRIES_COUNT_MAX):
        if _is_locked(folder, fcntl.LOCK_SH):
            return
        time.sleep(_TRY_AGAIN_S)  # somebody sweeps, which is short


def write_list(root: int, folders: Sequence[str]) -> str:
    """Write down in which folders drafts will be; return the name of the list."""
    name = draft_name()
    handle = os.open(name, NEW_FILE, 0o600, dir_fd=root)
    try:
        os.write(handle, _LIST_HEAD + b"\0".join(os.fsencode(folder) for folder in folders))
    finally:
        os.close(handle)
    return name


def _sweep(folder: int, root: int) -> None:
    for name in os.listdir(folder):
        if not _DRAFT.fullmatch(name):
            continue
        with suppress(OSError):
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                continue
            for listed in _listed(folder, name):
                _sweep_beneath(root, listed)
            os.unlink(name, dir_fd=folder)


def _sweep_beneath(root: int, path: str) -> None:
    try:
        folder = open_folder(root, parts_of(path))
    except (OSError, PathEscapeError, FileRefusedError):
        return  # it is gone, or was never ours
    try:
        with _alone(folder) as is_alone:
            if is_alone:
                for name in filter(_DRAFT.fullmatch, os.listdir(folder)):
                    with suppress(OSError):
                        os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def _listed(folder: int, name: str) -> list[str]:
    """Return the folders a draft lists, if it is a list."""
    handle = open_beneath(folder, (name,), os.O_RDONLY | os.O_NONBLOCK)
    try:
        content = os.read(handle, _LIST_BYTES_MAX)
    finally:
        os.close(handle)
    if not content.startswith(_LIST_HEAD):
        return []
    return [os.fsdecode(part) for part in content[len(_LIST_HEAD) :].split(b"\0") if part]


@contextmanager
def _alone(folder: int) -> Iterator[bool]:
    """Whether nobody else is at work in a folder, for as long as the block lasts."""
    is_alone = _is_locked(folder, fcntl.LOCK_EX)
    try:
        yield is_alone
    finally:
        if is_alone:
            fcntl.flock(folder, fcntl.LOCK_UN)


def _is_locked(folder: int, kind: int) -> bool:
    try:
        fcntl.flock(folder, kind | fcntl.LOCK_NB)
    except OSError:  # held by another, or this file system has no locks
        return False
    return True
