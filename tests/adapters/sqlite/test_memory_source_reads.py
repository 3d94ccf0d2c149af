"""What commits leave for memory search: each record once, numbered, with what it is worth."""

from collections.abc import Mapping

import msgspec
import pytest

from holon.adapters.sqlite.reads import SqliteReads
from holon.adapters.sqlite.retention import Retention
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Applied,
    Change,
    ClaimMessage,
    CreateTask,
    OpenTurn,
    PutWorkItem,
    QueueMessage,
    SettleMessage,
    SettleTurn,
    StartToolCall,
)
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, MEMORY_TOMBSTONES_KEPT_MS
from holon.model.memory.index import MemoryKind, MemorySource, SourcePage
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import (
    AuthorityClass,
    FollowupChain,
    MessageEnvelope,
    MessageKind,
    MessageState,
)
from holon.model.tasks import TaskStatus
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import MessageId, TaskId, TurnId, WorkspaceId
from holon.model.work import WorkItemState
from holon.model.workspaces import AttachWorkspace, DetachWorkspace, WorkspaceEntry
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_message,
    a_task,
    a_terminal,
    a_tool_call,
    a_turn,
    a_work_item,
    an_agent,
    an_entry,
    moment,
)
from tests.support.memory_store import memory_connection

OPERATOR, RUNTIME, SIGNAL, EVIDENCE = AuthorityClass
POLICY = RetentionPolicy(age_ms=DAY_MS, events_count_min=1, turns_count_min=1, batch_count=50)


class Ledger:
    """A database, and what its readers see."""

    def __init__(self) -> None:
        self.connection = memory_connection()
        self.writer = CommitWriter(self.connection)
        self.reads = SqliteReads(self.connection)
        self.retention = Retention(self.connection)
        self.count = 0
        self.make(an_agent())

    def make(self, *changes: Change, at_ms: int = 0) -> None:
        self.count += 1
        commit = a_commit(f"commit_{self.count}", *changes, at=moment(at_ms))
        assert self.writer.apply_group([audited(commit)]).results == [Applied()]

    def open_turn(self, n: int, message: MessageEnvelope, *unseen: MessageEnvelope) -> None:
        turn = a_turn(f"turn_{n}", message_id=message.id, index=n)
        shown = IncomingMessage(message=message, unseen=unseen)
        self.make(
            QueueMessage(message=message),
            ClaimMessage(agent_id=MAIN, message_id=message.id, generation=n, passed_over=0),
            OpenTurn(turn=turn),
            AppendTranscript(entry=an_entry(turn, position=0, data=shown)),
        )

    def settle(self, n: int, *also: Change) -> None:
        turn = a_turn(f"turn_{n}", message_id=f"msg_{n}", index=n)
        self.make(
            SettleTurn(
                agent_id=MAIN,
                turn_id=turn.turn_id,
                terminal=a_terminal(turn, completed_at=START),
                usage=TokenUsage(),
                round_count=1,
            ),
            SettleMessage(
                agent_id=MAIN,
                message_id=MessageId(f"msg_{n}"),
                state=MessageState.PROCESSED,
                reason="r",
            ),
            *also,
        )

    async def page(self, after_seq: int = 0, limit: int = 100) -> SourcePage:
        return await self.reads.memory.changed_sources(MAIN, after_seq=after_seq, limit=limit)

    async def sources(self) -> Mapping[str, MemorySource]:
        return {source.source_key: source for source in (await self.page()).sources}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def from_outside(n: int) -> MessageEnvelope:
    return msgspec.structs.replace(
        a_message(f"msg_{n}"), authority_class=AuthorityClass.EXTERNAL_EVIDENCE
    )


