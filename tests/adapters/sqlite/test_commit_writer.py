"""Groups of commits: what is written many rows at a time comes out as if written one by one."""

from collections.abc import Iterator, Sequence
from typing import get_args

import apsw
import pytest

from holon.adapters.sqlite.database.error_mapping import ConstraintNames
from holon.adapters.sqlite.database.statements import ROWS_COUNT_MAX, Parameters, Statements
from holon.adapters.sqlite.queue import MessageChanges
from holon.adapters.sqlite.writer.commit_writer import CommitWriter, Result, row_writers
from holon.decide.events.audit import audited
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAdmits,
    Applied,
    Change,
    ClaimMessage,
    Commit,
    ConstraintRefused,
    ExpectationFailed,
    KeyAlreadyUsed,
    QueueMessage,
    RecordEvent,
    SetAgentStatus,
    SettleMessage,
)
from holon.model.errors import StoreBrokenError
from holon.model.events.event import AgentCreated
from holon.model.queue import AdmissionContext, MessageState
from holon.model.values import AgentId, MessageId
from tests.support.builders import MAIN, a_commit, a_message, an_admission, an_agent
from tests.support.memory_store import memory_connection

MANY = 2 * ROWS_COUNT_MAX + 3  # more than two statements hold


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    """A database with one agent in it."""
    opened = memory_connection()
    CommitWriter(opened).apply_group([audited(a_commit("birth", an_agent()))])
    yield opened
    opened.close()


def admissions(count: int) -> list[Commit]:
    return [an_admission(a_message(f"msg_{n}"), key=f"key-{n}") for n in range(count)]


def guarded(message_id: str) -> Commit:
    """An admission as the door makes it: only while the agent takes messages."""
    return Commit(
        commit_id=f"admit:{message_id}",
        at=a_message().created_at,
        changes=(QueueMessage(message=a_message(message_id)),),
        expects=(AgentAdmits(agent_id=MAIN),),
    )


def applied(connection: apsw.Connection, commits: Sequence[Commit]) -> list[Result]:
    return CommitWriter(connection).apply_group([audited(each) for each in commits]).results


def queued(connection: apsw.Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute("select message_id from messages order by 1")]


def assert_the_log_tells_of(connection: apsw.Connection, messages: Sequence[str]) -> None:
    """One event each, in the order they came, numbered without a gap behind the agent's birth."""
    rows = connection.execute(
        "select event_seq, json_extract(event, '$.message_id') from events"
        ' where event like \'{"kind":"message_admitted"%\' order by log_seq'
    ).fetchall()
    assert [message_id for _, message_id in rows] == list(messages)
    first = int(str(rows[0][0])) if rows else 0
    assert [seq for seq, _ in rows] == list(range(first, first + len(rows)))
    ((head,),) = connection.execute("select last_seq from event_heads").fetchall()
    ((newest,),) = connection.execute("select max(event_seq) from events").fetchall()
    assert head == newest


def test_many_admissions_come_in_in_their_order(connection: apsw.Connection) -> None:
    group = CommitWriter(connection).apply_group([audited(each) for each in admissions(MANY)])
    assert group.results == [Applied()] * MANY
    assert group.touched == {MAIN}
    rows = connection.execute("select message_id, state from messages order by seq").fetchall()
    assert rows == [(f"msg_{n}", "queued") for n in range(MANY)]
    ((waiting,),) = connection.execute("select queued_count from queues").fetchall()
    assert waiting == MANY
    assert_the_log_tells_of(connection, [f"msg_{n}" for n in range(MANY)])


def test_a_used_key_among_many_admissions_is_found_and_the_others_come_in(
    connection: apsw.Connection,
) -> None:
    commits = admissions(MANY)
    commits[20] = an_admission(a_message("msg_again"), key="key-3", digest="another")
    results = applied(connection, commits)
    assert results[20] == KeyAlreadyUsed(message_id=MessageId("msg_3"), same_body=False)
    assert results[:20] + results[21:] == [Applied()] * (MANY - 1)
    others = [f"msg_{n}" for n in range(MANY) if n != 20]
    assert queued(connection) == sorted(others)
    assert_the_log_tells_of(connection, others)


