"""Groups of commits that cannot be written: undone as a whole, and told to all in them."""

from collections.abc import Iterator
from typing import get_args

import apsw
import pytest

from holon.adapters.sqlite.database.error_mapping import ConstraintNames
from holon.adapters.sqlite.database.statements import Parameters, Statements
from holon.adapters.sqlite.queue import MessageChanges
from holon.adapters.sqlite.writer.commit_writer import CommitWriter, row_writers
from holon.decide.events.audit import audited
from holon.model.commits import (
    Change,
    SettleMessage,
)
from holon.model.errors import StoreBrokenError
from holon.model.queue import MessageState
from holon.model.values import MessageId
from tests.support.builders import MAIN, a_commit, a_message, an_admission, an_agent
from tests.support.memory_store import memory_connection


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    """A database with one agent in it."""
    opened = memory_connection()
    CommitWriter(opened).apply_group([audited(a_commit("birth", an_agent()))])
    yield opened
    opened.close()


def test_a_change_that_cannot_be_stored_undoes_its_group_and_stops_the_writer(
    connection: apsw.Connection,
) -> None:
    writer = CommitWriter(connection)
    writer.apply_group([audited(an_admission(a_message("msg_0")))])
    unspeakable = SettleMessage(
        agent_id=MAIN,
        message_id=MessageId("msg_0"),
        state=MessageState.DROPPED,
        reason="a lone surrogate: \udcff",
    )
    group = [an_admission(a_message("msg_1")), a_commit("bad", unspeakable)]
    results = writer.apply_group([audited(each) for each in group]).results
    assert [type(result) for result in results] == [StoreBrokenError] * 2
    assert not connection.in_transaction
    assert connection.execute("select message_id from messages").fetchall() == [("msg_0",)]
    assert writer.apply_group([audited(an_admission(a_message("msg_2")))]).results == [results[0]]


def test_a_bug_while_a_group_is_made_durable_is_told_and_not_raised(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = CommitWriter(connection)
    plain = Statements.run

    def forgetful(statements: Statements, sql: str, parameters: Parameters = ()) -> None:
        if sql == "commit":
            raise MemoryError
        plain(statements, sql, parameters)

    monkeypatch.setattr(Statements, "run", forgetful)
    (result,) = writer.apply_group([audited(an_admission(a_message("msg_0")))]).results
    assert isinstance(result, StoreBrokenError)
    assert writer.broken is result
    assert not connection.in_transaction


def test_every_kind_of_change_has_the_rows_it_is_written_to(connection: apsw.Connection) -> None:
    statements = Statements(connection)
    messages = MessageChanges(statements, ConstraintNames(connection))
    assert set(row_writers(statements, messages)) == set(get_args(Change))
