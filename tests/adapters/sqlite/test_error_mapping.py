"""Which failures of a disk are waited out, and which end the host."""

import errno
from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.database.error_mapping import opening_error, running_error
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

RUNNING: list[tuple[int, int, type[StoreError]]] = [
    (apsw.SQLITE_FULL, 0, StoreFullError),
    (apsw.SQLITE_IOERR_WRITE, errno.ENOSPC, StoreFullError),
    (apsw.SQLITE_IOERR_WRITE, errno.EDQUOT, StoreFullError),
    (apsw.SQLITE_IOERR_WRITE, errno.EFBIG, StoreFullError),
    (apsw.SQLITE_IOERR_SHMSIZE, errno.ENOSPC, StoreFullError),
    (apsw.SQLITE_IOERR_WRITE, errno.EROFS, StoreReadOnlyError),
    (apsw.SQLITE_READONLY, errno.EROFS, StoreReadOnlyError),
    (apsw.SQLITE_READONLY_DBMOVED, 0, StoreBrokenError),
    (apsw.SQLITE_BUSY, 0, StoreBusyError),
    (apsw.SQLITE_LOCKED, 0, StoreBusyError),
    (apsw.SQLITE_IOERR_WRITE, errno.EIO, StoreBrokenError),
    (apsw.SQLITE_IOERR_WRITE, 0, StoreBrokenError),
    (apsw.SQLITE_IOERR_FSYNC, errno.ENOSPC, StoreBrokenError),
    (apsw.SQLITE_IOERR_FSYNC, errno.EROFS, StoreBrokenError),
    (apsw.SQLITE_IOERR_READ, errno.EIO, StoreBrokenError),
    (apsw.SQLITE_CORRUPT, 0, StoreDamagedError),
]


def said_by_sqlite(code: int) -> apsw.Error:
    """The error SQLite raises with a code."""
    error = apsw.exception_for(code)
    assert isinstance(error, apsw.Error)
    return error


@pytest.mark.requirement("hostile:quota-is-a-full-disk")
@pytest.mark.parametrize(("code", "system_errno", "meant"), RUNNING)
def test_what_a_failure_means_for_a_store_that_is_open(
    code: int, system_errno: int, meant: type[StoreError]
) -> None:
    assert type(running_error(said_by_sqlite(code), system_errno=system_errno)) is meant


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        (apsw.SQLITE_FULL, StoreUnwritableError),
        (apsw.SQLITE_READONLY, StoreUnwritableError),
        (apsw.SQLITE_CANTOPEN, StoreUnwritableError),
        (apsw.SQLITE_BUSY, HomeInUseError),
        (apsw.SQLITE_NOTADB, NotAHolonDatabaseError),
        (apsw.SQLITE_IOERR_READ, StoreBrokenError),
    ],
)
def test_what_a_failure_means_for_a_store_that_is_being_opened(
    code: int, meant: type[StoreError]
) -> None:
    told = opening_error(said_by_sqlite(code), Path("/a/home"))
    assert type(told) is meant
    assert told.hint is not None
