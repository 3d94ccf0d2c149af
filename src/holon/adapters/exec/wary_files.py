"""Opening files in a place where a command can put anything.

Owns:  the one way in which a file of a run folder is opened for reading.
Rule 1: a command knows its run folder and may make what it likes there: a folder, a pipe with a
        name, a link, a file of any size. Opening never waits and never follows a link, and what is
        no plain file is as good as none. How much is read is the reader's to bound.
Rule 2: a file that cannot be opened because we hold too many is still there: that is told apart.
Rule 3: this module is also loaded by the fork server, which sees the standard library only.
"""

import errno
import os
import stat
from typing import Final

SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # it passes by itself
WARY: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def opened_plain(path: str) -> int | None:
    """Return a handle to read from, or nothing where there is no plain file to be had."""
    try:
        file = os.open(path, os.O_RDONLY | WARY)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def opened_pipe(path: str) -> int | None:
    """Return a handle to write to a pipe with a name, or nothing when nobody reads it."""
    try:
        pipe = os.open(path, os.O_WRONLY | WARY)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    return None


def is_within_reach(path: str) -> bool:
    """Whether looking at a file says anything; not so while we have no handle to spare."""
    try:
        os.close(os.open(path, os.O_RDONLY | WARY))
    except OSError as error:
        return error.errno not in SCARCE
    return True
