"""Files inside a root that nothing can escape.


Contract: paths are relative to the root; a path that leaves it, by `..`, by being absolute or
through a symlink, raises PathEscapeError and touches nothing. Only regular files are read or
written. `replace_all` puts every change in place or none: what was there before is restored when a
later step fails; each file appears whole or not at all. A change that says what it was made for
raises FileChangedError, and changes nothing, when the path holds something else by now.

Contract: `resolved` follows every symlink and returns the absolute path of an existing directory,
or None when the path leads to none. `ensure` makes a directory and its parents, for the owner only;
one that is already there is left as it is; one that cannot be made raises PlaceRefusedError, and
its PlaceNoRoomError when that is only for now.

Contract: `find` takes an absolute path and follows every symlink. It returns the directory by its
real name, with the top of the git working tree it lies in and, where that is a linked worktree, the
top of the repository's main one; or else why there is no place to work in. It changes nothing and
never raises for what is on the disk.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from holon.model.errors import HolonError
from holon.model.record import Record
from holon.model.workspaces import FoundPlace, PathProblem


class PathEscapeError(HolonError):
    """A path leads out of the root, or through a symlink."""

    code = "path_escape"


class FileRefusedError(HolonError):
    """A file cannot be read or written as asked: missing, no regular file, too large."""

    code = "file_refused"


class FileChangedError(FileRefusedError):
    """A file is not what it was when its change was worked out."""

    code = "file_changed"


class Unseen(Enum):
    """What a path held when nobody looked."""

    ANYTHING = "anything"


class StoredFile(Record, frozen=True, kw_only=True):
    """A regular file as it is."""

    content: bytes
    mode: int


class FileChange(Record, frozen=True, kw_only=True):
    """What a path shall hold: the new file, or nothing; and what it must hold until then."""

    path: str
    after: StoredFile | None
    before: StoredFile | Unseen | None = Unseen.ANYTHING


class RootedFiles(Protocol):
    """The files under one root."""

    async def read(self, path: str, *, bytes_max: int) -> StoredFile | None:
        """Return a file, or None when there is none."""
        ...

    async def replace_all(self, changes: Sequence[FileChange]) -> None:
        """Make all changes, or none."""
        ...


class Files(Protocol):
    """Gives out roots."""

    def under(self, root: str) -> RootedFiles:
        """Return the files under a directory."""
        ...


class PlaceRefusedError(HolonError):
    """A directory cannot be made."""

    code = "directory_refused"


class PlaceNoRoomError(PlaceRefusedError):
    """The disk has no room for a directory, or is read-only; the same may be tried again."""

    code = "storage_full"
    hint = "free disk space under HOLON_HOME, then try again"


class Places(Protocol):
    """Where things may run."""

    async def ensure(self, path: str) -> None:
        """Make the directory if there is none."""
        ...

    async def resolved(self, path: str) -> str | None:
        """Return the directory a path leads to, free of symlinks."""
        ...


class WorkspaceFinder(Protocol):
    """Looks at directories somebody wants to work in."""

    async def find(self, path: str) -> FoundPlace | PathProblem:
        """Return what a path leads to."""
        ...