@pytest.mark.requirement("memory-index:sources")
async def test_every_kind_of_record_is_told_with_the_commit_that_wrote_it(ledger: Ledger) -> None:
    ledger.open_turn(1, a_message("msg_1"))
    call = msgspec.structs.replace(a_tool_call(a_turn()), name="ExecCommand", input={"cmd": "ls"})
    entry = WorkspaceEntry(
        workspace_id=WorkspaceId("ws_1"),
        workspace_anchor="/srv/garden",
        created_at=START,
        updated_at=START,
    )
    ledger.make(
        StartToolCall(call=call),
        PutWorkItem(item=a_work_item()),
        CreateTask(task=a_task()),
        AttachWorkspace(agent_id=MAIN, entry=entry),
    )
    ledger.settle(1, AppendBrief(brief=a_brief(turn_id="turn_1")))
    found = await ledger.sources()
    assert list(found) == [
        f"tool_execution:{call.effect_id}",
        "work_item:work_1",
        "task:task_1",
        "workspace_profile:ws_1",
        "brief:brief_1",
    ]
    assert all(source.record is not None for source in found.values())
    ledger.make(DetachWorkspace(agent_id=MAIN, workspace_id=entry.workspace_id))
    assert (await ledger.sources())["workspace_profile:ws_1"].record is None


@pytest.mark.requirement("memory-index:incremental")
async def test_a_change_gives_a_record_the_newest_number_and_no_second_row(ledger: Ledger) -> None:
    ledger.make(CreateTask(task=a_task()), PutWorkItem(item=a_work_item()))
    before = await ledger.page()
    advance = AdvanceTask(agent_id=MAIN, task_id=TaskId("task_1"), status=TaskStatus.COMPLETED)
    ledger.make(advance)
    after = await ledger.page(before.newest_seq)
    assert [(source.kind, source.source_id) for source in after.sources] == [
        (MemoryKind.TASK, "task_1")
    ]
    assert len(await ledger.sources()) == 2
    assert (await ledger.page(after.newest_seq)).sources == ()


async def test_pages_go_on_where_they_ended_and_count_what_is_left(ledger: Ledger) -> None:
    ledger.make(*(PutWorkItem(item=a_work_item(f"work_{n}")) for n in range(5)))
    first = await ledger.page(limit=2)
    assert (len(first.sources), first.left_count) == (2, 3)
    rest = await ledger.page(first.sources[-1].change_seq)
    assert [source.source_id for source in rest.sources] == ["work_2", "work_3", "work_4"]
    assert rest.left_count == 0


async def test_a_refused_commit_leaves_no_mark(ledger: Ledger) -> None:
    bad = a_commit(
        "bad",
        PutWorkItem(item=a_work_item()),
        AdvanceTask(agent_id=MAIN, task_id=TaskId("task_none"), status=TaskStatus.COMPLETED),
    )
    (result,) = ledger.writer.apply_group([audited(bad)]).results
    assert not isinstance(result, Applied)
    assert (await ledger.page()).sources == ()


@pytest.mark.requirement("memory-index:authority-travels")
async def test_a_record_is_worth_the_least_its_turn_was_shown_for_ever(ledger: Ledger) -> None:
    ledger.open_turn(1, a_message("msg_1"), from_outside(9))
    ledger.make(PutWorkItem(item=a_work_item()))
    ledger.settle(1, AppendBrief(brief=a_brief("brief_1", turn_id="turn_1")))
    ledger.make(AppendBrief(brief=a_brief("brief_2")))
    ledger.open_turn(2, a_message("msg_2"))
    again = msgspec.structs.replace(a_work_item(), revision=2)
    ledger.settle(2, PutWorkItem(item=again), AppendBrief(brief=a_brief("brief_3")))
    found = await ledger.sources()
    assert found["work_item:work_1"].authority_class is EVIDENCE, "it does not come up again"
    assert found["brief:brief_1"].authority_class is EVIDENCE
    assert found["brief:brief_2"].authority_class is OPERATOR
    assert found["brief:brief_3"].authority_class is OPERATOR


