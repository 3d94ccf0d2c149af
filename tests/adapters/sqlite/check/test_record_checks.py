"""Records and the columns drawn from them: what the runtime would end on is found by the check."""

from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from tests.adapters.sqlite.check.story import plant

FAULTS = [
    ("update briefs set record = '{'", "file brief_1: cannot be read: Input data was truncated"),
    ("update work_items set record = '{'", "I8 work_1: is open: Input data was truncated at $"),
    (
        "update work_items set record = json_set(record, '$.agent_id', 'other')",
        "I8 work_1: is open with the record of work_1 (other)",
    ),
    (
        "update work_items set can_run = 0",
        "I8 work_1: is open and its row says can_run = 0, against its record",
    ),
    (
        "update work_items set recheck_due_at = 5",
        "I8 work_1: is open and its row says recheck_due_at = 5, against its record",
    ),
    (
        "update work_items set open_wait_count = 0",
        "I7 work_1: counts 0 open waits, but 1 are",
    ),
    (
        "update waits set record = '{' where wait_id = 'wait_task'",
        "I7 wait_task: cannot be read: Input data was truncated at $",
    ),
    (
        """update waits set record = (select record from waits where wait_id = 'wait_task')
           where wait_id = 'wait_rest'""",
        "I7 wait_rest: has the record of wait_task (task)",
    ),
    (
        """update messages set envelope = '{"id": tru' where message_id = 'msg_hook'""",
        "I12 msg_hook: its envelope cannot be read",
    ),
    (
        "update messages set envelope = '{}' where message_id = 'msg_hook'",
        "I12 msg_hook: its envelope cannot be read: Object missing required field `id` at $",
    ),
]


@pytest.mark.parametrize(("statement", "line"), FAULTS, ids=[line for _, line in FAULTS])
def test_a_fault_is_seen_as_what_it_is(database: Path, statement: str, line: str) -> None:
    plant(database, statement)
    violations = check_database(database).violations
    assert any(str(violation).startswith(line) for violation in violations), violations
    assert len({violation.invariant for violation in violations}) == 1, violations


def test_one_envelope_that_is_not_json_does_not_hide_what_others_say(database: Path) -> None:
    plant(
        database,
        "update messages set envelope = '{' where message_id = 'msg_1'",
        """update messages set envelope = json_set(envelope, '$.trust', 'trusted_operator')
           where message_id = 'msg_hook'""",
    )
    found = " ".join(str(violation) for violation in check_database(database).violations)
    assert "I12 msg_1: its envelope cannot be read" in found
    assert "I12 msg_hook: its envelope names another origin, door or authority" in found


def test_what_no_check_foresaw_is_told_and_the_other_checks_go_on(database: Path) -> None:
    plant(
        database,
        "update turns set terminal = '{' where turn_id = 'turn_1'",
        "update briefs set record = '{'",
    )
    found = " ".join(str(violation) for violation in check_database(database).violations)
    assert "file logs: malformed JSON" in found
    assert "file brief_1: cannot be read" in found
