"""Archiving: only who has nothing left to do, for good, and no longer counted."""

import pytest

from holon.adapters.sqlite.database.statements import named_queries
from holon.adapters.sqlite.reads import SqliteReads
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from holon.model.agents import IdentityStatus
from holon.model.commits import (
    Applied,
    ArchiveAgent,
    Change,
    ClaimMessage,
    CommitOutcome,
    ConstraintRefused,
    CreateTask,
    CreateTimer,
    CreateTrigger,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
)
from holon.model.errors import StoreError
from holon.model.tasks import TaskStatus
from holon.model.work import WorkItemState
from tests.adapters.sqlite.raw_rows import a_writer, apply
from tests.support.builders import (
    MAIN,
    a_commit,
    a_hint,
    a_message,
    a_task,
    a_timer,
    a_trigger,
    a_turn,
    a_wait,
    a_work_item,
    an_agent,
)

QUEUED = QueueMessage(message=a_message())
CLAIMED = ClaimMessage(agent_id=MAIN, message_id=a_message().id, generation=1, passed_over=0)
UNFINISHED: dict[str, tuple[Change, ...]] = {
    "a queued message": (QUEUED,),
    "a claimed message": (QUEUED, CLAIMED),
    "an open turn": (QUEUED, CLAIMED, OpenTurn(turn=a_turn())),
    "a running task": (CreateTask(task=a_task()),),
    "open work": (PutWorkItem(item=a_work_item()),),
    "an active timer": (CreateTimer(timer=a_timer()),),
    "an open wait": (OpenWait(wait=a_wait()),),
    "a wake hint": (ParkWakeHint(hint=a_hint()),),
    "an address to be called by": (CreateTrigger(trigger=a_trigger()),),
}


def archive(writer: CommitWriter, commit_id: str = "archive:main") -> CommitOutcome | StoreError:
    commit = a_commit(commit_id, ArchiveAgent(agent_id=MAIN, reason="over"))
    (outcome,) = writer.apply_group([audited(commit)]).results
    return outcome


@pytest.mark.requirement("run-once:agent-ends-with-its-run")
@pytest.mark.parametrize("changes", UNFINISHED.values(), ids=UNFINISHED)
async def test_an_agent_with_something_left_stays_in_use(changes: tuple[Change, ...]) -> None:
    connection, writer = a_writer()
    apply(writer, "birth", an_agent(), *changes)
    events = connection.execute("select count(*) from events").fetchall()
    assert archive(writer) == ConstraintRefused(constraint="agents_archived_owe_nothing")
    state = await SqliteReads(connection).agents.agent(MAIN)
    assert state is not None
    assert state.identity.status is IdentityStatus.ACTIVE
    assert connection.execute("select count(*) from events").fetchall() == events


@pytest.mark.requirement("run-once:agent-ends-with-its-run")
async def test_an_archived_agent_is_kept_for_good_and_not_counted() -> None:
    connection, writer = a_writer()
    reads = SqliteReads(connection)
    done = a_work_item(state=WorkItemState.COMPLETED)
    finished = (CreateTask(task=a_task(status=TaskStatus.COMPLETED)), PutWorkItem(item=done))
    apply(writer, "birth", an_agent(), an_agent("other"), *finished)
    assert await reads.agents.agent_count(limit=9) == 2
    assert archive(writer) == Applied()
    assert archive(writer) == Applied(replayed=True)
    assert isinstance(archive(writer, "again"), ConstraintRefused)
    state = await reads.agents.agent(MAIN)
    assert state is not None
    assert (state.identity.agent_id, state.identity.status) == (MAIN, IdentityStatus.ARCHIVED)
    assert await reads.agents.agent_count(limit=9) == 1
    assert await reads.tasks.task(a_task().id) is not None


def test_counting_agents_passes_over_archived_ones_without_walking_them() -> None:
    connection, _ = a_writer()
    counting = named_queries("reads_usage")["agent_count"]
    plan = connection.execute(f"explain query plan {counting}", (9,)).fetchall()
    assert any("agents_in_use" in str(step[-1]) for step in plan)
