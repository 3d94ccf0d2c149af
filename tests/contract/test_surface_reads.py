"""The contract of ports/reads.py, run against every implementation of the store."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.agents import AgentIdentity, AgentStatus, IdentityStatus, Visibility
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Applied,
    CancelTimer,
    Change,
    ClaimMessage,
    CreateAgent,
    CreateTask,
    CreateTimer,
    FocusWorkItem,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RecordEvent,
    SetAgentStatus,
    SettleTurn,
)
from holon.model.events.briefs import BriefKind
from holon.model.events.event import ControlApplied
from holon.model.events.reads import ActivityCounts, AgentCounts, EventOrder, EventQuery
from holon.model.limits import (
    EVENT_PAGE_COUNT_MAX,
    STATE_TASKS_COUNT_MAX,
    SURFACE_COUNTED_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.providers.attempts import TokenUsage
from holon.model.tasks import TaskStatus
from holon.model.values import (
    AgentId,
    BriefId,
    MessageId,
    TaskId,
    TimerId,
    TurnId,
    WaitId,
    WorkItemId,
)
from holon.model.wake import WaitKind, WaitState
from holon.model.work import PlanStatus, WorkItemState
from holon.ports.reads import UnknownCursorError
from holon.ports.store import Store
from tests.adapters.sqlite.history_rows import settled
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_hint,
    a_message,
    a_round,
    a_task,
    a_terminal,
    a_timer,
    a_turn,
    a_wait,
    a_work_item,
    an_agent,
    an_entry,
    an_identity,
    moment,
)
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store

T = TypeVar("T", bound=msgspec.Struct)
OTHER = AgentId("other")


@pytest.fixture(params=["sqlite with a writer thread", "sqlite in memory, inline"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store with one agent in it."""
    opened: Store
    if request.param == "sqlite with a writer thread":
        opened = open_store(tmp_path)
    else:
        shared = memory_connection()
        opened = memory_store(shared, InlineWriter(shared, ManualClock(START), NoFaults()))
    await opened.apply(audited(a_commit("birth", an_agent(), an_agent(OTHER))))
    yield opened
    await opened.close()


async def write(store: Store, *changes: Change, at_ms: int = 0) -> None:
    """Apply the changes; each call is a commit of its own."""
    name = f"test:{at_ms}:{hash(repr(changes))}"
    assert isinstance(
        await store.apply(audited(a_commit(name, *changes, at=moment(at_ms)))), Applied
    )


def with_(record: T, **fields: object) -> T:
    return msgspec.structs.replace(record, **fields)


def born(agent_id: str, **fields: object) -> CreateAgent:
    identity: AgentIdentity = with_(an_identity(agent_id), **fields)
    return CreateAgent(identity=identity, status=AgentStatus.ASLEEP)


async def settle_well(store: Store, agent_id: AgentId, *, at_ms: int = 1_000) -> None:
    """Have the agent complete a turn."""
    message = a_message(f"msg_{agent_id}", agent_id=agent_id)
    turn = with_(a_turn(f"turn_{agent_id}", message_id=message.id), agent_id=agent_id)
    claim = ClaimMessage(agent_id=agent_id, message_id=message.id, generation=1, passed_over=0)
    await write(store, QueueMessage(message=message), claim, OpenTurn(turn=turn), at_ms=at_ms)
    settle = SettleTurn(
        agent_id=agent_id,
        turn_id=turn.turn_id,
        terminal=a_terminal(turn, completed_at=moment(at_ms)),
        usage=TokenUsage(),
        round_count=1,
    )
    await write(store, settle, settled(message), at_ms=at_ms)


@pytest.mark.requirement("console:private-agents-are-not-listed")
async def test_only_public_agents_in_use_are_listed_page_by_page(store: Store) -> None:
    await write(
        store,
        born("child", visibility=Visibility.PRIVATE),
        born("archived", status=IdentityStatus.ARCHIVED),
        born("a"),
        born("z"),
    )
    first = await store.reads.agents.public_agents(after=None, limit=2)
    rest = await store.reads.agents.public_agents(after=AgentId("main"), limit=10_000)
    assert [each.agent.identity.agent_id for each in first] == ["a", "main"]
    assert [each.agent.identity.agent_id for each in rest] == ["other", "z"]


