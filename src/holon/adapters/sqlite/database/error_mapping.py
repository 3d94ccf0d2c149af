"""Map SQLite errors to the errors of the store port.

Owns:  finding the schema's name of a violated constraint; the one place where an apsw error becomes
       an error of the port.
Rule 1: checks and triggers name themselves. A unique index is reported by its columns, so the names
        are looked up in the schema itself and cannot drift from it.
Rule 2: an adapter raises its port's errors and no others.
Rule 3: full, read-only and busy mean that nothing was written and the same may be tried again. Any
        other failure of a write leaves durability unknown: the store is broken.
Rule 4: SQLite reports only one way of having no room as "full". A quota, a file size limit and a
        disk that went read-only under an open file are I/O errors, told apart by errno. A write
        that fails with one of these wrote nothing that counts; a failed sync is always fatal,
        whatever its errno.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from holon.model.errors import (
    HomeInUseError,
    NotAHolonDatabaseError,
    StoreBrokenError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnwritableError,
)

_UNIQUE: Final = "UNIQUE constraint failed: "
_CHECK: Final = "CHECK constraint failed: "
_NOT_NULL: Final = "NOT NULL constraint failed: "

_UNIQUE_INDEXES: Final = """
select t.name, i.name, i.origin, group_concat(t.name || '.' || c.name, ', ' order by c.seqno)
from sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
where t.type = 'table' and i."unique" = 1
group by t.name, i.name
"""
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_WRITES: Final = frozenset(  # what is done before a commit counts; syncs are not among them
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMOPEN,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_SHMMAP,
    }
)


class ConstraintNames:
    """Names constraints for one database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._by_columns: dict[str, str] = {}
        for table, index, origin, columns in connection.execute(_UNIQUE_INDEXES):
            name = f"{table}_primary_key" if origin == "pk" else str(index)
            self._by_columns.setdefault(str(columns), name)

    def name_of(self, error: apsw.ConstraintError) -> str:
        """Return the name of the constraint that refused a statement."""
        words = str(error)
        if words.startswith(_UNIQUE):
            columns = words.removeprefix(_UNIQUE)
            return self._by_columns.get(columns, columns)
        if words.startswith(_NOT_NULL):
            return words.removeprefix(_NOT_NULL).replace(".", "_") + "_is_present"
        if words == "FOREIGN KEY constraint failed":
            return "row_refers_to_nothing"
        return words.removeprefix(_CHECK)


def running_error(error: apsw.Error, *, system_errno: int = 0) -> StoreError:
    """Return what an error means for a store that is open.

    `system_errno` is what the system said to the connection that failed.
    """
    code: int = getattr(error, "extendedresult", 0)  # absent from what SQLite did not raise itself
    match error:
        case apsw.FullError():
            return StoreFullError("the disk is full; nothing was written")
        case apsw.IOError() if code in _WRITES and system_errno in _NO_ROOM:
            return StoreFullError("there is no room left on the disk; nothing was written")
        case apsw.IOError() if code in _WRITES and system_errno == errno.EROFS:
            return _read_only()
        case apsw.ReadOnlyError() if code != apsw.SQLITE_READONLY_DBMOVED:
            return _read_only()
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError("another program holds the database; nothing was written")
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreDamagedError(f"the database is damaged: {error}")
        case _:
            return StoreBrokenError(f"the database failed: {type(error).__name__}: {error}")


def _read_only() -> StoreReadOnlyError:
    return StoreReadOnlyError("the disk is read-only; nothing was written")


def opening_error(error: apsw.Error, path: Path) -> StoreError:
    """Return what an error means while a store is being opened."""
    match error:
        case apsw.NotADBError() | apsw.CorruptError():
            return not_a_holon_database(path, f"SQLite says: {error}")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreUnwritableError(
                f"the database at {path} cannot be opened for writing ({error})",
                hint="check who owns the directory and whether its disk is mounted read-only",
            )
        case apsw.FullError():
            return StoreUnwritableError(
                f"the database at {path} cannot be opened: its disk is full",
                hint="free disk space, then start Holon again",
            )
        case apsw.BusyError() | apsw.LockedError():
            return HomeInUseError(
                f"another program holds the database at {path}",
                hint="close the other program, then start Holon again",
            )
        case _:
            return running_error(error)


def not_a_holon_database(path: Path, why: str) -> NotAHolonDatabaseError:
    """Return the error for a file that is not ours to touch."""
    return NotAHolonDatabaseError(
        f"the file at {path} is not a Holon database: {why}; it was left as it is",
        hint="move it away and restore a backup with `holon restore`, or set HOLON_HOME elsewhere",
    )


@contextmanager
def running_errors() -> Iterator[None]:
    """Map every SQLite error inside the block."""
    try:
        yield
    except apsw.Error as error:
        raise running_error(error) from error


@contextmanager
def opening_errors(path: Path) -> Iterator[None]:
    """Map every SQLite error inside the block to why the store at `path` cannot be opened."""
    try:
        yield
    except apsw.Error as error:
        raise opening_error(error, path) from error
