"""Files inside a root that nothing can escape.

Contract: paths are relative to the root; a path that leaves it, by `..`, by being absolute or
through a symlink, raises PathEscapeError and touches nothing. Only regular files are read or
written. `replace_all` puts every change in place or none: what was there before is restored when a
later step fails; each file appears whole or not at all. A change that says what it was made for
raises FileChangedError, and changes nothing, when the path holds something else by now.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from holon.model.errors import HolonError
from holon.model.record import Record


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
