"""Database connections: one writer, read-only readers, or all in memory.

Owns:  pragmas and open flags, and nothing about tables.
Rule 1: WAL with synchronous=FULL: a commit that returned survives a power cut. The other settings
        exist for tests that show what they lose.
Rule 2: SQLite never checkpoints by itself; the writer decides when.
Rule 3: a new file carries our application id from its first write, so that a half-made one is never
        taken for a foreign file.
"""

from enum import StrEnum
from pathlib import Path
from typing import Final

import apsw

from holon.model.limits import WAL_BYTES_MAX

APPLICATION_ID: Final = 0x484F4C4E  # "HOLN" in the file header
BUSY_TIMEOUT_MS: Final = 5_000
STATEMENTS_CACHED_COUNT: Final = 512  # all there are: preparing one costs more than running it
_READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class Synchronous(StrEnum):
    """How hard a commit presses its bytes to the disk."""

    FULL = "full"
    NORMAL = "normal"
    OFF = "off"


def open_writer(
    path: Path, *, synchronous: Synchronous = Synchronous.FULL, vfs: str | None = None
) -> apsw.Connection:
    """Open the one connection that writes; the file is made when there is none."""
    connection = _connect(str(path), _READ_WRITE, vfs=vfs)
    if connection.pragma("page_count") == 0:
        with connection:  # one transaction, or a power cut could leave a file without our id
            connection.pragma("auto_vacuum", "incremental")  # cannot be turned on later
            connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous.value)
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("journal_size_limit", WAL_BYTES_MAX)
    connection.pragma("foreign_keys", True)
    return connection


def open_reader(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    """Open a connection that can only look. The writer must have been opened before."""
    # Not opened read-only: such a connection could not take part in the WAL after a crash.
    connection = _connect(str(path), _READ_WRITE, vfs=vfs)
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("query_only", True)
    return connection


def open_inspector(path: Path) -> apsw.Connection:
    """Open a file that may not be ours, so that neither looking nor closing changes it."""
    connection = _connect(str(path), _READ_WRITE, vfs=None)
    leave_log(connection)
    connection.pragma("wal_autocheckpoint", 0)  # should the look have to ask for an owner
    connection.pragma("query_only", True)
    return connection


def leave_log(connection: apsw.Connection) -> None:
    """Have closing this connection write nothing: the log stays for the next start to fold back."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def open_memory() -> apsw.Connection:
    """Open a private database in memory, for readers and writer together."""
    connection = _connect(":memory:", _READ_WRITE, vfs=None)
    connection.pragma("foreign_keys", True)
    connection.pragma("application_id", APPLICATION_ID)
    return connection


def _connect(name: str, flags: int, *, vfs: str | None) -> apsw.Connection:
    connection = apsw.Connection(
        name, flags=flags, vfs=vfs, statementcachesize=STATEMENTS_CACHED_COUNT
    )
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    # Otherwise SQLite plans a statement anew for every value bound beside a partial index.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("temp_store", "memory")
    return connection
