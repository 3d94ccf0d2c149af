"""Workspaces on this machine's disk.

Owns:  finding out where a path really leads and which git working tree is around it.
Rule 1: git's own files say it all: `.git` is a folder at the top of a main working tree and a file
        naming its folder at the top of a linked one. No program is run for it.
Rule 2: looking happens on a thread: a directory may be on a disk that does not answer.
"""

import os
from typing import Final

import anyio.to_thread

from holon.model.workspace import FoundPlace, PathProblem

_GIT: Final = ".git"
_POINTER_BYTES_MAX: Final = 8_192
_POINTER: Final = "gitdir: "


class SystemWorkspaceFinder:
    """Looks at the file system."""

    async def find(self, path: str) -> FoundPlace | PathProblem:
        """Return what a path leads to."""
        return await anyio.to_thread.run_sync(_find, path, abandon_on_cancel=True)


def _find(path: str) -> FoundPlace | PathProblem:
    try:
        path.encode()
        real = os.path.realpath(path, strict=True)
        real.encode()  # a real name that is no text could be neither stored nor shown
        if not os.path.isdir(real):
            return PathProblem.NOT_A_DIRECTORY
    except NotADirectoryError:
        return PathProblem.NOT_A_DIRECTORY
    except PermissionError:
        return PathProblem.UNREADABLE
    except ValueError:  # also of text that cannot be encoded
        return PathProblem.MALFORMED
    except OSError:  # nothing there, or a circle of symlinks
        return PathProblem.MISSING
    if not os.access(real, os.R_OK | os.X_OK):
        return PathProblem.UNREADABLE
    top = _working_tree(real)
    return FoundPlace(
        path=real, repository_root=top, main_root=None if top is None else _main_root(top)
    )


def _working_tree(directory: str) -> str | None:
    """Return the nearest directory from here up that git calls the top of a working tree."""
    while True:
        if _is_top(directory):
            return directory
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above


def _is_top(directory: str) -> bool:
    inside = os.path.join(directory, _GIT)
    if os.path.isdir(inside):
        return os.path.exists(os.path.join(inside, "HEAD"))  # else an empty folder of that name
    return _pointed_to(inside) is not None


def _main_root(top: str) -> str | None:
    """Return the top of the main working tree, when this one is linked to it."""
    own = _pointed_to(os.path.join(top, _GIT))
    shared = None if own is None else _first_line(os.path.join(own, "commondir"))
    if own is None or shared is None:  # the main tree itself, or a submodule
        return None
    common = os.path.realpath(os.path.join(own, shared))
    main = os.path.dirname(common)
    return main if os.path.basename(common) == _GIT and os.path.isdir(main) else None


def _pointed_to(file: str) -> str | None:
    line = _first_line(file)
    if line is None or not line.startswith(_POINTER):
        return None
    return os.path.join(os.path.dirname(file), line.removeprefix(_POINTER))


def _first_line(file: str) -> str | None:
    if not os.path.isfile(file):  # also of what would never stop being read
        return None
    try:
        with open(file, "rb") as opened:
            text = opened.read(_POINTER_BYTES_MAX).decode()
    except (OSError, ValueError):
        return None
    return text.partition("\n")[0].rstrip("\r")
