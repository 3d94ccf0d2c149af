"""Running statements on one connection.

Owns:  the cursor, and what a statement that should have met a row means when it met none.
Rule 1: a statement is always run to its end, so that no read transaction is left open by accident.
Rule 2: rows of one kind are inserted many at a time: a statement costs more than a short row.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final, TypeAlias

import apsw

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[int | float | bytes | str | None, ...]
Parameters: TypeAlias = Sequence[Value] | Mapping[str, Value]
ROWS_COUNT_MAX: Final = 16  # in one statement


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
