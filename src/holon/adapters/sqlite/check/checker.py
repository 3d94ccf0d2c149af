"""The invariant checker: verify a database against every invariant.

Owns:  the table of checks, and running them.
Rule 1: a check changes nothing on disk (check/untouched). A host may be running.
Rule 2: without a moment from the caller, deadlines are judged by the newest commit: a host that was
        down has not missed a deadline by being down.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import apsw

from holon.adapters.sqlite.check.events import check_admitted, check_logs
from holon.adapters.sqlite.check.facts import (
    Acked,
    CheckReport,
    Facts,
    Invariant,
    Violation,
    owners_of,
)
from holon.adapters.sqlite.check.features import (
    check_skills,
    check_timers,
    check_waits,
    check_workspaces,
)
from holon.adapters.sqlite.check.rows import (
    check_briefs,
    check_claims,
    check_file,
    check_one_turn_each,
    check_provenance,
    check_tasks,
    check_ticks,
    check_work_items,
)
from holon.adapters.sqlite.check.turns import check_calls, check_closures
from holon.adapters.sqlite.check.untouched import OpenMode, open_mode_of, open_untouched
from holon.model.values import from_micros, to_micros

Check: TypeAlias = Callable[[Facts], Iterator[Violation]]

CHECKS: Final[tuple[Check, ...]] = (
    check_file,
    check_briefs,
    check_admitted,  # I1
    check_one_turn_each,  # I2
    check_logs,  # I3, I5, I6, I11
    check_claims,  # I4
    check_waits,  # I7
    check_tasks,  # I8
    check_work_items,  # I8
    check_calls,  # I9
    check_ticks,  # I10
    check_closures,  # I11
    check_provenance,  # I12
    check_timers,  # I13
    check_workspaces,  # I14
    check_skills,  # I15
)
COUNTED: Final = (
    "agents",
    "messages",
    "turns",
    "tool_calls",
    "events",
    "briefs",
    "work_items",
    "tasks",
    "timers",
    "waits",
    "wake_hints",
    "external_triggers",
    "workspaces",
    "workspace_occupancies",
    "skill_activations",
    "commits",
)
VIOLATIONS_PER_CHECK_MAX: Final = 200
_EARLIEST: Final = to_micros(datetime.min.replace(tzinfo=UTC))
_LATEST: Final = to_micros(datetime.max.replace(tzinfo=UTC))
_LOOKS_MAX: Final = 3


def check_database(path: Path, *, now: datetime | None = None, acked: Acked = ()) -> CheckReport:
    """Check every invariant over the database at `path`, or raise a StoreError if it is not one.

    `acked` are messages whose admission was acknowledged: they must exist (I1). Where the
    agent of each is given too, what another agent has pruned excuses nothing.
    """
    for _ in range(_LOOKS_MAX):
        manner = open_mode_of(path)
        report = _look(path, now=now, acked=acked)
        if manner is OpenMode.LIVE or open_mode_of(path) is manner:
            break  # else a host came up meanwhile, and what was read may be torn
    return report


def _look(path: Path, *, now: datetime | None, acked: Acked) -> CheckReport:
    with open_untouched(path) as connection:
        return check_connection(connection, now=now, acked=acked, name=str(path))


def check_connection(
    connection: apsw.Connection,
    *,
    now: datetime | None = None,
    acked: Acked = (),
    name: str = ":memory:",
) -> CheckReport:
    """Check every invariant over a database that is open already and of the current schema."""
    unreadable: list[Violation] = []
    as_of = to_micros(now) if now is not None else _newest_commit(connection, unreadable)
    facts = Facts(connection, as_of, owners_of(acked))
    counts = {table: _count(connection, table, unreadable) for table in COUNTED}
    return CheckReport(
        database=name,
        schema_version=int(str(connection.pragma("user_version"))),
        as_of=None if as_of is None else from_micros(as_of),
        counts={table: count for table, count in counts.items() if count is not None},
        violations=(*unreadable, *(v for check in CHECKS for v in _run(check, facts))),
    )


def _run(check: Check, facts: Facts) -> Iterator[Violation]:
    """Run one check; what cannot be read and was not foreseen ends it: that is a violation too."""
    try:
        yield from islice(check(facts), VIOLATIONS_PER_CHECK_MAX)
    except Exception as error:  # noqa: BLE001 - named boundary: a damaged row may hold anything
        yield _unreadable(check.__name__.removeprefix("check_"), error)


def _unreadable(subject: str, error: Exception) -> Violation:
    """What stopped us from reading on. Only SQLite's own words need no name of their class."""
    detail = str(error) if isinstance(error, apsw.Error) else f"{type(error).__name__}: {error}"
    return Violation(invariant=Invariant.FILE_IS_SOUND, subject=subject, detail=detail)


def _newest_commit(connection: apsw.Connection, unreadable: list[Violation]) -> int | None:
    newest = _number(connection, "select max(applied_at) from commits", "commits", unreadable)
    if newest is None or not _EARLIEST <= newest <= _LATEST:  # damage may leave any number there
        return None
    return newest


def _count(connection: apsw.Connection, table: str, unreadable: list[Violation]) -> int | None:
    return _number(connection, f"select count(*) from {table}", table, unreadable)


def _number(
    connection: apsw.Connection, sql: str, table: str, unreadable: list[Violation]
) -> int | None:
    """Return the one number a query gives; a table that cannot be read is a finding."""
    try:
        (number,) = connection.execute(sql).fetchall()[0]
    except apsw.Error as error:
        unreadable.append(_unreadable(table, error))
        return None
    return number if isinstance(number, int) else None
