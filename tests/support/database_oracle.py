"""What stands in a database, read from the tables themselves.

Owns:  looks at every table, or past the runtime: for tests that claim something of the whole
       database (nothing was left behind, no secret stands anywhere, nothing is stored twice), which
       no read of the store could confirm.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path

Rows = list[tuple[Any, ...]]


def whole_database(connection: apsw.Connection) -> dict[str, Rows]:
    """Every row of every table."""
    return {
        table: [tuple(row) for row in connection.execute(f'select * from "{table}"')]
        for table in _tables(connection)
    }


def whole_home(home: Path) -> dict[str, Rows]:
    """The same of a database whose host is running in this process.

    Through the host's own library: a second one in a process would let go of the host's locks.
    """
    path = str(database_path(home))
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as database:
        database.set_busy_timeout(5_000)
        return whole_database(database)


def stored_bytes(connection: apsw.Connection, needle: str) -> dict[str, int]:
    """How many bytes the largest text value of each column has that holds the needle."""
    found: dict[str, int] = {}
    for table, rows in whole_database(connection).items():
        # The longer list: computed columns are among those that are selected by *.
        columns = [str(row[1]) for row in connection.execute(f"pragma table_xinfo({table})")]
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                if isinstance(value, str) and needle in value:
                    name = f"{table}.{column}"
                    found[name] = max(found.get(name, 0), len(value.encode()))
    return found


def agent_names(connection: apsw.Connection) -> list[str]:
    """The agents there are."""
    return [str(name) for (name,) in connection.execute("select agent_id from agents")]


def commit_names(connection: apsw.Connection) -> set[str]:
    """The commits that were applied."""
    return {str(name) for (name,) in connection.execute("select commit_id from commits")}


def row_count(connection: apsw.Connection, table: str) -> int:
    """How many rows a table has."""
    (counted,) = connection.execute(f'select count(*) from "{table}"').fetchall()
    return int(str(counted[0]))


def generation_of(home: Path) -> int:
    """How often the home has changed hands."""
    with open_untouched(database_path(home)) as connection:
        found = connection.execute("select generation from home_owner").fetchall()
    return int(str(found[0][0]))


def unsettled_messages(home: Path) -> list[str]:
    """The messages of a home at rest that have not ended, and where they stand."""
    with open_untouched(database_path(home)) as connection:
        left = connection.execute("select message_id, state from messages")
        return [f"{name} is {state}" for name, state in left if state in ("queued", "claimed")]


def _tables(connection: apsw.Connection) -> list[str]:
    found = connection.execute("select name from sqlite_schema where type = 'table'")
    return sorted(str(name) for (name,) in found)