async def test_another_agents_records_are_not_told(ledger: Ledger) -> None:
    ledger.make(an_agent("other"))
    item = msgspec.structs.replace(a_work_item("work_2"), agent_id="other")
    ledger.make(PutWorkItem(item=a_work_item()), PutWorkItem(item=item))
    assert list(await ledger.sources()) == ["work_item:work_1"]


@pytest.mark.requirement("memory-index:retention")
async def test_what_is_pruned_is_told_once_more_empty_and_forgotten_after_a_while(
    ledger: Ledger,
) -> None:
    done = msgspec.structs.replace(a_work_item(), state=WorkItemState.COMPLETED)
    for n in range(1, 4):
        ledger.open_turn(n, a_message(f"msg_{n}"))
        call = msgspec.structs.replace(
            a_tool_call(a_turn(f"turn_{n}")), name="ExecCommand", input={"cmd": "ls"}
        )
        ledger.make(StartToolCall(call=call))
        ledger.settle(n, AppendBrief(brief=a_brief(f"brief_{n}", turn_id=f"turn_{n}")))
    ledger.make(
        PutWorkItem(item=done),
        CreateTask(task=a_task(status=TaskStatus.COMPLETED)),
        AppendBrief(brief=a_brief("brief_loose")),
    )
    before = await ledger.page()
    while ledger.retention.step(POLICY, now=moment(2 * DAY_MS)).more:
        pass
    gone = await ledger.page(before.newest_seq)
    assert {source.source_key for source in gone.sources if source.record is None} == {
        "brief:brief_1",
        "brief:brief_2",
        "brief:brief_loose",
        "tool_execution:turn_1.1.0",
        "tool_execution:turn_2.1.0",
        "work_item:work_1",
        "task:task_1",
    }
    assert gone.floor_seq == 0
    kept = {key for key, source in (await ledger.sources()).items() if source.record is not None}
    assert kept == {"brief:brief_3", "tool_execution:turn_3.1.0"}
    while ledger.retention.step(POLICY, now=moment(3 * DAY_MS + MEMORY_TOMBSTONES_KEPT_MS)).more:
        pass
    assert set(await ledger.sources()) == kept
    assert (await ledger.page()).floor_seq == gone.newest_seq
    ledger.make(AppendBrief(brief=a_brief("brief_next")))
    assert (await ledger.page()).newest_seq > gone.newest_seq, "numbers are never given out twice"


def test_turns_without_words_from_outside_are_told_too(ledger: Ledger) -> None:
    ledger.open_turn(1, from_outside(1))
    ((turn_id, rank),) = ledger.connection.execute("select * from turn_evidence").fetchall()
    assert (TurnId(str(turn_id)), rank) == ("turn_1", 3)


def by_runtime(n: int, *, root: int | None = None) -> MessageEnvelope:
    chain = None if root is None else FollowupChain(root_id=MessageId(f"msg_{root}"), number=1)
    return msgspec.structs.replace(
        a_message(f"msg_{n}"),
        kind=MessageKind.INTERNAL_FOLLOWUP,
        authority_class=RUNTIME,
        followup=chain,
    )


@pytest.mark.requirement("memory-index:authority-travels")
def test_a_turn_of_the_runtime_is_worth_no_more_than_what_it_goes_on_with(ledger: Ledger) -> None:
    shown = (
        from_outside(1),
        by_runtime(2),  # goes on with the first
        a_message("msg_3"),  # the operator begins anew
        by_runtime(4),
        by_runtime(5, root=1),  # left by the first turn, long ago
    )
    for n, message in enumerate(shown, start=1):
        ledger.open_turn(n, message)
        ledger.settle(n)
    worth = ledger.connection.execute("select evidence_rank from turn_evidence order by turn_id")
    assert [list(AuthorityClass)[int(str(rank))] for (rank,) in worth] == [
        EVIDENCE,
        EVIDENCE,
        OPERATOR,
        RUNTIME,
        EVIDENCE,
    ]
