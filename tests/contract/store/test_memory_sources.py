"""What commits leave for memory search: each record once, numbered, with what it is worth."""

from collections.abc import Mapping

import msgspec
import pytest

from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Applied,
    Change,
    CreateTask,
    OpenTurn,
    PutWorkItem,
    QueueMessage,
    StartToolCall,
)
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, MEMORY_TOMBSTONES_KEPT_MS
from holon.model.memory.index import MemoryKind, MemorySource, SourcePage
from holon.model.queue import (
    AuthorityClass,
    FollowupChain,
    MessageEnvelope,
    MessageKind,
)
from holon.model.tasks import TaskStatus
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import AgentId, MessageId, TaskId, WorkspaceId
from holon.model.work import WorkItemState
from holon.model.workspaces import AttachWorkspace, DetachWorkspace, WorkspaceEntry
from holon.ports.store import Store
from tests.contract.store.steps import (
    claimed,
    ended,
    make,
    offer,
    prune_all,
    settled,
)
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_message,
    a_task,
    a_tool_call,
    a_turn,
    a_work_item,
    an_agent,
    an_entry,
    moment,
)

OPERATOR, RUNTIME, SIGNAL, EVIDENCE = AuthorityClass


POLICY = RetentionPolicy(age_ms=DAY_MS, events_count_min=1, turns_count_min=1, batch_count=50)


async def begin(store: Store, n: int, message: MessageEnvelope, *unseen: MessageEnvelope) -> None:
    """Have the agent begin a turn that is shown the message, and those of earlier turns."""
    turn = a_turn(f"turn_{n}", message_id=message.id, index=n)
    shown = IncomingMessage(message=message, unseen=unseen)
    await make(
        store,
        QueueMessage(message=message),
        claimed(message.id, generation=n),
        OpenTurn(turn=turn),
        AppendTranscript(entry=an_entry(turn, position=0, data=shown)),
    )


async def finish(store: Store, n: int, *also: Change) -> None:
    """Have that turn end, and with it what else it did."""
    turn = a_turn(f"turn_{n}", message_id=f"msg_{n}", index=n)
    await make(store, ended(turn), settled(f"msg_{n}"), *also)


async def page_of(store: Store, after_seq: int = 0, limit: int = 100) -> SourcePage:
    return await store.reads.memory.changed_sources(MAIN, after_seq=after_seq, limit=limit)


async def sources(store: Store) -> Mapping[str, MemorySource]:
    return {source.source_key: source for source in (await page_of(store)).sources}


def from_outside(n: int) -> MessageEnvelope:
    return msgspec.structs.replace(
        a_message(f"msg_{n}"), authority_class=AuthorityClass.EXTERNAL_EVIDENCE
    )


@pytest.mark.requirement("memory-index:sources")
async def test_every_kind_of_record_is_told_with_the_commit_that_wrote_it(store: Store) -> None:
    await begin(store, 1, a_message("msg_1"))
    call = msgspec.structs.replace(a_tool_call(a_turn()), name="ExecCommand", input={"cmd": "ls"})
    entry = WorkspaceEntry(
        workspace_id=WorkspaceId("ws_1"),
        workspace_anchor="/srv/garden",
        created_at=START,
        updated_at=START,
    )
    await make(
        store,
        StartToolCall(call=call),
        PutWorkItem(item=a_work_item()),
        CreateTask(task=a_task()),
        AttachWorkspace(agent_id=MAIN, entry=entry),
    )
    await finish(store, 1, AppendBrief(brief=a_brief(turn_id="turn_1")))
    found = await sources(store)
    assert list(found) == [
        f"tool_execution:{call.effect_id}",
        "work_item:work_1",
        "task:task_1",
        "workspace_profile:ws_1",
        "brief:brief_1",
    ]
    assert all(source.record is not None for source in found.values())
    await make(store, DetachWorkspace(agent_id=MAIN, workspace_id=entry.workspace_id))
    assert (await sources(store))["workspace_profile:ws_1"].record is None


@pytest.mark.requirement("memory-index:incremental")
async def test_a_change_gives_a_record_the_newest_number_and_no_second_row(store: Store) -> None:
    await make(store, CreateTask(task=a_task()), PutWorkItem(item=a_work_item()))
    before = await page_of(store)
    advance = AdvanceTask(agent_id=MAIN, task_id=TaskId("task_1"), status=TaskStatus.COMPLETED)
    await make(store, advance)
    after = await page_of(store, before.newest_seq)
    assert [(source.kind, source.source_id) for source in after.sources] == [
        (MemoryKind.TASK, "task_1")
    ]
    assert len(await sources(store)) == 2
    assert (await page_of(store, after.newest_seq)).sources == ()


async def test_pages_go_on_where_they_ended_and_count_what_is_left(store: Store) -> None:
    await make(store, *(PutWorkItem(item=a_work_item(f"work_{n}")) for n in range(5)))
    first = await page_of(store, limit=2)
    assert (len(first.sources), first.left_count) == (2, 3)
    rest = await page_of(store, first.sources[-1].change_seq)
    assert [source.source_id for source in rest.sources] == ["work_2", "work_3", "work_4"]
    assert rest.left_count == 0


