"""An SQLite VFS that logs writes, syncs and directory changes in order.

The shared-memory index of the log never passes through here; it does not survive a power cut.

Owns:  a VFS that passes everything on to the real one and logs what matters in a power cut: writes,
       truncations, syncs, and names created and removed.
Rule 1: the log holds whole operations in one order over all files, beginning with an empty
        directory. Which of them survive is decided in tests/support/power_states.
Rule 2: names belong to the directory, not to the file: they are durable once the directory is
        synced. SQLite does that with the first sync of a new journal or log, and when it deletes
        with sync.
"""

import os
from typing import Final, NamedTuple, TypeAlias

import apsw

_BRINGS_ITS_NAME: Final = (
    apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
)


class Write(NamedTuple):
    """Bytes of a file were written."""

    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file was cut, or grown, to a size."""

    file: int
    size: int


class Sync(NamedTuple):
    """Everything written to a file before is on the disk."""

    file: int


class Link(NamedTuple):
    """A new file got a name."""

    name: str
    file: int


class Unlink(NamedTuple):
    """A name went away."""

    name: str


class SyncNames(NamedTuple):
    """Every name that came or went before is so on the disk."""


DiskOperation: TypeAlias = Write | Truncate | Sync | Link | Unlink | SyncNames


class PowerVfs(apsw.VFS):
    """Logs what goes to disk under it. Close it when the last connection is closed."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.log: Final[list[DiskOperation]] = []
        self.syncs_left: int | None = None  # after so many, every sync fails
        self.failed_syncs: Final[list[int]] = []  # how long the log was at each
        self._files: dict[str, int] = {}
        self._file_count = 0
        super().__init__(name, base="")

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file and watch it; files without a name are nobody's after a power cut."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return apsw.VFSFile("", name, flags)
        is_new = not os.path.exists(path)
        opened = _PowerFile(self, name, flags)
        base_name = os.path.basename(path)
        if is_new or base_name not in self._files:
            self._file_count += 1
            self._files[base_name] = self._file_count
            self.log.append(Link(base_name, self._file_count))
        opened.number = self._files[base_name]
        opened.brings_its_name = is_new and bool(flags[0] & _BRINGS_ITS_NAME)
        return opened

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's
        """Delete a file."""
        super().xDelete(filename, syncdir)
        base_name = os.path.basename(filename)
        self._files.pop(base_name, None)
        self.log.append(Unlink(base_name))
        if syncdir:
            self.log.append(SyncNames())

    def require_sync_works(self) -> None:
        """Fail as a dying disk does, once the syncs that were granted are used up."""
        if self.syncs_left is None:
            return
        if self.syncs_left <= 0:
            self.failed_syncs.append(len(self.log))
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        self.syncs_left -= 1


class _PowerFile(apsw.VFSFile):
    """One open file."""

    number: int
    brings_its_name: bool

    def __init__(
        self, vfs: PowerVfs, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__("", name, flags)
        self._vfs = vfs

    def excepthook(self, *_: object) -> bool:
        """A sync that fails on purpose is reported by SQLite's own answer."""
        return True

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write bytes."""
        super().xWrite(data, offset)
        self._vfs.log.append(Write(self.number, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        """Cut the file."""
        super().xTruncate(newsize)
        self._vfs.log.append(Truncate(self.number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Sync the file, and its directory when the file is a new journal or log."""
        self._vfs.require_sync_works()
        super().xSync(flags)
        self._vfs.log.append(Sync(self.number))
        if self.brings_its_name:
            self.brings_its_name = False
            self._vfs.log.append(SyncNames())
