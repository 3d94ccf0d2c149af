"""Instruction sources in rows: what is remembered of changes that others may be behind."""

import pytest

from holon.adapters.sqlite.check.checker import check_connection
from holon.adapters.sqlite.database.connection import open_memory
from holon.adapters.sqlite.database.migrate import known_migrations, migrate
from holon.adapters.sqlite.retention import Retention
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.model.commits import RecordEvent
from holon.model.events.retention import RetentionPolicy
from holon.model.guidance import (
    NoteInstructionChange,
)
from holon.model.limits import DAY_MS
from holon.model.values import AgentId
from tests.adapters.sqlite.raw_rows import a_writer, apply
from tests.support.builders import MAIN, a_source_change, a_turn, an_agent, moment

FIRST = a_source_change(a_turn("turn_1"))
SECOND = a_source_change(a_turn("turn_2"), path="memory/self.md")
CLEAN = a_source_change(a_turn("turn_3"), tainted=False)
ROWS = "select agent_id, path, turn_id, changed_at, change_count from tainted_instructions"
OTHER = AgentId("other")


async def test_the_checker_holds_the_row_against_the_log() -> None:
    connection, writer = a_writer()
    apply(
        writer,
        "born",
        an_agent(),
        an_agent(OTHER),
        NoteInstructionChange(agent_id=MAIN, event=FIRST),
    )
    connection.execute("update tainted_instructions set turn_id = 'turn_9', change_count = 2")
    apply(writer, "late", RecordEvent(agent_id=OTHER, event=SECOND))
    assert {str(each) for each in check_connection(connection).violations} == {
        "I6 main: tainted_instructions is turn_1 AGENTS.md in the log"
        " and turn_9 AGENTS.md in its row",
        "I6 other: tainted_instructions is turn_2 memory/self.md in the log, but it has no row",
    }


@pytest.mark.requirement("provenance:instruction-taint-is-shown")
def test_what_the_log_lets_go_of_stays_on_record() -> None:
    connection, writer = a_writer()
    apply(writer, "born", an_agent(), NoteInstructionChange(agent_id=MAIN, event=FIRST))
    apply(writer, "more", *(RecordEvent(agent_id=MAIN, event=CLEAN) for _ in range(9)))
    retention = Retention(connection)
    policy = RetentionPolicy(age_ms=DAY_MS, events_count_min=3, turns_count_min=1, batch_count=7)
    while retention.step(policy, now=moment(200 * DAY_MS)).more:
        pass
    assert connection.execute("select min(event_seq) from events").fetchall() > [(2,)]
    assert [row[1:3] for row in connection.execute(ROWS)] == [("AGENTS.md", "turn_1")]
    assert check_connection(connection).is_clean


def test_an_older_database_gets_its_rows_from_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    every = known_migrations()
    with monkeypatch.context() as before:
        before.setattr(
            "holon.adapters.sqlite.database.migrate.known_migrations", lambda: every[:11]
        )
        connection = open_memory()
        migrate(connection)
    connection.execute("alter table events add column turn_id text")  # today's writer fills it in
    writer = CommitWriter(connection)
    apply(writer, "born", an_agent(), an_agent(OTHER))
    told = [(MAIN, FIRST), (MAIN, SECOND), (MAIN, CLEAN), (OTHER, CLEAN)]
    apply(writer, "told", *(RecordEvent(agent_id=who, event=event) for who, event in told))
    connection.execute("alter table events drop column turn_id")
    migrate(connection)
    ((agent_id, path, turn_id, changed_at, count),) = connection.execute(ROWS).fetchall()
    assert (agent_id, path, turn_id, count) == (MAIN, "memory/self.md", "turn_2", 2)
    assert isinstance(changed_at, int)
    assert check_connection(connection).is_clean