async def test_a_listed_agent_says_what_it_could_do_and_what_holds_it(store: Store) -> None:
    stuck = a_work_item("work_stuck", blocked_by="a review")
    runnable = a_work_item("work_run", created_at=moment(5))
    await write(store, PutWorkItem(item=stuck), PutWorkItem(item=runnable))
    await write(store, QueueMessage(message=a_message()), OpenWait(wait=a_wait()))
    listed = next(iter(await store.reads.agents.public_agents(after=None, limit=1)))
    assert listed.queued_count == 1
    assert listed.runnable_work_item_id == "work_run"
    assert listed.stuck_work_item == stuck
    assert [wait.id for wait in listed.waits] == ["wait_1"]


async def test_tasks_come_open_ones_first_and_newest_first(store: Store) -> None:
    for n in range(6):
        task = with_(a_task(f"task_{n}"), updated_at=moment(n))
        await write(store, CreateTask(task=task), at_ms=n)
    for n in (1, 4):
        ended = AdvanceTask(agent_id=MAIN, task_id=TaskId(f"task_{n}"), status=TaskStatus.COMPLETED)
        await write(store, ended, at_ms=10 + n)
    expected = ["task_5", "task_3", "task_2", "task_0", "task_4", "task_1"]
    whole = await store.reads.tasks.tasks_page(MAIN, after=None, limit=50)
    assert [task.id for task in whole] == expected
    for size in (1, 2, 4):
        seen: list[str] = []
        after: TaskId | None = None
        while page := await store.reads.tasks.tasks_page(MAIN, after=after, limit=size):
            seen += [task.id for task in page]
            after = page[-1].id
        assert seen == expected
    assert await store.reads.tasks.tasks_page(OTHER, after=None, limit=50) == []


async def test_timers_come_active_ones_soonest_first_then_ended_ones(store: Store) -> None:
    for n, slot in enumerate((300, 100, 200, 400)):
        timer = a_timer(f"timer_{n}", next_fire_at=moment(slot))
        await write(store, CreateTimer(timer=timer), at_ms=n)
    await write(store, CancelTimer(agent_id=MAIN, timer_id=TimerId("timer_3")), at_ms=9)
    await write(store, CancelTimer(agent_id=MAIN, timer_id=TimerId("timer_2")), at_ms=10)
    seen: list[str] = []
    after: TimerId | None = None
    while page := await store.reads.wake.timers_page(MAIN, after=after, limit=1):
        seen += [timer.id for timer in page]
        after = page[-1].id
    assert seen == ["timer_1", "timer_0", "timer_2", "timer_3"]
    assert [t.id for t in await store.reads.wake.timers_page(MAIN, after=None, limit=9)] == seen


@pytest.mark.requirement("console:work-items-are-ranked")
async def test_work_items_come_in_the_order_current_queued_waiting_completed(
    store: Store,
) -> None:
    for n, name in enumerate(("waits", "blocked", "first", "second", "current", "done", "older")):
        item = a_work_item(f"work_{name}", created_at=moment(n), updated_at=moment(n))
        await write(store, PutWorkItem(item=item))
    await write(
        store,
        OpenWait(wait=a_wait(work_item_id=WorkItemId("work_waits"))),
        PutWorkItem(
            item=a_work_item("work_blocked", created_at=moment(1), revision=2, blocked_by="rain")
        ),
        FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_current")),
    )
    for n, name in ((50, "older"), (60, "done")):
        done = a_work_item(
            f"work_{name}", revision=2, state=WorkItemState.COMPLETED, updated_at=moment(n)
        )
        await write(store, PutWorkItem(item=done))
    expected = ["current", "first", "second", "waits", "blocked", "done", "older"]
    for size in (1, 3, 100):
        seen: list[str] = []
        after: WorkItemId | None = None
        while page := await store.reads.work.work_items_page(MAIN, after=after, limit=size):
            seen += [weighed.item.id.removeprefix("work_") for weighed in page]
            after = page[-1].item.id
        assert seen == expected
    waiting = (await store.reads.work.work_items_page(MAIN, after=None, limit=4))[-1]
    assert [wait.id for wait in waiting.waits] == ["wait_1"]


