"""Schema migrations.

Owns:  the numbered files in migrations/, `user_version`, and the check of a file before it is used.
Rule 1: a migration runs once, in one transaction together with its version number.
Rule 2: a file that is foreign, damaged, or of a newer Holon is refused and not changed.
Rule 3: an empty database gets the sum of all migrations in one step, from schema.sql. SQLite parses
        its whole schema again for every added column: that took most of the time.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from holon.adapters.sqlite.database.connection import APPLICATION_ID, open_inspector
from holon.adapters.sqlite.database.database_files import require_plain_file, require_whole_log
from holon.adapters.sqlite.database.error_mapping import not_a_holon_database, opening_errors
from holon.model.errors import SchemaTooNewError, StoreUnwritableError

SCHEMA_FILE: Final = Path(__file__).parents[1] / "schema.sql"
_SCHEMA_VERSION: Final = re.compile(r"-- version (\d+) --\n")
_FILE_NAME: Final = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_FIRST_PAGE_BYTES: Final = 4_096


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    script: str


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Return every migration this program carries, in order, numbered from 1 without a gap."""
    folder = Path(__file__).parents[1] / "migrations"
    migrations = sorted(
        Migration(int(match.group(1)), entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if (match := _FILE_NAME.fullmatch(entry.name)) is not None
    )
    assert [step.version for step in migrations] == list(range(1, len(migrations) + 1)), (
        "a number is missing"
    )
    return tuple(migrations)


@cache
def whole_schema() -> Migration:
    """Return the step that takes an empty database to the newest version."""
    script = SCHEMA_FILE.read_text(encoding="utf-8")
    named = _SCHEMA_VERSION.match(script)
    assert named is not None, "schema.sql opens with its version"
    return Migration(int(named.group(1)), script)


def inspect_file(path: Path) -> bool:
    """Raise unless `path` is absent, empty, or a database this program may migrate and use.

    Returns whether it is a database. SQLite removes the log beside a file that is empty, and undoes
    what is half made, so neither is opened to look at it.
    """
    try:
        require_plain_file(path)
        if not path.exists() or path.stat().st_size == 0 or _is_half_made(path):
            return False
        _require_own_header(path)
    except OSError as error:
        raise StoreUnwritableError(
            f"the database at {path} cannot be read ({error.strerror})",
            hint="check who owns it and its directory",
        ) from error
    with opening_errors(path):
        connection = open_inspector(path)
        try:
            version = _read_version(connection)
            # Reading the schema touches its pages, so damage shows before anything is written.
            connection.execute("select count(*) from sqlite_schema").fetchall()
            require_whole_log(connection, path)
        finally:
            connection.close()
    _require_not_newer(version, path)
    return True


def migrate(connection: apsw.Connection) -> None:
    """Apply every migration the database does not have yet: all of them, or none."""
    version = _read_version(connection)
    missing = [step for step in known_migrations() if step.version > version]
    if version == 0 and missing[-1].version == whole_schema().version:
        missing = [whole_schema()]
    if missing:
        apply_all(connection, missing)


def begin_epoch(connection: apsw.Connection) -> None:
    """Begin another timeline: numbers of the log that were given out before mean nothing in it."""
    connection.execute(
        """insert into log_epoch (id, epoch) values (1, lower(hex(randomblob(8))))
           on conflict (id) do update set epoch = excluded.epoch"""
    )


def epoch_of(connection: apsw.Connection) -> str:
    """The timeline the numbers of the log belong to; there is one."""
    ((epoch,),) = connection.execute("select epoch from log_epoch").fetchall()
    return str(epoch)


def apply_all(connection: apsw.Connection, steps: Sequence[Migration]) -> None:
    """Apply these steps, and note the version of the last: all of them, or none."""
    connection.execute("begin immediate")
    try:
        for step in steps:
            connection.execute(step.script)
        connection.pragma("user_version", steps[-1].version)
        connection.execute("commit")
    except apsw.Error:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _read_version(connection: apsw.Connection) -> int:
    return int(str(connection.pragma("user_version")))


def _is_half_made(path: Path) -> bool:
    """Whether a crash cut off the very first write; SQLite undoes that by itself on opening."""
    journal = path.with_name(f"{path.name}-journal")
    return path.stat().st_size <= _FIRST_PAGE_BYTES and (
        journal.exists() and journal.stat().st_size > 0
    )


def _require_own_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise not_a_holon_database(path, "it does not begin like an SQLite file")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise not_a_holon_database(path, "it belongs to another program")
    if _is_cut_short(path, header):
        raise not_a_holon_database(path, "its end is missing")


def _is_cut_short(path: Path, header: bytes) -> bool:
    """Whether the file is shorter than it says and no write-ahead log makes up for it."""
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size > 0:
        return False
    page_bytes = int.from_bytes(header[16:18]) if header[16:18] != b"\x00\x01" else 65_536
    page_count = int.from_bytes(header[28:32])
    return path.stat().st_size < page_count * page_bytes


def _require_not_newer(version: int, path: Path) -> None:
    newest = known_migrations()[-1].version
    if version > newest:
        raise SchemaTooNewError(
            f"the database at {path} has schema version {version}, and this Holon knows versions"
            f" up to {newest}; it was left as it is",
            hint="start the newer Holon that wrote it, or restore a backup from before the upgrade",
        )
