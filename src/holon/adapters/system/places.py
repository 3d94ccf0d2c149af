"""Directories of this machine.

Owns:  finding out where a path really leads, and making the directories the runtime owns.
"""

import errno
import os

from holon.ports.places import PlaceNoRoomError, PlaceRefusedError

_OWNER_ONLY = 0o700
_ONLY_FOR_NOW = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


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
                raise PlaceNoRoomError(
                    f"the directory {path!r} cannot be made: {error.strerror}"
                ) from error
            raise PlaceRefusedError(
                f"the directory {path!r} cannot be made: {error}",
                hint="check the permissions and the space under HOLON_HOME",
            ) from error

    async def resolved(self, path: str) -> str | None:
        """Return the directory a path leads to, free of symlinks."""
        return _real_directory(path)


def _real_directory(path: str) -> str | None:
    try:
        found = os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None
    return found if os.path.isdir(found) else None
