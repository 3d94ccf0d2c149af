"""Admitted messages: what excuses that one is gone, what does not, and what is counted of them."""

from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.model.values import MessageId
from tests.adapters.sqlite.check.story import MAIN, OTHER, plant, tell

GONE = MessageId("msg_gone")
# Retention took the first of the log of main, and one message with it.
PRUNED = (
    "update event_heads set floor_seq = 12 where agent_id = 'main'",
    "delete from events where agent_id = 'main' and event_seq <= 12",
    "update queues set admitted_count = admitted_count + 1 where agent_id = 'main'",
)
EARLIEST = "insert into commits (applied_seq, commit_id, applied_at) values (-1, 'admit:%s', 0)"
LATEST = "insert into commits (commit_id, applied_at) values ('admit:%s', 0)"


def test_a_message_whose_end_the_log_tells_may_be_gone(database: Path) -> None:
    plant(
        database,
        "delete from turns where turn_id = 'turn_1'",
        "delete from transcript where turn_id = 'turn_1'",
        "delete from tool_calls where turn_id = 'turn_1'",
        "delete from turn_evidence where turn_id = 'turn_1'",
        "delete from briefs",
        "delete from messages where message_id = 'msg_1'",
    )
    assert check_database(database, acked={MessageId("msg_1")}).violations == ()


def test_below_the_floor_nothing_is_missed(database: Path) -> None:
    plant(database, *PRUNED, EARLIEST % "msg_old")
    assert check_database(database).violations == ()
    assert check_database(database, acked={MessageId("msg_old"): MAIN}).violations == ()


@pytest.mark.requirement("check:admitted-stays")
def test_what_one_agent_pruned_excuses_nothing_of_another(database: Path) -> None:
    plant(database, *PRUNED)
    assert check_database(database, acked={GONE: MAIN}).is_clean
    (violation,) = check_database(database, acked={GONE: OTHER}).violations
    assert str(violation) == "I1 msg_gone: its admission was acknowledged, but it is gone"


def test_a_floor_excuses_nothing_when_every_message_is_accounted_for(database: Path) -> None:
    plant(database, *PRUNED[:2])  # events were pruned, but no message
    assert check_database(database).is_clean
    assert not check_database(database, acked={GONE}).is_clean


def test_no_more_are_excused_than_were_pruned(database: Path) -> None:
    plant(database, *PRUNED)
    assert check_database(database, acked={GONE}).is_clean
    both = check_database(database, acked={GONE, MessageId("msg_too")}).violations
    assert [str(violation) for violation in both] == [
        f"I1 {message_id}: its admission was acknowledged,"
        " but it is gone like 2 in all, but only 1 were pruned"
        for message_id in ("msg_gone", "msg_too")
    ]


@pytest.mark.parametrize(
    ("commit", "is_clean"),
    [(EARLIEST, True), (LATEST, False)],
    ids=["before what is left of the log", "after it"],
)
def test_a_message_admitted_after_what_the_log_still_tells_was_not_pruned(
    database: Path, commit: str, is_clean: bool
) -> None:
    admission = """insert into commits (applied_seq, commit_id, applied_at)
           values (0, 'admit:msg_timer', 0)"""  # its event is above the floor
    plant(database, *PRUNED, admission, commit % GONE)
    assert check_database(database).is_clean is is_clean


def test_a_message_the_log_tells_of_without_an_end_is_missed_despite_a_floor(
    database: Path,
) -> None:
    admitted = """
        insert into events (agent_id, event_seq, created_at, event)
        select 'main', last_seq + 1, 0, replace(
            (select event from events where event like '%message_admitted%msg_timer%'),
            'msg_timer', 'msg_gone') from event_heads where agent_id = 'main';
        update event_heads set last_seq = last_seq + 1 where agent_id = 'main';
        update queues set admitted_count = admitted_count + 1 where agent_id = 'main';
    """
    plant(database, *PRUNED, admitted)
    found = [str(violation) for violation in check_database(database, acked={GONE}).violations]
    assert "I1 msg_gone: its admission was acknowledged, but it is gone" in found


COUNTS = [
    (
        "update queues set queued_count = 0 where agent_id = 'main'",
        "I1 main: counts 0 queued messages, but 4 are",
    ),
    (
        "update queues set admitted_count = 9 where agent_id = 'main'",
        "I1 main: counts 9 admitted messages, but 6 are known",
    ),
    ("delete from queues where agent_id = 'other'", "I1 other: has no queue"),
]


@pytest.mark.parametrize(("statement", "line"), COUNTS, ids=[line for _, line in COUNTS])
def test_a_wrong_count_is_seen(database: Path, statement: str, line: str) -> None:
    plant(database, statement)
    assert [str(violation) for violation in check_database(database).violations] == [line]


def test_a_floor_does_not_excuse_a_count_below_what_is_there(database: Path) -> None:
    plant(database, *PRUNED, "update queues set admitted_count = 5 where agent_id = 'main'")
    assert [str(violation) for violation in check_database(database).violations] == [
        "I1 main: counts 5 admitted messages, but 6 are known"
    ]


def test_an_event_that_is_not_json_hides_no_message_that_is_gone(database: Path) -> None:
    plant(database, tell("other", "{"))
    found = [str(violation) for violation in check_database(database, acked={GONE}).violations]
    assert "I1 msg_gone: its admission was acknowledged, but it is gone" in found
    assert any(line.startswith("I6 other: event 5 cannot be read") for line in found)
