"""Files below a root, directories, and what a workspace path leads to.

Contract of RootedFiles:
- paths are relative to the root. A path that leaves it, by `..`, by being absolute or through a
  symlink, raises PathEscapeError and touches nothing;
- only regular files are read or written;
- `replace_all` applies every change or none: earlier changes are undone when a later step fails.
  Each file appears whole or not at all;
- a change whose `before` differs from the file raises FileChangedError and changes nothing.

Contract of Directories:
- `resolved` follows every symlink and returns the absolute path of an existing directory, or None;
- `ensure` makes a directory and its parents, accessible to the owner only. An existing one is left
  as it is. One that cannot be made raises DirectoryRefusedError, or DirectoryNoSpaceError when the
  cause may pass.

Contract of WorkspaceFinder: `find` takes an absolute path and follows every symlink. It returns the
directory by its real name with the root of its git working tree and, in a linked worktree, the root
of the main one; or the reason why the path is no place to work in. It changes nothing and never
raises for what is on the disk.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from holon.model.errors import HolonError
from holon.model.record import Record
from holon.model.workspaces import PathProblem, ResolvedDirectory


class PathEscapeError(HolonError):
    """A path leads out of the root, or through a symlink."""

    code = "path_escape"


class FileRefusedError(HolonError):
    """A file cannot be read or written as asked: missing, no regular file, too large."""

    code = "file_refused"


class FileChangedError(FileRefusedError):
    """A file is not what it was when its change was planned."""

    code = "file_changed"


class AnyContent(Enum):
    """The previous content of a path, when any content is accepted."""

    ANYTHING = "anything"


class StoredFile(Record, frozen=True, kw_only=True):
    """A regular file: its content and mode."""

    content: bytes
    mode: int


class FileChange(Record, frozen=True, kw_only=True):
    """The file a path shall hold, or None; and what it must hold before the change."""

    path: str
    after: StoredFile | None
    before: StoredFile | AnyContent | None = AnyContent.ANYTHING


class RootedFiles(Protocol):
    """The files under one root."""

    async def read(self, path: str, *, bytes_max: int) -> StoredFile | None:
        """Return a file, or None when it does not exist."""
        ...

    async def replace_all(self, changes: Sequence[FileChange]) -> None:
        """Make all changes, or none."""
        ...


class Files(Protocol):
    """Gives out roots."""

    def under(self, root: str) -> RootedFiles:
        """Return the files under a directory."""
        ...


class DirectoryRefusedError(HolonError):
    """A directory cannot be made."""

    code = "directory_refused"


class DirectoryNoSpaceError(DirectoryRefusedError):
    """The disk has no room for a directory, or is read-only; the same may be tried again."""

    code = "storage_full"
    hint = "free disk space under HOLON_HOME, then try again"


class Directories(Protocol):
    """Where things may run."""

    async def ensure(self, path: str) -> None:
        """Make the directory if it does not exist."""
        ...

    async def resolved(self, path: str) -> str | None:
        """Return the directory a path leads to, free of symlinks."""
        ...


class WorkspaceFinder(Protocol):
    """Inspects a directory an agent is to work in."""

    async def find(self, path: str) -> ResolvedDirectory | PathProblem:
        """Return what a path leads to."""
        ...
