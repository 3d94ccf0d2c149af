"""Open files inside a root directory without following links, and stamp them.

Owns:  the one way into a root: `openat2` where the kernel has it, else component by component; the
       stamp of a file: identity, size and times. It includes ctime, which a writer cannot set.
Rule 1: no symlink is followed at any component, and no `..` is passed to the kernel.
Rule 2: an opened file is held by its descriptor, so replacing a directory by a link afterwards has
        no effect.
Rule 3: a file that changed within the last tick gets no stamp: on a kernel with a coarse clock, two
        changes within one tick have the same time.
"""

import ctypes
import errno
import os
import platform
import stat
import time
from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias

from holon.ports.workspaces import FileRefusedError, PathEscapeError

_OPENAT2_NUMBER: Final = 437  # the same on every architecture since it was added
_RESOLVE: Final = 0x02 | 0x04 | 0x08  # NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_RETRY_COUNT_MAX: Final = 16
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OUTSIDE: Final = frozenset({errno.EXDEV, errno.ELOOP})
_NO_OPENAT2: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL})
Stamp: TypeAlias = tuple[int, int, int, int, int]
TICK_NS: Final = 20_000_000  # longer than the tick of any kernel


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def parts_of(path: str) -> tuple[str, ...]:
    """Return a relative path's components, or raise PathEscapeError."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise PathEscapeError(f"{path!r} is not inside the root")
    if not parts:
        raise FileRefusedError(f"{path!r} names no file")
    return parts


def open_root(root: str) -> int:
    """Open a root directory. Its own path is trusted and may contain links."""
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileRefusedError(f"the root cannot be opened: {error.strerror}") from error


def open_beneath(root: int, parts: Sequence[str], flags: int) -> int:
    """Open an existing file or directory beneath a root. Raises OSError or PathEscapeError."""
    flags |= os.O_CLOEXEC
    try:
        if _has_openat2():
            return _openat2(root, "/".join(parts), flags)
        return _walk(root, parts, flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in _OUTSIDE:
            raise PathEscapeError(f"{'/'.join(parts)!r} leads through a link") from error
        raise


def open_folder(root: int, parts: Sequence[str]) -> int:
    """Open a directory beneath a root; no parts mean the root itself."""
    return open_beneath(root, parts, os.O_RDONLY | os.O_DIRECTORY) if parts else os.dup(root)


def _walk(root: int, parts: Sequence[str], flags: int) -> int:
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            inner = _open_inner(folder, part, _FOLDER)
            os.close(folder)
            folder = inner
        return _open_inner(folder, parts[-1], flags)
    finally:
        os.close(folder)


def _open_inner(folder: int, name: str, flags: int) -> int:
    """Open one component; a link gives ELOOP also where the kernel reports ENOTDIR, or opens it."""
    try:
        handle = os.open(name, flags, dir_fd=folder)
    except NotADirectoryError as error:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
        raise
    if stat.S_ISLNK(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return handle


def _openat2(folder: int, path: str, flags: int) -> int:
    how = _OpenHow(flags, 0, _RESOLVE)
    for _ in range(_RETRY_COUNT_MAX):
        handle: int = _syscall()(
            ctypes.c_long(_OPENAT2_NUMBER),
            ctypes.c_int(folder),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if handle >= 0:
            return handle
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):  # the tree changed during the walk
            break
    raise OSError(number, os.strerror(number), path)


@cache
def _syscall() -> "ctypes._FuncPointer":
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call


@cache
def _has_openat2() -> bool:
    """Whether the kernel, and a sandbox if there is one, allows openat2."""
    if platform.system() != "Linux":
        return False
    probe = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(probe, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in _NO_OPENAT2:
            return False
        raise
    finally:
        os.close(probe)
    return True


def stamp_of(facts: os.stat_result) -> Stamp:
    """Return the stamp of a file."""
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def lasting_stamp(facts: os.stat_result, *, now_ns: int | None = None) -> Stamp | None:
    """Return a stamp that identifies this content later, or None when it changed just now."""
    age_ns = (time.time_ns() if now_ns is None else now_ns) - facts.st_ctime_ns
    return stamp_of(facts) if age_ns > TICK_NS else None
