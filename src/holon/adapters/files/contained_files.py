"""The files port on disk: read and replace files inside a root.

Owns:  reading and replacing regular files below a root, off the event loop.
Rule 1: only regular files are opened for reading: a FIFO, a device or a socket is refused by its
        kind.
Rule 2: a replacement that has begun is completed even when its caller is cancelled.
"""

import os
import stat
from collections.abc import Callable, Sequence

import anyio.to_thread

from holon.adapters.files.openat import open_beneath, open_root, parts_of
from holon.ports.workspaces import FileChange, FileRefusedError, RootedFiles, StoredFile


def _unwatched(step: str) -> None:
    del step


class ContainedFiles:
    """Opens roots. `watch` is called before every step of a replacement."""

    def __init__(self, *, watch: Callable[[str], None] = _unwatched) -> None:
        self._watch = watch

    def under(self, root: str) -> RootedFiles:
        """Return the files under a directory."""
        return FilesUnderRoot(root, watch=self._watch)


class FilesUnderRoot:
    """The files under one root."""

    def __init__(self, root: str, *, watch: Callable[[str], None] = _unwatched) -> None:
        self._root = root
        self._watch = watch

    async def read(self, path: str, *, bytes_max: int) -> StoredFile | None:
        """Return a file, or None when there is none."""
        return await anyio.to_thread.run_sync(self._read, path, bytes_max)

    async def replace_all(self, changes: Sequence[FileChange]) -> None:
        """Make all changes, or none."""
        await anyio.to_thread.run_sync(self._replace_all, changes)

    def _read(self, path: str, bytes_max: int) -> StoredFile | None:
        parts = parts_of(path)
        root = open_root(self._root)
        try:
            return _read_beneath(root, parts, path=path, bytes_max=bytes_max)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _refused(path, "read", error) from error
        finally:
            os.close(root)

    def _replace_all(self, changes: Sequence[FileChange]) -> None:
        from holon.adapters.files.replacement import Replacement  # most runs only read

        if len({parts_of(change.path) for change in changes}) != len(changes):
            raise FileRefusedError("a path is named twice")
        root = open_root(self._root)
        try:
            Replacement(root, self._watch).make(changes)
        except OSError as error:
            named = error.filename if isinstance(error.filename, str) else "the files"
            raise _refused(named, "replaced", error) from error
        finally:
            os.close(root)


def _read_beneath(root: int, parts: Sequence[str], *, path: str, bytes_max: int) -> StoredFile:
    _require_regular(_facts(root, parts), path=path, bytes_max=bytes_max)
    handle = open_beneath(root, parts, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        _require_regular(facts, path=path, bytes_max=bytes_max)
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise FileRefusedError(f"{path!r} is larger than {bytes_max} bytes")
    return StoredFile(content=content, mode=stat.S_IMODE(facts.st_mode))


def _facts(root: int, parts: Sequence[str]) -> os.stat_result:
    """Look at a file without opening it: to open a device can be to use it."""
    place = open_beneath(root, parts, os.O_PATH)
    try:
        return os.fstat(place)
    finally:
        os.close(place)


def _require_regular(facts: os.stat_result, *, path: str, bytes_max: int) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise FileRefusedError(f"{path!r} is no regular file")
    if facts.st_size > bytes_max:
        raise FileRefusedError(f"{path!r} is larger than {bytes_max} bytes")


def _refused(path: str, deed: str, error: OSError) -> FileRefusedError:
    return FileRefusedError(
        f"{path!r} cannot be {deed}: {error.strerror}",
        hint="check its permissions and the disk",
    )
