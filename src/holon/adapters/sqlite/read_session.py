"""What every group of reads stands on.

Owns:  one reader connection and the mapping of its errors.
Rule 1: reads are bounded, indexed and short, so they run at once on the caller's thread.
Rule 2: what is read together is read in one transaction and agrees with itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from holon.adapters.sqlite.error_mapping import running_error, running_errors
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Parameters, Row, Statements


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

    @contextmanager
    def _moment(self) -> Iterator[None]:
        with running_errors(), self._statements.moment():
            yield


def at_most(limit: int, most: int) -> int:
    """Return a limit the database may be given: to SQLite a negative one means no limit at all."""
    return max(0, min(limit, most))