async def test_briefs_are_paged_backwards_and_found_by_id(store: Store) -> None:
    for n in range(5):
        await write(store, AppendBrief(brief=a_brief(f"brief_{n}")))
    newest = await store.reads.events.briefs_page(MAIN, before=None, limit=2)
    older = await store.reads.events.briefs_page(MAIN, before=newest[-1].id, limit=50)
    assert [brief.id for brief in (*newest, *older)] == [f"brief_{n}" for n in (4, 3, 2, 1, 0)]
    found = await store.reads.events.brief(BriefId("brief_2"))
    assert found is not None
    assert found.id == "brief_2"
    assert await store.reads.events.brief(BriefId("brief_9")) is None


@pytest.mark.parametrize("limit", [0, -1, -(2**40)])
async def test_a_limit_that_makes_no_sense_gives_nothing_rather_than_everything(
    store: Store, limit: int
) -> None:
    await write(
        store,
        PutWorkItem(item=a_work_item()),
        FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_1")),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        AppendBrief(brief=a_brief()),
    )
    reads = store.reads
    answers = [
        await reads.agents.public_agents(after=None, limit=limit),
        await reads.tasks.tasks_page(MAIN, after=None, limit=limit),
        await reads.wake.timers_page(MAIN, after=None, limit=limit),
        await reads.work.work_items_page(MAIN, after=None, limit=limit),
        await reads.events.briefs_page(MAIN, before=None, limit=limit),
        await reads.turns.turns_page(MAIN, before_index=None, limit=limit),
        (await reads.events.events_page(MAIN, EventQuery(limit=limit))).events,
        await reads.events.log_after(0, limit=limit),
    ]
    assert [len(answer) for answer in answers] == [0] * len(answers)


@pytest.mark.requirement("console:pages-are-bounded")
async def test_no_page_is_longer_than_its_bound_however_much_is_asked_for(store: Store) -> None:
    notes = [
        RecordEvent(agent_id=MAIN, event=ControlApplied(action="a", request_id="r"))
        for _ in range(EVENT_PAGE_COUNT_MAX + 5)
    ]
    briefs = [AppendBrief(brief=a_brief(f"b_{n}")) for n in range(SURFACE_PAGE_COUNT_MAX + 5)]
    tasks = [CreateTask(task=a_task(f"task_{n}")) for n in range(SURFACE_PAGE_COUNT_MAX + 5)]
    await write(store, *notes, *briefs, *tasks)
    slice_ = await store.reads.events.events_page(MAIN, EventQuery(limit=10**9))
    assert len(slice_.events) == EVENT_PAGE_COUNT_MAX
    assert len(await store.reads.events.log_after(0, limit=10**9)) == EVENT_PAGE_COUNT_MAX
    page = await store.reads.events.briefs_page(MAIN, before=None, limit=10**9)
    assert len(page) == SURFACE_PAGE_COUNT_MAX
    assert len(await store.reads.tasks.tasks_page(MAIN, after=None, limit=10**9)) == len(page)
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert len(surface.tasks) == STATE_TASKS_COUNT_MAX
    assert surface.counts.tasks == SURFACE_PAGE_COUNT_MAX + 5


async def test_a_cursor_of_nothing_or_of_another_agent_is_refused(store: Store) -> None:
    await write(
        store,
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        PutWorkItem(item=a_work_item()),
        AppendBrief(brief=a_brief()),
    )
    reads = store.reads
    for agent_id, suffix in ((MAIN, "9"), (OTHER, "1")):
        with pytest.raises(UnknownCursorError):
            await reads.tasks.tasks_page(agent_id, after=TaskId(f"task_{suffix}"), limit=5)
        with pytest.raises(UnknownCursorError):
            await reads.wake.timers_page(agent_id, after=TimerId(f"timer_{suffix}"), limit=5)
        with pytest.raises(UnknownCursorError):
            await reads.work.work_items_page(agent_id, after=WorkItemId(f"work_{suffix}"), limit=5)
        with pytest.raises(UnknownCursorError):
            await reads.events.briefs_page(agent_id, before=BriefId(f"brief_{suffix}"), limit=5)
    assert (
        len(await reads.tasks.tasks_page(MAIN, after=None, limit=5)) == 1
    )  # no transaction is left open


async def test_messages_are_found_by_id_in_the_order_asked(store: Store) -> None:
    await write(store, *(QueueMessage(message=a_message(f"msg_{n}")) for n in range(3)))
    asked = [MessageId(text) for text in ("msg_2", "msg_9", "msg_0")]
    assert [entry.message.id for entry in await store.reads.queue.messages(MAIN, asked)] == [
        "msg_2",
        "msg_0",
    ]
    assert await store.reads.queue.messages(OTHER, asked) == []


