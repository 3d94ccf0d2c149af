"""From SQLite's errors to the store's.

Owns:  the one place where an apsw error becomes an error of the port.
Rule 1: an adapter raises its port's errors and no others.
Rule 2: full and busy mean that nothing was written and the same may be tried again. Whatever else
        goes wrong under a write leaves durability unknown, and then the store is broken.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holon.model.errors import (
    HomeInUseError,
    NotAHolonDatabaseError,
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnwritableError,
)


def running_error(error: apsw.Error) -> StoreError:
    """Return what an error means for a store that is open."""
    match error:
        case apsw.FullError():
            return StoreFullError("the disk is full; nothing was written")
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError("another program holds the database; nothing was written")
        case _:
            return StoreBrokenError(f"the database failed: {type(error).__name__}: {error}")


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
        hint="move it away or restore a backup, or point HOLON_HOME somewhere else",
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