async def test_a_refused_commit_leaves_no_mark(store: Store) -> None:
    result = await offer(
        store,
        PutWorkItem(item=a_work_item()),
        AdvanceTask(agent_id=MAIN, task_id=TaskId("task_none"), status=TaskStatus.COMPLETED),
    )
    assert not isinstance(result, Applied)
    assert (await page_of(store)).sources == ()


@pytest.mark.requirement("memory-index:authority-travels")
async def test_a_record_is_worth_the_least_its_turn_was_shown_for_ever(store: Store) -> None:
    await begin(store, 1, a_message("msg_1"), from_outside(9))
    await make(store, PutWorkItem(item=a_work_item()))
    await finish(store, 1, AppendBrief(brief=a_brief("brief_1", turn_id="turn_1")))
    await make(store, AppendBrief(brief=a_brief("brief_2")))
    await begin(store, 2, a_message("msg_2"))
    again = msgspec.structs.replace(a_work_item(), revision=2)
    await finish(store, 2, PutWorkItem(item=again), AppendBrief(brief=a_brief("brief_3")))
    found = await sources(store)
    assert found["work_item:work_1"].authority_class is EVIDENCE, "it does not come up again"
    assert found["brief:brief_1"].authority_class is EVIDENCE
    assert found["brief:brief_2"].authority_class is OPERATOR
    assert found["brief:brief_3"].authority_class is OPERATOR


async def test_another_agents_records_are_not_told(store: Store) -> None:
    await make(store, an_agent("other"))
    item = msgspec.structs.replace(a_work_item("work_2"), agent_id="other")
    await make(store, PutWorkItem(item=a_work_item()), PutWorkItem(item=item))
    assert list(await sources(store)) == ["work_item:work_1"]


@pytest.mark.requirement("memory-index:retention")
async def test_what_is_pruned_is_told_once_more_empty_and_forgotten_after_a_while(
    store: Store,
) -> None:
    done = msgspec.structs.replace(a_work_item(), state=WorkItemState.COMPLETED)
    for n in range(1, 4):
        await begin(store, n, a_message(f"msg_{n}"))
        call = msgspec.structs.replace(
            a_tool_call(a_turn(f"turn_{n}")), name="ExecCommand", input={"cmd": "ls"}
        )
        await make(store, StartToolCall(call=call))
        await finish(store, n, AppendBrief(brief=a_brief(f"brief_{n}", turn_id=f"turn_{n}")))
    await make(
        store,
        PutWorkItem(item=done),
        CreateTask(task=a_task(status=TaskStatus.COMPLETED)),
        AppendBrief(brief=a_brief("brief_loose")),
    )
    before = await page_of(store)
    await prune_all(store, POLICY, now=moment(2 * DAY_MS))
    gone = await page_of(store, before.newest_seq)
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
    kept = {key for key, source in (await sources(store)).items() if source.record is not None}
    assert kept == {"brief:brief_3", "tool_execution:turn_3.1.0"}
    await prune_all(store, POLICY, now=moment(3 * DAY_MS + MEMORY_TOMBSTONES_KEPT_MS))
    assert set(await sources(store)) == kept
    assert (await page_of(store)).floor_seq == gone.newest_seq
    await make(store, AppendBrief(brief=a_brief("brief_next")))
    assert (await page_of(store)).newest_seq > gone.newest_seq, "numbers are never given out twice"


def by_runtime(n: int, *, root: int | None = None) -> MessageEnvelope:
    chain = None if root is None else FollowupChain(root_id=MessageId(f"msg_{root}"), number=1)
    return msgspec.structs.replace(
        a_message(f"msg_{n}"),
        kind=MessageKind.INTERNAL_FOLLOWUP,
        authority_class=RUNTIME,
        followup=chain,
    )


@pytest.mark.requirement("memory-index:authority-travels")
async def test_a_turn_of_the_runtime_is_worth_no_more_than_what_it_goes_on_with(
    store: Store,
) -> None:
    shown = (
        from_outside(1),
        by_runtime(2),  # goes on with the first
        a_message("msg_3"),  # the operator begins anew
        by_runtime(4),
        by_runtime(5, root=1),  # left by the first turn, long ago
    )
    for n, message in enumerate(shown, start=1):
        await begin(store, n, message)
        await finish(store, n, AppendBrief(brief=a_brief(f"brief_{n}", turn_id=f"turn_{n}")))
    found = await sources(store)
    assert [found[f"brief:brief_{n}"].authority_class for n in range(1, 6)] == [
        EVIDENCE,
        EVIDENCE,
        OPERATOR,
        RUNTIME,
        EVIDENCE,
    ]


async def test_records_are_found_by_name_as_far_as_the_agent_has_them(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()), AppendBrief(brief=a_brief()))
    named = [
        (MemoryKind.BRIEF, "brief_1"),
        (MemoryKind.WORK_ITEM, "work_1"),
        (MemoryKind.TASK, "task_9"),
    ]
    found = await store.reads.memory.named_sources(MAIN, named)
    assert {each.source_key: each.record for each in found} == {
        "brief:brief_1": a_brief(),
        "work_item:work_1": a_work_item(),
    }
    assert list(await store.reads.memory.named_sources(AgentId("other"), named)) == []
