"""Running statements on one connection.

Owns:  the cursor, and what a statement that should have met a row means when it met none.
Rule 1: a statement is always run to its end, so that no read transaction is left open by accident.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import apsw

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[int | float | bytes | str | None, ...]
Parameters: TypeAlias = Sequence[Value] | Mapping[str, Value]


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

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Hold one read transaction, so that everything read inside agrees."""
        self._cursor.execute("begin")
        try:
            yield
        finally:
            self._cursor.execute("commit")
