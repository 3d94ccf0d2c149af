"""Run named SQL statements on a connection.

Owns:  the query file format (a line `-- name --` opens a block; the text up to the next such line
       is the statement; comment lines inside are for people); typed access to rows; the cursor, and
       the error of a statement that changed no row; a read session on one connection, with its
       error mapping.
Rule 1: a value of the wrong type in a row is a fault of the query, not of the data.
Rule 2: a file is read once; statements keep one constant text, so SQLite's statement cache finds
        them.
Rule 3: a statement is always run to its end, so that no read transaction stays open.
Rule 4: rows of one kind are inserted many at a time: a statement costs more than a short row.
Rule 5: reads are bounded, indexed and short, so they run on the caller's thread.
Rule 6: what is read together is read in one transaction and is consistent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import apsw

from holon.adapters.sqlite.database.error_mapping import running_error, running_errors
from holon.ports.reads import UnknownCursorError

_NAME_LINE: Final = re.compile(r"^-- ([a-z][a-z0-9_]*) --$", re.MULTILINE)
Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[int | float | bytes | str | None, ...]
Parameters: TypeAlias = Sequence[Value] | Mapping[str, Value]
ROWS_COUNT_MAX: Final = 16  # in one statement


@cache
def named_queries(family: str) -> Mapping[str, str]:
    """Return the statements of queries/<family>.sql by their names."""
    source = Path(__file__).parents[1] / "queries" / f"{family}.sql"
    return split_queries(source.read_text(encoding="utf-8"), family=family)


def split_queries(text: str, *, family: str) -> Mapping[str, str]:
    """Return the named blocks of one file; a name given twice is a mistake in the file."""
    _, *parts = _NAME_LINE.split(text)
    queries: dict[str, str] = {}
    for name, block in zip(parts[::2], parts[1::2], strict=True):
        if name in queries:
            raise ValueError(f"{family}.sql names {name} twice")
        lines = [line for line in block.splitlines() if not line.lstrip().startswith("--")]
        queries[name] = "\n".join(lines).strip().removesuffix(";")
    return MappingProxyType(queries)


def number(value: object) -> int:
    """Return a column that holds a number."""
    assert isinstance(value, int), "the column holds a number"
    return value


def numbers(row: Sequence[object]) -> list[int]:
    """Return a row whose columns all hold numbers."""
    return [number(value) for value in row]


class ChangeRefusedError(Exception):
    """An invariant forbids the change; names the constraint. Never leaves the writer."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class Statements:
    """Runs constant SQL on one connection, from one thread at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._cursor = connection.cursor()

    def run(self, sql: str, parameters: Parameters = ()) -> None:
        """Run a statement whose rows, if any, do not matter."""
        self._cursor.execute(sql, parameters)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Return every row of a query."""
        return self._cursor.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """Return the first row of a query that has at most a few."""
        rows = self._cursor.execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def change_one(self, sql: str, parameters: Parameters, *, missing: str) -> None:
        """Run an update or delete that must meet exactly its row, or refuse the change."""
        self._cursor.execute(sql, parameters)
        if self.connection.changes() != 1:
            raise ChangeRefusedError(missing)

    def insert(self, sql: str, rows: Sequence[tuple[Value, ...]]) -> int:
        """Insert rows in order; `sql` ends with the place of the first. Return how many came in."""
        inserted = 0
        for first in range(0, len(rows), ROWS_COUNT_MAX):
            some = rows[first : first + ROWS_COUNT_MAX]
            values = [value for row in some for value in row]
            self._cursor.execute(_of_rows(sql, len(some), len(some[0])), values)
            inserted += self.connection.changes()
        return inserted

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Hold one read transaction, so that everything read inside agrees."""
        self._cursor.execute("begin")
        try:
            yield
        finally:
            self._cursor.execute("commit")


@cache  # a few statements, each with at most as many rows as go into one
def _of_rows(insert_one: str, rows_count: int, values_count: int) -> str:
    row = ", ".join("?" * values_count)
    return insert_one + f", ({row})" * (rows_count - 1)


class ReadSession:
    """Runs named queries of one family after another on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._statements = Statements(connection)
        self._sql = {
            **named_queries("reads_agents"),
            **named_queries("reads_history"),
            **named_queries("reads_memory"),
            **named_queries("reads_queue"),
            **named_queries("reads_records"),
            **named_queries("reads_skills"),
            **named_queries("reads_surface"),
            **named_queries("reads_triggers"),
            **named_queries("reads_usage"),
            **named_queries("reads_wheel"),
            **named_queries("reads_work"),
            **named_queries("reads_working_memory"),
            **named_queries("reads_workspaces"),
        }

    def _all(self, name: str, parameters: Parameters = ()) -> list[Row]:
        try:
            return self._statements.rows(self._sql[name], parameters)
        except apsw.Error as error:
            raise running_error(error) from error

    def _one(self, name: str, parameters: Parameters = ()) -> Row | None:
        try:
            return self._statements.row(self._sql[name], parameters)
        except apsw.Error as error:
            raise running_error(error) from error

    def _cursor_place(self, name: str, agent_id: str, after: str | None) -> tuple[bool, int]:
        """Where a page goes on: whether among the open records, and from which moment."""
        if after is None:
            return True, 0
        match self._one(name, (agent_id, after)):
            case (int() as is_open, int() as moment):
                return bool(is_open), moment
            case _:
                raise UnknownCursorError(f"{agent_id} has no record {after}")

    @contextmanager
    def _moment(self) -> Iterator[None]:
        with running_errors(), self._statements.moment():
            yield


def at_most(limit: int, maximum: int) -> int:
    """Return a limit the database may be given: to SQLite a negative one means no limit at all."""
    return max(0, min(limit, maximum))
