"""What a process that serves for long sets for itself.

Owns:  the umask and the number of files it may have open.
"""

import os
import resource
from typing import Final

from holon.model.limits import OPEN_FILES_COUNT_DEFAULT

_PRIVATE: Final = 0o077


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
    wanted = OPEN_FILES_COUNT_DEFAULT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