async def test_turns_are_paged_newest_first_with_the_open_one(store: Store) -> None:
    turn = a_turn()
    await write(store, QueueMessage(message=a_message()))
    await write(
        store,
        ClaimMessage(agent_id=MAIN, message_id=MessageId("msg_1"), generation=1, passed_over=0),
        OpenTurn(turn=turn),
        AppendTranscript(entry=an_entry(turn, position=0, data=a_round())),
    )
    (log,) = await store.reads.turns.turns_page(MAIN, before_index=None, limit=5)
    assert log.turn.turn_id == turn.turn_id
    assert len(log.entries) == 1
    asked = [TurnId("turn_9"), turn.turn_id]
    assert await store.reads.turns.named(MAIN, asked) == [turn]
    assert await store.reads.turns.named(OTHER, asked) == []
    assert await store.reads.turns.turns_page(MAIN, before_index=1, limit=5) == []


@pytest.mark.requirement("console:replay-is-paged-by-event-seq")
async def test_events_are_read_either_way_between_two_numbers(store: Store) -> None:
    for n in range(9):
        await write(store, noted(MAIN, n), noted(OTHER, n))

    async def seqs(query: EventQuery) -> list[int]:
        return [e.event_seq for e in (await store.reads.events.events_page(MAIN, query)).events]

    assert await seqs(EventQuery(limit=3)) == [1, 2, 3]
    assert await seqs(EventQuery(limit=3, order=EventOrder.DESC)) == [10, 9, 8]
    assert await seqs(EventQuery(limit=3, after_seq=3)) == [4, 5, 6]
    assert await seqs(EventQuery(limit=3, before_seq=4, order=EventOrder.DESC)) == [3, 2, 1]
    assert await seqs(EventQuery(limit=9, after_seq=3, before_seq=6)) == [4, 5]
    bounds = await store.reads.events.events_page(MAIN, EventQuery(limit=1, after_seq=10))
    assert (bounds.events, bounds.floor_seq, bounds.last_seq) == ((), 0, 10)


async def test_the_log_of_all_agents_is_one_sequence(store: Store) -> None:
    await write(store, noted(MAIN, 1), noted(OTHER, 1), noted(MAIN, 2))
    whole = await store.reads.events.log_after(0, limit=100)
    numbers = [event.log_seq for event in whole]
    assert numbers == sorted(numbers)
    assert numbers[-1] == await store.reads.events.last_log_seq()
    tail = await store.reads.events.log_after(numbers[-3], limit=100)
    assert [event.agent_id for event in tail] == [OTHER, MAIN]


def noted(agent_id: AgentId, n: int) -> RecordEvent:
    return RecordEvent(agent_id=agent_id, event=ControlApplied(action="a", request_id=f"r{n}"))


async def test_waits_hints_and_counts_of_an_agent(store: Store) -> None:
    await write(
        store,
        QueueMessage(message=a_message()),
        PutWorkItem(item=a_work_item()),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        ParkWakeHint(hint=a_hint()),
        AppendBrief(brief=a_brief()),
        OpenWait(wait=a_wait("wait_1")),
        OpenWait(wait=a_wait("wait_2", source_id="task_2")),
    )
    gone = MoveWait(agent_id=MAIN, wait_id=WaitId("wait_1"), state=WaitState.CANCELLED, by="test")
    await write(store, gone)
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert [wait.id for wait in surface.waits] == ["wait_2"]
    assert [hint.source_key for hint in surface.hints] == ["github"]
    _, last_seq = await store.reads.events.event_bounds(MAIN)
    assert surface.counts == AgentCounts(
        queued_messages=1,
        open_work_items=1,
        waits=1,
        tasks=1,
        active_timers=1,
        wake_hints=1,
        briefs=1,
        events=last_seq,
    )


async def test_a_surface_is_one_look_that_can_be_followed_on(store: Store) -> None:
    failed = with_(a_brief("brief_f"), kind=BriefKind.FAILURE)
    await write(store, CreateTask(task=a_task()), AppendBrief(brief=failed), noted(MAIN, 1))
    await write(store, AppendBrief(brief=a_brief("brief_ok")))
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert [task.id for task in surface.tasks] == ["task_1"]
    assert surface.last_failure == failed
    assert await store.reads.events.last_failure() == failed
    after = EventQuery(after_seq=surface.last_event_seq, limit=9)
    assert (await store.reads.events.events_page(MAIN, after)).events == ()
    assert await store.reads.agents.agent_surface(AgentId("nobody")) is None


