"""The file of a memory index: opened when it is valid, else rebuilt.

Owns:  memory.sqlite3, its log, and the marker memory.dirty of an index that is incomplete.
Rule 1: the file is derived data within reach of the agent's commands. Whatever is not exactly what
        we would have created is deleted: a foreign file, a link, another schema, damage. A link in
        place of the folder is deleted too; nothing behind it is created or removed.
Rule 2: the marker is created before anything is deleted, and removed when the index is complete. A
        file found beside a marker was unfinished, and is rebuilt. An index that was never fed stays
        absent.
"""

import os
import stat
from functools import cache
from pathlib import Path
from typing import Final

import apsw

from holon.adapters.sqlite.database.statements import Row, named_queries
from holon.model.limits import KIB, MEMORY_INDEX_CACHE_BYTES
from holon.ports.memory import MemoryIndexError

INDEX_FILE: Final = "memory.sqlite3"
DIRTY_FILE: Final = "memory.dirty"
INDEX_VERSION: Final = 1
NO_INDEX_YET: Final = "there is no index yet"
_APPLICATION_ID: Final = 0x484F4C49  # "HOLI" in the file header
_BUSY_TIMEOUT_MS: Final = 2_000
_REASON_BYTES_MAX: Final = 500
_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
_DAMAGE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.SchemaChangeError)


class DamagedIndexError(Exception):
    """What is in the file cannot be used. Never leaves the adapter."""


def is_damage(error: apsw.Error) -> bool:
    """Whether an error of SQLite means that the file is not what we made."""
    return isinstance(error, _DAMAGE)


class MemoryFile:
    """The files of one index."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / INDEX_FILE
        self.mark = folder / DIRTY_FILE

    def open(self) -> apsw.Connection:
        """Open the index as it is; raises DamagedIndexError when there is none to use."""
        if self._folder.is_symlink():
            raise DamagedIndexError("its folder is a link")
        reason = self.dirty_reason()
        if reason == NO_INDEX_YET or (reason is None and not _is_plain_file(self.path)):
            raise DamagedIndexError(NO_INDEX_YET)
        if reason is not None:
            raise DamagedIndexError("an earlier rebuild did not come to its end")
        connection = self._connected()
        try:
            self._require_ours(connection)
        except apsw.Error as error:
            connection.close()
            raise _judged(error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def make(self, reason: str) -> apsw.Connection:
        """Remove the file and make an empty index that records why."""
        try:
            if self._folder.is_symlink():
                self._folder.unlink()
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write_mark(reason)
            for name in (INDEX_FILE, f"{INDEX_FILE}-wal", f"{INDEX_FILE}-shm"):
                _remove(self._folder / name)
            _remove(self._folder / f"{INDEX_FILE}-journal")
        except OSError as error:
            raise MemoryIndexError(
                f"the memory index under {self._folder} cannot be made: {error.strerror}"
            ) from error
        try:
            return self._laid_out()
        except (apsw.Error, DamagedIndexError, UnicodeDecodeError) as error:
            # Somebody writes where we do: to begin anew once more would help no more than this.
            raise MemoryIndexError(f"the memory index cannot be written: {error}") from error

    def _laid_out(self) -> apsw.Connection:
        connection = self._connected()
        try:
            _lay_out(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def dirty_reason(self) -> str | None:
        """Why the index does not hold everything, if it does not."""
        try:
            handle = os.open(self.mark, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError:
            return "the mark cannot be read"
        try:
            return os.read(handle, _REASON_BYTES_MAX).decode(errors="replace").strip() or "marked"
        except OSError:
            return "the mark cannot be read"
        finally:
            os.close(handle)

    def clear_mark(self) -> None:
        """The index is whole."""
        _remove(self.mark)

    def size_bytes(self) -> int:
        """How much room the index takes, with what its log holds."""
        return sum(_size_bytes(self._folder / name) for name in (INDEX_FILE, f"{INDEX_FILE}-wal"))

    def _connected(self) -> apsw.Connection:
        try:
            # The folder is resolved by us, the file itself must be no link.
            real = Path(os.path.realpath(self._folder)) / INDEX_FILE
            connection = apsw.Connection(str(real), flags=_FLAGS)
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")  # losing the last moments costs a feeding
            connection.pragma("temp_store", "memory")
            # Several indexes are open at once: what each may hold of its file adds up.
            connection.pragma("cache_size", -(MEMORY_INDEX_CACHE_BYTES // KIB))
        except apsw.Error as error:
            raise _judged(error) from error
        return connection

    def _require_ours(self, connection: apsw.Connection) -> None:
        if (
            connection.pragma("application_id") != _APPLICATION_ID
            or connection.pragma("user_version") != INDEX_VERSION
        ):
            raise DamagedIndexError("it is of another version")
        if _layout(connection) != _own_layout():
            raise DamagedIndexError("its tables are not ours")

    def _write_mark(self, reason: str) -> None:
        if not _is_plain_file(self.mark):
            _remove(self.mark)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.mark, flags, 0o600)
        try:
            os.write(handle, f"{reason}\n".encode()[:_REASON_BYTES_MAX])
        finally:
            os.close(handle)


def _judged(error: apsw.Error) -> DamagedIndexError | MemoryIndexError:
    if is_damage(error):
        return DamagedIndexError(str(error))
    return MemoryIndexError(f"the memory index cannot be opened: {error}")


def _is_plain_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _size_bytes(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _remove(path: Path) -> None:
    """Remove what stands at a path: a file or a link, or a directory if it is empty."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        os.rmdir(path)


def _lay_out(connection: apsw.Connection) -> None:
    connection.pragma("application_id", _APPLICATION_ID)
    with connection:
        connection.execute(named_queries("memory_index")["schema"])
        connection.pragma("user_version", INDEX_VERSION)


def _layout(connection: apsw.Connection) -> list[Row]:
    return connection.execute(named_queries("memory_index")["laid_out"]).fetchall()


@cache
def _own_layout() -> list[Row]:
    connection = apsw.Connection(":memory:")
    try:
        _lay_out(connection)
        return _layout(connection)
    finally:
        connection.close()
