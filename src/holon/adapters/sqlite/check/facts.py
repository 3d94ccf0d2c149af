"""Violations, the check report, and row access for checks.

Owns:  the violation, the report and the readable names of the invariants; the facts of one check
       run.
Rule 1: a violation is one line: which rule, for which object, and how.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import apsw

from holon.model.record import Record
from holon.model.values import AgentId, Instant, MessageId

Row: TypeAlias = tuple[str | int | float | bytes | None, ...]
Acked: TypeAlias = Collection[MessageId] | Mapping[MessageId, AgentId]
_NOBODY_SAID: Final[Mapping[str, str | None]] = MappingProxyType({})


class Invariant(StrEnum):
    """The rules a Holon database keeps, whatever was killed and whenever."""

    ADMITTED_STAYS = (
        "I1"  # every admitted message exists and is counted, or the log shows how it ended
    )
    ONE_TURN_EACH = "I2"  # a message settles at most one turn
    ENDS_ARE_FINAL = "I3"  # nothing moves after its end
    CLAIMS_ARE_HELD = "I4"  # a claimed message has an open turn and the agent's own generation
    LOG_IS_GAPLESS = "I5"  # event_seq runs floor+1 … last without a gap
    LOG_GIVES_ROWS = "I6"  # folding the log gives the states the rows hold
    WAITS_CAN_END = (
        "I7"  # every open wait has a live source or a deadline to come, and holds its item
    )
    TASKS_ARE_KNOWN = "I8"  # every task and work item has a usable record
    CALLS_ARE_PAIRED = "I9"  # every tool use has one call, every call at most one result
    TICKS_COALESCE = "I10"  # at most one pending tick per key and per timer
    CLOSURES_HOLD = "I11"  # a closure fits the rows it was drawn from
    PROVENANCE_HOLDS = "I12"  # no message has more authority than its surface gives
    TIMERS_COME_ROUND = "I13"  # an active timer stands on the grid its schedule names
    PLACES_ARE_HELD = "I14"  # an agent is in one attached workspace at most, and holds its root
    SKILLS_ARE_USED = "I15"  # a skill in use belongs to the open turn, or to a completed one
    FILE_IS_SOUND = (
        "file"  # what SQLite itself can say about the file, and what cannot be read at all
    )


class Violation(Record, frozen=True, kw_only=True):
    """One broken rule. `subject` is an agent, or the object the rule is about."""

    invariant: Invariant
    subject: str
    detail: str

    def __str__(self) -> str:
        """Return one line, safe for a terminal whatever the database holds."""
        line = f"{self.invariant} {self.subject}: {self.detail}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


class CheckReport(Record, frozen=True, kw_only=True):
    """The result of one check. `as_of` is the moment deadlines were judged by."""

    database: str
    schema_version: int
    as_of: Instant | None
    counts: dict[str, int]
    violations: tuple[Violation, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every rule holds."""
        return not self.violations


class Facts(NamedTuple):
    """One database at one moment, and what the caller knows about it."""

    connection: apsw.Connection
    as_of: int | None = None  # whole microseconds; deadlines are judged by it
    # Messages whose admission was acknowledged, each with its agent if that is known.
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
