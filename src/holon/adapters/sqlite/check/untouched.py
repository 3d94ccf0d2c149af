"""Open a database for reading without changing any file.

Owns:  the three ways to read a database without writing, and the refusal of foreign files.
Rule 1: no file is created, written or removed: not the database, not its log, not the shared index.
Rule 2: a host may be running on it. Everything is read in one transaction, so the parts agree.
Rule 3: only SQLite reads the bytes. Opening the file a second time directly and closing it would
        drop the locks of a host in this process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from holon.adapters.sqlite.database.connection import APPLICATION_ID, BUSY_TIMEOUT_MS
from holon.adapters.sqlite.database.database_files import (
    record_path,
    require_log_kept,
    require_not_lost,
    require_plain_file,
)
from holon.adapters.sqlite.database.error_mapping import not_a_holon_database
from holon.adapters.sqlite.database.migrate import known_migrations
from holon.adapters.sqlite.reads import SqliteReads
from holon.model.errors import NotAHolonDatabaseError, SchemaTooNewError, StoreError

_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class OpenMode(StrEnum):
    """How to open, by the files that stand beside the database."""

    LIVE = "readonly_shm=1"  # log and index: a host runs, or ran until it was killed
    COPIED = "vfs=unix-none"  # a log alone: a copy without a running host, so no lock is needed
    AT_REST = "immutable=1"  # neither: closed cleanly, everything is in the one file


def open_mode_of(path: Path) -> OpenMode:
    """Return how the database at `path` is to be opened now."""
    if not path.with_name(f"{path.name}-wal").exists():
        return OpenMode.AT_REST
    return OpenMode.LIVE if path.with_name(f"{path.name}-shm").exists() else OpenMode.COPIED


@contextmanager
def open_untouched(path: Path) -> Iterator[apsw.Connection]:
    """Yield a connection inside one read transaction on the database at `path`."""
    require_plain_file(path)
    home = path.parents[1]
    require_not_lost(path, home)
    require_log_kept(path, record_path(home))
    if not path.is_file():
        raise NotAHolonDatabaseError(
            f"there is no database at {path}",
            hint="name the home of a host that has run once, with --home or HOLON_HOME",
        )
    connection = _connected(path)
    try:
        _require_known(_read_version(connection, path), path)
        yield connection
    finally:
        connection.close()


@contextmanager
def untouched_reads(path: Path) -> Iterator[SqliteReads]:
    """Yield the reads of a store on the database at `path`."""
    with open_untouched(path) as connection:
        connection.execute("commit")  # the reads begin a transaction of their own
        yield SqliteReads(connection)


def _connected(path: Path) -> apsw.Connection:
    try:
        return _connect(path)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise not_a_holon_database(path, f"SQLite says: {error}") from error
    except apsw.Error as error:
        raise StoreError(
            f"the database at {path} cannot be read ({error})",
            hint="check who owns it and its directory",
        ) from error


def _connect(path: Path) -> apsw.Connection:
    try:
        return _begin(path, open_mode_of(path))
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # A host started or ended between the look at the files and the opening: look again.
        return _begin(path, open_mode_of(path))
    except apsw.ProtocolError:
        # A host was killed after it began a new log and before it said so in the index, and none
        # has come since: it would have answered meanwhile. The files are as good as a copy.
        return _begin(path, OpenMode.COPIED)


def _begin(path: Path, manner: OpenMode) -> apsw.Connection:
    name = f"file:{quote(str(path.absolute()))}?mode=ro&{manner}"
    connection = apsw.Connection(name, flags=_FLAGS)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # nor is a log removed
        connection.pragma("temp_store", "memory")
        if manner is OpenMode.COPIED:
            connection.pragma("locking_mode", "exclusive")  # keeps the log's index in memory
        connection.execute("begin")
        connection.execute("select count(*) from sqlite_schema").fetchall()
    except apsw.Error:
        connection.close()
        raise
    return connection


def _read_version(connection: apsw.Connection, path: Path) -> int:
    if int(str(connection.pragma("application_id"))) != APPLICATION_ID:
        raise not_a_holon_database(path, "it belongs to another program")
    return int(str(connection.pragma("user_version")))


def _require_known(version: int, path: Path) -> None:
    newest = known_migrations()[-1].version
    if version > newest:
        raise SchemaTooNewError(
            f"the database at {path} has schema version {version}, and this Holon knows versions"
            f" up to {newest}; it was left as it is",
            hint="use the Holon that wrote it",
        )
    if version < newest:
        raise NotAHolonDatabaseError(
            f"the database at {path} has schema version {version}; this Holon checks {newest}",
            hint="start the host once, which brings the database up to date, then check again",
        )