@pytest.mark.requirement("console:a-failure-is-news-until-a-success")
async def test_a_failure_is_the_last_one_until_its_agent_completes_a_turn(store: Store) -> None:
    ada = AgentId("ada")
    await write(store, born("ada"))
    of_main = with_(a_brief("brief_1"), kind=BriefKind.FAILURE)
    of_ada = with_(a_brief("brief_2"), kind=BriefKind.FAILURE, agent_id=ada)
    await write(store, AppendBrief(brief=of_main), AppendBrief(brief=of_ada))
    assert await store.reads.events.last_failure() == of_ada
    await settle_well(store, ada)
    assert await store.reads.events.last_failure() == of_main, (
        "that agent has not done better since"
    )
    await settle_well(store, MAIN)
    assert await store.reads.events.last_failure() is None
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert surface.last_failure == of_main, "an agent's own history keeps it"


@pytest.mark.requirement("console:activity-is-counted")
@pytest.mark.requirement("daemon-status:asking-is-waiting")
async def test_activity_counts_public_agents_that_run_or_wait(store: Store) -> None:
    assert await store.reads.agents.runtime_activity() == ActivityCounts()
    agents = ["boots", "runs", "idles", "waits", "rests", "stopped", "asks", "plans"]
    await write(store, *(born(name) for name in agents))
    await write(store, born("hidden", visibility=Visibility.PRIVATE))
    postures = {
        "boots": AgentStatus.BOOTING,
        "runs": AgentStatus.AWAKE_RUNNING,
        "hidden": AgentStatus.AWAKE_RUNNING,
        "idles": AgentStatus.AWAKE_IDLE,
        "stopped": AgentStatus.STOPPED,
    }
    await write(
        store,
        *(
            SetAgentStatus(agent_id=AgentId(name), status=status, reason="test")
            for name, status in postures.items()
        ),
        *(
            OpenWait(wait=a_wait(f"wait_{name}", agent_id=AgentId(name)))
            for name in ("waits", "stopped", "runs", "hidden")
        ),
        OpenWait(wait=a_wait("wait_rest", agent_id=AgentId("rests"), kind=WaitKind.REST)),
        *(
            PutWorkItem(
                item=msgspec.structs.replace(
                    a_work_item(f"work_{name}"), agent_id=AgentId(name), plan_status=plan
                )
            )
            for name, plan in (
                ("asks", PlanStatus.NEEDS_INPUT),
                ("runs", PlanStatus.NEEDS_INPUT),
                ("stopped", PlanStatus.NEEDS_INPUT),
                ("plans", PlanStatus.DRAFT),
            )
        ),
        CreateTask(task=a_task()),
    )
    assert await store.reads.agents.runtime_activity() == ActivityCounts(
        # boots, runs, idles, waits, asks its operator, and main with its task
        active_agent_count=6,
        processing_agent_count=2,
        waiting_agent_count=3,
        active_task_count=1,
    )


@pytest.mark.requirement("console:activity-is-counted")
async def test_a_census_counts_every_agent_in_use_and_what_is_kept(store: Store) -> None:
    before = await store.reads.agents.census()
    await write(store, born("stopped"), born("hidden", visibility=Visibility.PRIVATE))
    await write(
        store,
        SetAgentStatus(agent_id=AgentId("stopped"), status=AgentStatus.STOPPED, reason="test"),
        QueueMessage(message=a_message("msg_1")),
    )
    census = await store.reads.agents.census()
    assert census.agents[AgentStatus.STOPPED] == 1
    assert sum(census.agents.values()) == sum(before.agents.values()) + 2
    assert (before.queued_message_count, census.queued_message_count) == (0, 1)
    assert census.kept_event_count == await store.reads.events.last_log_seq()
    assert census.database_bytes >= await store.reads.events.used_bytes() > 0
    assert census.wal_bytes >= 0


async def test_counting_stops_at_the_bound(store: Store) -> None:
    for batch in range(11):
        numbers = range(batch * 100, batch * 100 + 100)
        await write(store, *(AppendBrief(brief=a_brief(f"b_{n}")) for n in numbers))
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert surface.counts.briefs == SURFACE_COUNTED_COUNT_MAX
