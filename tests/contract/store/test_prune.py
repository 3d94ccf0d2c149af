"""Pruning: bounded steps, oldest first, and never what is unfinished or still needed."""

from datetime import datetime
from typing import Final

import msgspec
import pytest

from holon.decide.events.audit import audited
from holon.model.commits import (
    AppendBrief,
    Applied,
    ArchiveAgent,
    CancelTimer,
    CreateTask,
    CreateTimer,
    FocusWorkItem,
    KeyAlreadyUsed,
    MarkSeen,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RecordEvent,
)
from holon.model.events.retention import RetentionPolicy
from holon.model.guidance import NoteInstructionChange
from holon.model.limits import COMMIT_IDS_KEPT_MS_MIN, DAY_MS, IDEMPOTENCY_KEPT_MS_MIN
from holon.model.queue import MessageKind, TaskOrigin, TimerOrigin
from holon.model.tasks import TaskStatus
from holon.model.values import MessageId, TaskId, TurnId, WorkItemId
from holon.model.work import WorkItemState
from holon.ports.store import Store
from tests.contract.store.steps import make, make_turn, noted, open_turn, prune_all, settled, with_
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_hint,
    a_message,
    a_source_change,
    a_task,
    a_tick,
    a_timer,
    a_turn,
    a_wait,
    a_work_item,
    an_admission,
    moment,
)

LATER: Final = moment(200 * DAY_MS)
BY_AGE: Final = RetentionPolicy(
    age_ms=90 * DAY_MS, events_count_min=3, turns_count_min=2, batch_count=50
)
GREEDY: Final = RetentionPolicy(
    age_ms=1, bytes_max=1, events_count_min=0, turns_count_min=0, batch_count=10
)
DONE: Final = WorkItemState.COMPLETED


async def kept_turns(store: Store) -> list[int]:
    logs = await store.reads.turns.recent_turns(MAIN, limit=99)
    return [log.turn.turn_index for log in logs]


async def live(store: Store, *numbers: int, at: datetime) -> None:
    """Have these turns happen, each with a brief."""
    for n in numbers:
        brief = a_brief(f"brief_{n}", turn_id=f"turn_{n}")
        await make_turn(store, n, AppendBrief(brief=brief), at=at)


async def test_a_settled_turn_goes_with_what_belongs_to_it_and_the_newest_stay(
    store: Store,
) -> None:
    await live(store, *range(1, 7), at=START)
    await prune_all(store, BY_AGE, now=LATER)
    assert await kept_turns(store) == [5, 6]
    assert await store.reads.turns.turn_log(TurnId("turn_1")) is None
    asked = [MessageId(f"msg_{n}") for n in range(1, 7)]
    entries = await store.reads.queue.messages(MAIN, asked)
    assert [entry.message.id for entry in entries] == ["msg_5", "msg_6"]
    briefs = await store.reads.events.briefs(MAIN, limit=99)
    assert [brief.id for brief in briefs] == ["brief_5", "brief_6"]


async def test_what_is_young_stays(store: Store) -> None:
    await live(store, 1, 2, at=START)
    await live(store, 3, 4, 5, at=moment(199 * DAY_MS))
    await prune_all(store, BY_AGE, now=LATER)
    assert await kept_turns(store) == [3, 4, 5]


async def test_events_leave_from_the_old_end_and_the_floor_says_how_far(store: Store) -> None:
    await make(store, *(noted(n=n) for n in range(10)))
    _, newest = await store.reads.events.event_bounds(MAIN)
    await prune_all(store, BY_AGE, now=LATER)
    assert await store.reads.events.event_bounds(MAIN) == (newest - 3, newest)
    kept = await store.reads.events.events_after(MAIN, 0, limit=99)
    assert [event.event_seq for event in kept] == [newest - 2, newest - 1, newest]
    await make(store, noted(), at=LATER)
    floor, after = await store.reads.events.event_bounds(MAIN)
    assert (floor, after) == (newest - 3, newest + 1), "numbering goes on without a gap"
    assert [each.event_seq for each in await store.reads.events.log_after(0, limit=99)] == [
        newest - 2,
        newest - 1,
        newest,
        newest + 1,
    ]


async def test_an_agent_keeps_its_newest_event_however_old(store: Store) -> None:
    await make(store, *(noted(n=n) for n in range(10)))
    await prune_all(store, GREEDY, now=LATER)
    assert len(await store.reads.events.events_after(MAIN, 0, limit=99)) == 1


async def test_what_is_unfinished_is_never_removed(store: Store) -> None:
    turn = await open_turn(store, 1)
    await make(
        store,
        QueueMessage(message=a_message("msg_2")),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        PutWorkItem(item=a_work_item()),
        OpenWait(wait=a_wait(work_item_id=WorkItemId("work_1"))),
        ParkWakeHint(hint=a_hint()),
    )
    before = await store.reads.agents.snapshot(MAIN, now=LATER)
    await prune_all(store, GREEDY, now=LATER)
    assert await store.reads.agents.snapshot(MAIN, now=LATER) == before
    assert await store.reads.turns.turn_log(turn.turn_id) is not None
    assert await store.reads.tasks.open_tasks() == [a_task()]
    assert await store.reads.wake.timer(a_timer().id) == a_timer()


