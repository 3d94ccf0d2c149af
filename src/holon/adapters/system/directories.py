"""Directories: user home, real paths, and the git working tree around a path.

Owns:  `~` for a process with a given environment; resolving paths and creating the directories the
       runtime owns; detecting the git working tree of a path.
Rule 1: git's own files suffice: `.git` is a folder at the top of a main working tree and a file
        naming its folder at the top of a linked one. No program is run.
Rule 2: detection runs on a thread, because a directory may be on a disk that does not answer.
"""

import errno
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread

from holon.model.workspaces import PathProblem, ResolvedDirectory
from holon.ports.workspaces import DirectoryNoSpaceError, DirectoryRefusedError

_OWNER_ONLY = 0o700
_ONLY_FOR_NOW = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
AGENTS_FOLDER: Final = ".agents"
TEMPLATES_FOLDER: Final = "templates"
_GIT: Final = ".git"
_POINTER_BYTES_MAX: Final = 8_192
_POINTER: Final = "gitdir: "


class SystemPlaces:
    """The file system's directories. Each call is one or two quick system calls."""

    async def ensure(self, path: str) -> None:
        """Make the directory if there is none."""
        if _real_directory(path) is not None:
            return  # which costs less than finding out by making it
        try:
            os.makedirs(path, mode=_OWNER_ONLY, exist_ok=True)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _ONLY_FOR_NOW:
                raise DirectoryNoSpaceError(
                    f"the directory {path!r} cannot be made: {error.strerror}"
                ) from error
            raise DirectoryRefusedError(
                f"the directory {path!r} cannot be made: {error}",
                hint="check the permissions and the space under HOLON_HOME",
            ) from error

    async def resolved(self, path: str) -> str | None:
        """Return the directory a path leads to, free of symlinks."""
        return _real_directory(path)


def _real_directory(path: str) -> str | None:
    try:
        real = os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None
    return real if os.path.isdir(real) else None


def user_home_of(environ: Mapping[str, str]) -> Path | None:
    """Return the user's home directory, or None when it is unknown."""
    named = environ.get("HOME", "")
    if named:
        return Path(named) if os.path.isabs(named) else None
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def templates_root(user_home: Path) -> Path:
    """Return where the user's templates are."""
    return user_home / AGENTS_FOLDER / TEMPLATES_FOLDER


class SystemWorkspaceFinder:
    """Looks at the file system."""

    async def find(self, path: str) -> ResolvedDirectory | PathProblem:
        """Return what a path leads to."""
        return await anyio.to_thread.run_sync(_find, path, abandon_on_cancel=True)


def _find(path: str) -> ResolvedDirectory | PathProblem:
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
    return ResolvedDirectory(
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
