"""Rows that cannot be read or were never told of are found, and nothing breaks on them."""

from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.check.facts import Invariant


@pytest.mark.parametrize(
    ("sql", "invariant"),
    [
        (
            "drop trigger transcript_is_append_only;"
            "update transcript set data = cast(x'84ff' as text)",
            Invariant.FILE_IS_SOUND,
        ),
        (
            "drop trigger agents_archived_owe_nothing; update agents set archived = 1",
            Invariant.LOG_GIVES_ROWS,
        ),
    ],
    ids=["text that is none", "an archived agent the log knows as active"],
)
def test_what_does_not_hold_is_a_violation_and_not_a_crash(
    database: Path, sql: str, invariant: Invariant
) -> None:
    assert check_database(database).is_clean
    connection = apsw.Connection(str(database))
    connection.execute(sql)
    connection.close()
    violations = check_database(database).violations
    assert invariant in {violation.invariant for violation in violations}