async def test_finished_tasks_timers_and_items_go_unless_an_agent_points_at_them(
    store: Store,
) -> None:
    focus = WorkItemId("work_2")
    await make(
        store,
        CreateTask(task=a_task(status=TaskStatus.COMPLETED)),
        CreateTimer(timer=a_timer()),
        CancelTimer(agent_id=MAIN, timer_id=a_timer().id),
        PutWorkItem(item=a_work_item("work_1")),
        PutWorkItem(item=a_work_item("work_2")),
        FocusWorkItem(agent_id=MAIN, work_item_id=focus),
        PutWorkItem(item=a_work_item("work_1", revision=2, state=DONE)),
        PutWorkItem(item=a_work_item("work_2", revision=2, state=DONE)),
    )
    await prune_all(store, BY_AGE, now=LATER)
    assert await store.reads.tasks.task(TaskId("task_1")) is None
    assert await store.reads.wake.timer(a_timer().id) is None
    kept = await store.reads.work.completed_items(MAIN, limit=9)
    assert [item.id for item in kept] == [focus]


async def test_a_timer_stays_as_long_as_a_tick_of_it_waits(store: Store) -> None:
    timer = a_timer()
    tick = a_tick("msg_1", kind=MessageKind.TIMER_TICK, origin=TimerOrigin(timer_id=timer.id))
    cancel = CancelTimer(agent_id=MAIN, timer_id=timer.id)
    await make(store, CreateTimer(timer=timer), QueueMessage(message=tick), cancel)
    await prune_all(store, BY_AGE, now=LATER)
    assert await store.reads.wake.timer(timer.id) is not None
    await make(store, settled("msg_1"))
    await prune_all(store, BY_AGE, now=LATER)
    assert await store.reads.wake.timer(timer.id) is None


async def test_what_the_model_has_not_seen_stays_until_it_has(store: Store) -> None:
    task_id = TaskId("task_1")
    result = a_tick("msg_1", kind=MessageKind.TASK_RESULT, origin=TaskOrigin(task_id=task_id))
    await make(
        store,
        CreateTask(task=a_task(task_id, status=TaskStatus.COMPLETED)),
        QueueMessage(message=with_(result, task_id=task_id)),
        settled("msg_1", unseen=True),
    )
    await prune_all(store, GREEDY, now=LATER)
    assert [message.id for message in await store.reads.queue.unseen(MAIN, limit=9)] == ["msg_1"]
    assert await store.reads.tasks.task(task_id) is not None
    await make(store, MarkSeen(agent_id=MAIN, message_ids=(MessageId("msg_1"),)))
    await prune_all(store, GREEDY, now=LATER)
    assert await store.reads.queue.message(MessageId("msg_1")) is None
    assert await store.reads.tasks.task(task_id) is None


async def test_an_archived_agent_will_see_nothing_more(store: Store) -> None:
    await make(store, QueueMessage(message=a_message()), settled("msg_1", unseen=True))
    await make(store, ArchiveAgent(agent_id=MAIN, reason="over"))
    await prune_all(store, BY_AGE, now=LATER)
    assert await store.reads.queue.message(MessageId("msg_1")) is None
    assert await store.reads.agents.agent(MAIN) is not None


async def test_a_key_is_remembered_as_long_as_it_may_be_repeated(store: Store) -> None:
    first = an_admission(a_message("msg_1"), key="k")
    assert await store.apply(audited(first)) == Applied()
    await make(store, settled("msg_1"))
    again = audited(an_admission(a_message("msg_2"), key="k"))
    await prune_all(store, GREEDY, now=moment(IDEMPOTENCY_KEPT_MS_MIN - 1))
    assert isinstance(await store.apply(again), KeyAlreadyUsed)
    await prune_all(store, GREEDY, now=moment(IDEMPOTENCY_KEPT_MS_MIN + 10))
    assert await store.apply(again) == Applied()


async def test_a_commit_id_is_remembered_long_enough(store: Store) -> None:
    commit = audited(an_admission(a_message()))
    await store.apply(commit)
    await prune_all(store, GREEDY, now=moment(COMMIT_IDS_KEPT_MS_MIN - 1))
    assert await store.apply(commit) == Applied(replayed=True)


@pytest.mark.requirement("provenance:instruction-taint-is-shown")
async def test_an_instruction_taint_outlives_its_event(store: Store) -> None:
    tainted = a_source_change(a_turn("turn_1"))
    clean = a_source_change(a_turn("turn_3"), tainted=False)
    await make(store, NoteInstructionChange(agent_id=MAIN, event=tainted))
    await make(store, *(RecordEvent(agent_id=MAIN, event=clean) for _ in range(9)))
    await prune_all(store, BY_AGE, now=LATER)
    assert (await store.reads.events.event_bounds(MAIN))[0] > 2
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert surface.tainted is not None
    assert (surface.tainted.path, surface.tainted.turn_id) == ("AGENTS.md", "turn_1")


async def test_a_step_is_bounded_and_says_that_there_is_more(store: Store) -> None:
    await make(store, *(noted(n=n) for n in range(100)))
    await make(store, *(AppendBrief(brief=a_brief(f"brief_{n}")) for n in range(100)))
    policy = msgspec.structs.replace(BY_AGE, batch_count=20)
    reports = await prune_all(store, policy, now=LATER)
    assert len(reports) > 3
    assert sum(report.rows_removed for report in reports) >= 200
    assert max(report.rows_removed for report in reports) < 200
    assert [report.more for report in reports] == [True] * (len(reports) - 1) + [False]


async def test_a_pass_that_finds_nothing_removes_nothing(store: Store) -> None:
    await live(store, 1, at=START)
    report = await store.prune(RetentionPolicy(), now=START)
    assert (report.rows_removed, report.more) == (0, False)
    assert await kept_turns(store) == [1]
