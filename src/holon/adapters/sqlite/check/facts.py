"""What every check is given, and how it reads rows.

Owns:  the facts of one check run, and typed access to rows.
"""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import apsw

from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.model.ids import AgentId, MessageId

Row: TypeAlias = tuple[str | int | float | bytes | None, ...]
Acked: TypeAlias = Collection[MessageId] | Mapping[MessageId, AgentId]
_NOBODY_SAID: Final[Mapping[str, str | None]] = MappingProxyType({})


class Facts(NamedTuple):
    """One database at one moment, and what the caller knows about it."""

    connection: apsw.Connection
    as_of: int | None = None  # whole microseconds; deadlines are judged by it
    # Messages somebody was told were admitted, each with its agent if that is known.
    acked: Mapping[str, str | None] = _NOBODY_SAID

    def rows(self, sql: str, parameters: tuple[str | int | None, ...] = ()) -> Iterator[Row]:
        """Yield the rows of a query."""
        for row in self.connection.execute(sql, parameters):
            yield tuple(row)

    def texts(
        self, sql: str, parameters: tuple[str | int | None, ...] = ()
    ) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a query with every column as text; nothing becomes ''."""
        for row in self.rows(sql, parameters):
            yield tuple("" if value is None else str(value) for value in row)

    def report(self, invariant: Invariant, sql: str) -> Iterator[Violation]:
        """Yield a violation for every row (subject, detail) of a query."""
        for subject, detail in self.texts(sql):
            yield Violation(invariant=invariant, subject=subject, detail=detail)


def owners_of(acked: Acked) -> Mapping[str, str | None]:
    """Return each message with its agent, as far as the caller knows it."""
    owners: dict[str, str | None] = dict.fromkeys(acked)
    if isinstance(acked, Mapping):
        owners.update(acked.items())
    return owners