def test_a_message_no_door_may_let_in_is_refused_by_name_among_many(
    connection: apsw.Connection,
) -> None:
    commits = admissions(MANY)
    forged = a_message("msg_forged", admission_context=AdmissionContext.PUBLIC_UNAUTHENTICATED)
    commits[-1] = an_admission(forged)
    results = applied(connection, commits)
    assert results[-1] == ConstraintRefused(constraint="messages_operator_is_proven")
    assert results[:-1] == [Applied()] * (MANY - 1)


def test_what_is_queued_after_a_stop_in_the_same_group_is_refused(
    connection: apsw.Connection,
) -> None:
    stop = SetAgentStatus(
        agent_id=MAIN, status=AgentStatus.STOPPED, reason="asked for", new_generation=1
    )
    before, after = guarded("msg_before"), guarded("msg_after")
    results = applied(connection, [before, a_commit("stop", stop), after])
    assert results[:2] == [Applied(), Applied()]
    assert isinstance(results[2], ExpectationFailed)
    assert queued(connection) == ["msg_before"]
    assert_the_log_tells_of(connection, ["msg_before"])


def test_a_message_may_be_claimed_in_the_group_that_queued_it(
    connection: apsw.Connection,
) -> None:
    claim = ClaimMessage(agent_id=MAIN, message_id=MessageId("msg_0"), generation=1, passed_over=0)
    commits = [*admissions(3), a_commit("claim", claim), an_admission(a_message("msg_late"))]
    assert applied(connection, commits) == [Applied()] * 5
    ((state,),) = connection.execute(
        "select state from messages where message_id = 'msg_0'"
    ).fetchall()
    assert state == "claimed"


def test_a_known_commit_among_many_admissions_counts_once(connection: apsw.Connection) -> None:
    commits = admissions(MANY)
    applied(connection, commits[:1])
    results = applied(connection, commits)
    assert results == [Applied(replayed=True), *[Applied()] * (MANY - 1)]
    assert_the_log_tells_of(connection, [f"msg_{n}" for n in range(MANY)])


def test_an_event_of_an_agent_that_does_not_exist_is_refused_alone(
    connection: apsw.Connection,
) -> None:
    ghost = RecordEvent(agent_id=AgentId("ghost"), event=AgentCreated(status=AgentStatus.ASLEEP))
    before, after = an_admission(a_message("msg_0")), an_admission(a_message("msg_1"))
    results = applied(connection, [before, a_commit("ghost", ghost), after])
    assert results == [Applied(), ConstraintRefused(constraint="row_refers_to_nothing"), Applied()]
    assert_the_log_tells_of(connection, ["msg_0", "msg_1"])


def test_an_event_may_follow_the_birth_of_its_agent_in_one_commit(
    connection: apsw.Connection,
) -> None:
    event = RecordEvent(agent_id=AgentId("new"), event=AgentCreated(status=AgentStatus.ASLEEP))
    assert applied(connection, [a_commit("new", an_agent("new"), event)]) == [Applied()]


def test_a_change_that_cannot_be_stored_undoes_its_group_and_stops_the_writer(
    connection: apsw.Connection,
) -> None:
    applied(connection, admissions(1))
    unspeakable = SettleMessage(
        agent_id=MAIN,
        message_id=MessageId("msg_0"),
        state=MessageState.DROPPED,
        reason="a lone surrogate: \udcff",
    )
    writer = CommitWriter(connection)
    group = [an_admission(a_message("msg_1")), a_commit("bad", unspeakable)]
    results = writer.apply_group([audited(each) for each in group]).results
    assert [type(result) for result in results] == [StoreBrokenError] * 2
    assert not connection.in_transaction
    assert queued(connection) == ["msg_0"]
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
    (result,) = writer.apply_group([audited(each) for each in admissions(1)]).results
    assert isinstance(result, StoreBrokenError)
    assert writer.broken is result
    assert not connection.in_transaction


def test_every_kind_of_change_has_the_rows_it_is_written_to(connection: apsw.Connection) -> None:
    statements = Statements(connection)
    messages = MessageChanges(statements, ConstraintNames(connection))
    assert set(row_writers(statements, messages)) == set(get_args(Change))
