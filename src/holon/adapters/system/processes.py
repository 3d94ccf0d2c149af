"""Process settings of a long-running service, and its resource usage.

Owns:  umask, open-file limit, memory allocator settings, and the protection of memory and
       environment from other processes; reading memory and processor time.
Rule 1: commands of agents run as the same user. The process is made non-dumpable, so the kernel
        shows its memory and environment to root only; newly started processes are as readable as
        any.
Rule 2: root reads every process. So a secret is also overwritten where the kernel shows the
        environment a process was started with.
"""

import ctypes
import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from holon.model.limits import KIB, OPEN_FILES_COUNT_DEFAULT
from holon.model.record import Record

_PRIVATE: Final = 0o077
_PR_SET_DUMPABLE: Final = 4
_M_ARENA_MAX: Final = -8
_M_MMAP_THRESHOLD: Final = -3
_MAPPED_BYTES_MIN: Final = 128 * KIB  # glibc's own beginning
_STAT: Final = Path("/proc/self/stat")
_AFTER_NAME_ENV: Final = slice(47, 49)  # of /proc/PID/stat: where the environment begins and ends
_STATM: Final = Path("/proc/self/statm")
_KIB: Final = 1_024  # the unit of ru_maxrss


def become_private() -> int:
    """From now on, what we make without saying for whom is for us alone; return the umask before.

    It is what the operator's own files are made with, and so are those of agents' commands.
    """
    return os.umask(_PRIVATE)


def open_files_max() -> int:
    """How many files we may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES_COUNT_DEFAULT if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> int:
    """Let us have more files open, as far as the system lets us; return how many."""
    target = OPEN_FILES_COUNT_DEFAULT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return soft
    soft_limit = target if hard == resource.RLIM_INFINITY else min(target, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard))
    return soft_limit


def keep_one_heap() -> None:
    """Have all threads allocate from one heap; where the C library is not glibc, change nothing.

    By default each thread gets a heap of its own. What is freed in one is not used by another, and
    a service whose work moves between threads grows for days. Call it before there are threads.

    Large blocks stay outside of the heap: glibc raises the size from which on it maps a block by
    itself up to 32 MiB, and then each request body that comes and goes leaves a hole between small
    blocks that stay.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES_MIN)


def give_back_memory() -> None:
    """Return the free pages of the heap to the system, where the C library can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def become_unreadable() -> bool:
    """Let no process of the same user read our memory; leave no core files. False: not possible."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # a command may ask for its own again
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def forget_variables(names: Iterable[str]) -> None:
    """Take variables out of our environment, also out of what the kernel shows of its beginning.

    Call it before other threads run: the environment of a process is shared by all of them.
    """
    removed = [name for name in names if os.environ.pop(name, None) is not None]
    if removed:
        _overwrite(os.fsencode(name) + b"=" for name in removed)


def _overwrite(beginnings: Iterable[bytes]) -> None:
    try:
        fields = _STAT.read_bytes().rpartition(b")")[2].split()
        first, end = (int(field) for field in fields[_AFTER_NAME_ENV])
    except (OSError, ValueError):
        return
    if not 0 < first < end:  # the kernel does not tell us
        return
    # Not by /proc/self/environ: once we are unreadable, that belongs to root, also for ourselves.
    shown = ctypes.string_at(first, end - first)
    for beginning in beginnings:
        for at in _places_of(beginning, shown):
            value_end = shown.find(b"\0", at)
            value_at = at + len(beginning)
            ctypes.memset(first + value_at, ord("x"), max(0, value_end - value_at))


def _places_of(beginning: bytes, block: bytes) -> Iterable[int]:
    if block.startswith(beginning):
        yield 0
    at = block.find(b"\0" + beginning)
    while at >= 0:
        yield at + 1
        at = block.find(b"\0" + beginning, at + 1)


class ProcessUsage(Record, frozen=True, kw_only=True):
    """Memory in use right now, and processor time since the start."""

    resident_bytes: int
    cpu_s: float


def process_usage() -> ProcessUsage:
    """Look at ourselves. Where the present size cannot be read, the largest so far stands in."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
        resident_bytes = pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        resident_bytes = used.ru_maxrss * _KIB
    return ProcessUsage(resident_bytes=resident_bytes, cpu_s=used.ru_utime + used.ru_stime)
