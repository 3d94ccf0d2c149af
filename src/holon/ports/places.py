"""Directories by their real names.

Contract: `resolved` follows every symlink and returns the absolute path of an existing directory,
or None when the path leads to none. `ensure` makes a directory and its parents, for the owner only;
one that is already there is left as it is; one that cannot be made raises PlaceRefusedError, and
its PlaceNoRoomError when that is only for now.
"""

from typing import Protocol

from holon.model.errors import HolonError


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
