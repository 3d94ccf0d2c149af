"""Writes the schema of a new database from the migrations, or says that the two drifted apart.

Owns:  src/holon/adapters/sqlite/schema.sql.
Rule 1: the file holds what SQLite keeps of a database that all migrations were applied to: tables,
        then indexes, then triggers, each kind in the order in which it was made.
Rule 2: `--check` writes nothing and fails when the file differs from what would be written.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import apsw

from holon.adapters.sqlite.database.connection import open_memory
from holon.adapters.sqlite.database.migrate import SCHEMA_FILE, apply_all, known_migrations

_KEPT = """
select sql from sqlite_schema where sql is not null and name not like 'sqlite_%'
order by case type when 'table' then 1 when 'index' then 2 else 3 end, rowid
"""


def main(arguments: Sequence[str]) -> int:
    """Write the file, or compare it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args(arguments).check:
        SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
        return 0
    if SCHEMA_FILE.read_text(encoding="utf-8") == schema_text():
        return 0
    print("schema.sql is not what the migrations make: run `make docs`", file=sys.stderr)
    return 1


def schema_text() -> str:
    """Return the file as it ought to be."""
    connection = open_memory()
    steps = known_migrations()
    apply_all(connection, steps)
    return "\n".join([*_head(steps[-1].version), *_statements(connection)])


def _head(version: int) -> Iterator[str]:
    yield f"-- version {version} --"
    yield "-- What the migrations make of an empty database; `make docs` writes it. Why something"
    yield "-- is as it is stands in the migration that made it."


def _statements(connection: apsw.Connection) -> Iterator[str]:
    for (text,) in connection.execute(_KEPT):
        yield f"\n{text};"
    yield ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
