"""What the reads return, and that they stay cheap."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from holon.adapters.sqlite.store import SqliteStore, open_connection_store
from holon.decide.events.audit import audited
from holon.model.agents import AgentContext, AgentStatus, AgentTotals
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Applied,
    CancelTimer,
    Change,
    ClaimMessage,
    CreateTask,
    CreateTimer,
    FinishToolCall,
    FireTimer,
    FocusWorkItem,
    MarkSeen,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RecordClosure,
    RememberActivation,
    SetAgentStatus,
    SetModelOverride,
    SettleMessage,
    SettleTurn,
    StartToolCall,
    TakeWakeHints,
)
from holon.model.limits import DAY_MS, HOUR_MS, WORK_ITEMS_WEIGHED_COUNT_MAX
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageState, Priority
from holon.model.tasks import TaskStatus
from holon.model.turns.compaction import RememberContext
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import Completed
from holon.model.values import AgentId, MessageId, TaskId, TimerId, WaitId, WorkItemId
from holon.model.wake import TimerStatus, WaitKind, WaitState
from holon.model.work import PlanStatus
from tests.adapters.sqlite.raw_rows import a_writer
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_hint,
    a_message,
    a_receipt,
    a_round,
    a_task,
    a_terminal,
    a_timer,
    a_timer_tick,
    a_tool_call,
    a_turn,
    a_wait,
    a_work_item,
    an_activation,
    an_agent,
    an_entry,
    moment,
)
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock

HOUR: Final = moment(HOUR_MS)
WORK: Final = WorkItemId("work_1")


class Bench:
    """A store in memory that takes changes one commit at a time."""

    def __init__(self) -> None:
        self.connection, _ = a_writer()
        clock = ManualClock(START)
        self.store: SqliteStore = open_connection_store(
            self.connection, lambda shared: InlineWriter(shared, clock, NoFaults())
        )
        self.reads = self.store.reads
        self._count = 0

    async def make(self, *changes: Change) -> None:
        """Apply changes that must be accepted."""
        self._count += 1
        assert await self.store.apply(audited(a_commit(f"c{self._count}", *changes))) == Applied()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """One sleeping agent."""
    made = Bench()
    await made.make(an_agent())
    yield made
    made.connection.close()


def queued(message_id: str, priority: Priority = Priority.NORMAL) -> QueueMessage:
    return QueueMessage(message=a_message(message_id, priority=priority))


def settled(message_id: str, *, unseen: bool = False) -> SettleMessage:
    return SettleMessage(
        agent_id=MAIN,
        message_id=MessageId(message_id),
        state=MessageState.PROCESSED,
        reason="r",
        unseen=unseen,
    )


def claimed(message_id: str, *, generation: int = 1, passed_over: int = 0) -> ClaimMessage:
    return ClaimMessage(
        agent_id=MAIN,
        message_id=MessageId(message_id),
        generation=generation,
        passed_over=passed_over,
    )


def in_status(status: AgentStatus) -> SetAgentStatus:
    return SetAgentStatus(agent_id=MAIN, status=status, reason="test")


async def test_an_unknown_agent_is_nothing(bench: Bench) -> None:
    nobody = AgentId("nobody")
    assert await bench.reads.agents.agent(nobody) is None
    assert await bench.reads.agents.snapshot(nobody, now=START) is None
    assert await bench.reads.queue.admission_target(nobody) is None
    assert await bench.reads.events.event_bounds(nobody) == (0, 0)
    assert await bench.reads.queue.message(MessageId("msg_x")) is None


async def test_the_snapshot_shows_the_oldest_message_of_each_band(bench: Bench) -> None:
    for n, priority in enumerate([Priority.NORMAL, Priority.NORMAL, Priority.INTERJECT]):
        await bench.make(queued(f"msg_{n}", priority))
    await bench.make(queued("msg_9", Priority.BACKGROUND))
    await bench.make(claimed("msg_9", generation=4, passed_over=2))
    snapshot = await bench.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert [head.message_id for head in snapshot.heads] == ["msg_2", "msg_0"]
    assert snapshot.claimed_message_id == "msg_9"
    assert (snapshot.passed_over, snapshot.agent.generation) == (2, 4)
    assert await bench.reads.queue.interjections(MAIN, limit=9) == [
        a_message("msg_2", priority=Priority.INTERJECT)
    ]


async def test_the_snapshot_weighs_items_with_their_waits_and_memory(bench: Bench) -> None:
    wait = a_wait(kind=WaitKind.OPERATOR, work_item_id=WORK, source_id=None)
    await bench.make(
        PutWorkItem(item=a_work_item("work_1")),
        PutWorkItem(item=a_work_item("work_2", created_at=moment(-5))),
        FocusWorkItem(agent_id=MAIN, work_item_id=WORK),
        OpenWait(wait=wait),
        OpenWait(wait=a_wait("wait_2", kind=WaitKind.REST)),
        RememberActivation(memory=an_activation("work_2")),
        ParkWakeHint(hint=a_hint()),
        CreateTimer(timer=a_timer()),
    )
    snapshot = await bench.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert snapshot.current is not None
    assert snapshot.current.item.id == "work_1"
    assert snapshot.current.waits == (wait,)
    assert snapshot.current.activation is None
    assert [weighed.item.id for weighed in snapshot.queued] == ["work_2"]
    assert snapshot.queued[0].activation == an_activation("work_2")
    assert [found.id for found in snapshot.agent_waits] == ["wait_2"]
    assert snapshot.hints == (a_hint(),)
    assert snapshot.active_timer_count == 1


async def test_items_that_may_run_are_weighed_first_when_there_are_too_many(bench: Bench) -> None:
    blocked = [
        PutWorkItem(item=a_work_item(f"blocked_{n:03}", blocked_by="x"))
        for n in range(WORK_ITEMS_WEIGHED_COUNT_MAX)
    ]
    runnable = PutWorkItem(item=a_work_item("newest", created_at=HOUR))
    await bench.make(*blocked, runnable)
    snapshot = await bench.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert len(snapshot.queued) == WORK_ITEMS_WEIGHED_COUNT_MAX
    assert snapshot.queued[-1].item.id == "newest", "still in the order of creation"


async def test_a_wait_on_an_item_that_is_not_weighed_is_known_all_the_same(bench: Bench) -> None:
    runnable = [
        PutWorkItem(item=a_work_item(f"work_{n:03}")) for n in range(WORK_ITEMS_WEIGHED_COUNT_MAX)
    ]
    asked = a_wait(kind=WaitKind.OPERATOR, work_item_id=WorkItemId("asked"), source_id=None)
    resting = a_wait("wait_2", kind=WaitKind.REST)
    await bench.make(
        *runnable,
        PutWorkItem(item=a_work_item("asked")),
        OpenWait(wait=asked),
        OpenWait(wait=resting),
    )
    snapshot = await bench.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    assert "asked" not in [weighed.item.id for weighed in snapshot.queued]
    assert [wait.id for wait in snapshot.waits] == [resting.id, asked.id]


@pytest.mark.requirement("store:recheck-reminds-once")
async def test_a_blocked_item_comes_up_when_its_reminder_is_due_and_not_used_up(
    bench: Bench,
) -> None:
    await bench.make(
        PutWorkItem(item=a_work_item("due", blocked_by="x", recheck_at=HOUR)),
        PutWorkItem(
            item=a_work_item("used", blocked_by="x", recheck_at=HOUR, recheck_consumed_at=HOUR)
        ),
        PutWorkItem(item=a_work_item("free", plan_status=PlanStatus.NEEDS_INPUT, recheck_at=HOUR)),
    )
    early = await bench.reads.agents.snapshot(MAIN, now=START)
    late = await bench.reads.agents.snapshot(MAIN, now=HOUR)
    assert early is not None
    assert late is not None
    assert early.due_rechecks == ()
    assert [weighed.item.id for weighed in late.due_rechecks] == ["due"]
    assert late.due_rechecks[0].item.blocked_by == "x"
    assert await bench.reads.wake.next_due_at(after=START) == HOUR
    assert await bench.reads.wake.due_activations(START, limit=9) == []
    assert await bench.reads.wake.due_activations(HOUR, limit=9) == [MAIN]


async def test_an_agent_carries_what_its_turns_added_up_to(bench: Bench) -> None:
    turn = a_turn()
    usage = TokenUsage(input_tokens=10, output_tokens=4)
    await bench.make(queued("msg_1"))
    await bench.make(claimed("msg_1"), OpenTurn(turn=turn))
    await bench.make(
        SettleTurn(
            agent_id=MAIN,
            turn_id=turn.turn_id,
            terminal=a_terminal(turn),
            usage=usage,
            round_count=2,
        ),
        settled("msg_1"),
        AppendBrief(brief=a_brief(turn_id=turn.turn_id)),
        SetModelOverride(agent_id=MAIN, model="m"),
    )
    state = await bench.reads.agents.agent(MAIN)
    assert state is not None
    assert state.totals == AgentTotals(
        turn_index=1, message_count=1, model_round_count=2, input_tokens=10, output_tokens=4
    )
    assert state.last_terminal == a_terminal(turn)
    assert state.last_brief_at == START
    assert state.model.override_model == "m"
    assert state.focus.open_turn_id is None


async def test_a_turn_log_joins_calls_with_their_receipts(bench: Bench) -> None:
    turn = a_turn()
    first, second = a_tool_call(turn, position=0), a_tool_call(turn, position=1)
    finished = FinishToolCall(
        agent_id=MAIN,
        turn_id=turn.turn_id,
        effect_id=first.effect_id,
        tool_name=first.name,
        state=ToolCallState.SUCCEEDED,
        receipt=a_receipt(first),
    )
    await bench.make(queued("msg_1"))
    await bench.make(claimed("msg_1"), OpenTurn(turn=turn))
    entry = an_entry(turn, position=0, data=a_round())
    await bench.make(
        AppendTranscript(entry=entry), StartToolCall(call=first), StartToolCall(call=second)
    )
    await bench.make(finished)
    log = await bench.reads.turns.turn_log(turn.turn_id)
    assert log is not None
    assert log.entries == (entry,)
    assert [call.receipt for call in log.calls] == [a_receipt(first), None]
    assert log.calls[0].call.state is ToolCallState.SUCCEEDED
    assert log.calls[0].call.input == first.input
    assert await bench.reads.turns.agents_with_open_turns() == [MAIN]
    assert await bench.reads.turns.recent_turns(MAIN, limit=5) == [], (
        "only settled turns are history"
    )


async def make_turn(bench: Bench, n: int) -> None:
    """Have the agent's turn of a number happen, from its message to its end."""
    turn = a_turn(f"turn_{n}", message_id=f"msg_{n}", index=n)
    await bench.make(queued(f"msg_{n}"))
    await bench.make(claimed(f"msg_{n}", generation=n), OpenTurn(turn=turn))
    await bench.make(AppendTranscript(entry=an_entry(turn, position=0, data=a_round())))
    end = SettleTurn(
        agent_id=MAIN,
        turn_id=turn.turn_id,
        terminal=a_terminal(turn),
        usage=TokenUsage(),
        round_count=1,
    )
    await bench.make(end, settled(f"msg_{n}"))


async def test_recent_turns_are_the_newest_in_the_order_they_happened(bench: Bench) -> None:
    for n in range(1, 5):
        await make_turn(bench, n)
    logs = await bench.reads.turns.recent_turns(MAIN, limit=2)
    assert [log.turn.turn_index for log in logs] == [3, 4]
    since = await bench.reads.turns.recent_turns(MAIN, limit=9, from_turn=2)
    assert [log.turn.turn_index for log in since] == [2, 3, 4]


async def test_a_turn_that_was_read_before_is_found_with_those_that_came_since(
    bench: Bench,
) -> None:
    seen = list[TurnLog]()
    for n in range(1, 4):
        await make_turn(bench, n)
        seen = list(await bench.reads.turns.recent_turns(MAIN, limit=9))
        assert [log.turn.turn_index for log in seen] == list(range(1, n + 1))
    one_by_one = [await bench.reads.turns.turn_log(log.turn.turn_id) for log in seen]
    assert seen == one_by_one
    again = await bench.reads.turns.recent_turns(MAIN, limit=9)
    assert all(first is second for first, second in zip(seen, again, strict=True))


async def test_a_context_is_what_was_last_remembered_and_never_moves_back(bench: Bench) -> None:
    assert await bench.reads.agents.agent_context(MAIN) == AgentContext()
    moved = AgentContext(history_from_turn=13, compression_epoch=1, recap=("turn 1", "ä"))
    await bench.make(RememberContext(agent_id=MAIN, context=moved))
    assert await bench.reads.agents.agent_context(MAIN) == moved
    assert await bench.reads.agents.agent_context(AgentId("nobody")) == AgentContext()


async def test_unseen_messages_are_listed_until_they_are_shown(bench: Bench) -> None:
    for n in range(3):
        await bench.make(queued(f"msg_{n}"))
        await bench.make(settled(f"msg_{n}", unseen=n != 1))
    assert [m.id for m in await bench.reads.queue.unseen(MAIN, limit=9)] == ["msg_0", "msg_2"]
    await bench.make(MarkSeen(agent_id=MAIN, message_ids=(MessageId("msg_0"),)))
    assert [m.id for m in await bench.reads.queue.unseen(MAIN, limit=9)] == ["msg_2"]


RESTLESS: Final[dict[str, tuple[Change, ...]]] = {
    "a queued message": (queued("msg_1"),),
    "a claimed message": (queued("msg_1"), claimed("msg_1")),
    "a parked hint": (ParkWakeHint(hint=a_hint()),),
    "an item that may run": (PutWorkItem(item=a_work_item()),),
    "an item whose reminder has come": (
        PutWorkItem(item=a_work_item(blocked_by="x", recheck_at=START)),
    ),
    "an item that was held back until now": (
        PutWorkItem(item=a_work_item()),
        RememberActivation(memory=an_activation(not_before=START)),
    ),
    "an item that moved since it was offered": (
        PutWorkItem(item=a_work_item()),
        RememberActivation(memory=an_activation(not_before=HOUR)),
        PutWorkItem(item=a_work_item(revision=2)),
    ),
    "an item whose wait has ended": (
        PutWorkItem(item=a_work_item()),
        OpenWait(wait=a_wait(work_item_id=WORK)),
        MoveWait(agent_id=MAIN, wait_id=WaitId("wait_1"), state=WaitState.RESOLVED, by="operator"),
    ),
}
QUIET: Final[dict[str, tuple[Change, ...]]] = {
    "nothing": (),
    "history": (queued("msg_1"), settled("msg_1")),
    "a hint that was taken": (
        ParkWakeHint(hint=a_hint()),
        TakeWakeHints(agent_id=MAIN, source_keys=("github",)),
    ),
    "a blocked item": (PutWorkItem(item=a_work_item(blocked_by="x", recheck_at=HOUR)),),
    "an item that needs input": (
        PutWorkItem(item=a_work_item(plan_status=PlanStatus.NEEDS_INPUT)),
    ),
    "an item that waits": (
        PutWorkItem(item=a_work_item()),
        OpenWait(wait=a_wait(work_item_id=WORK)),
    ),
    "an item that is held back": (
        PutWorkItem(item=a_work_item()),
        RememberActivation(memory=an_activation(not_before=HOUR)),
    ),
    "a timer": (CreateTimer(timer=a_timer()),),
    "a queue that may not run": (queued("msg_1"), in_status(AgentStatus.PAUSED)),
    "work that may not run": (PutWorkItem(item=a_work_item()), in_status(AgentStatus.STOPPED)),
}


@pytest.mark.parametrize("changes", RESTLESS.values(), ids=RESTLESS)
async def test_an_agent_is_restless_for(bench: Bench, changes: tuple[Change, ...]) -> None:
    await bench.make(an_agent("another, which sleeps"), *changes)
    assert await bench.reads.agents.restless(now=START) == [MAIN]


@pytest.mark.parametrize("changes", QUIET.values(), ids=QUIET)
async def test_an_agent_is_not_restless_for(bench: Bench, changes: tuple[Change, ...]) -> None:
    await bench.make(*changes, RecordClosure(agent_id=MAIN, closure=Completed()))
    assert await bench.reads.agents.restless(now=START) == []


async def test_a_claim_counts_whatever_the_posture(bench: Bench) -> None:
    await bench.make(queued("msg_1"), claimed("msg_1"), in_status(AgentStatus.STOPPED))
    assert await bench.reads.agents.restless(now=START) == [MAIN]


async def test_timers_come_due_in_order_and_say_whether_a_tick_waits(bench: Bench) -> None:
    await bench.make(
        CreateTimer(timer=a_timer("late", next_fire_at=HOUR)),
        CreateTimer(timer=a_timer("early", next_fire_at=START, interval_ms=HOUR_MS)),
        QueueMessage(message=a_timer_tick("msg_1", "late")),
    )
    assert await bench.reads.wake.next_due_at(after=moment(-1)) == START
    assert await bench.reads.wake.next_due_at(after=START) == HOUR
    due = await bench.reads.wake.due_timers(HOUR, limit=9)
    assert [(each.timer.id, each.tick_pending) for each in due] == [
        ("early", False),
        ("late", True),
    ]
    assert await bench.reads.wake.due_timers(moment(1), limit=9) == [due[0]]
    ticks = await bench.reads.queue.queued_ticks(MAIN, timer_id=TimerId("late"))
    assert ticks == ["msg_1"]
    await bench.make(in_status(AgentStatus.STOPPED))
    assert await bench.reads.wake.due_timers(HOUR, limit=9) == []


async def test_a_timer_moves_along_its_grid_and_ends(bench: Bench) -> None:
    timer_id = TimerId("timer_1")
    await bench.make(CreateTimer(timer=a_timer(interval_ms=HOUR_MS)))
    await bench.make(FireTimer(agent_id=MAIN, timer_id=timer_id, slot=START, next_fire_at=HOUR))
    fired = await bench.reads.wake.timer(timer_id)
    assert fired is not None
    assert (fired.fire_count, fired.next_fire_at, fired.last_fired_at) == (1, HOUR, START)
    await bench.make(CancelTimer(agent_id=MAIN, timer_id=timer_id))
    cancelled = await bench.reads.wake.timer(timer_id)
    assert cancelled is not None
    assert (cancelled.status, cancelled.next_fire_at) == (TimerStatus.CANCELLED, None)
    assert await bench.reads.wake.due_timers(HOUR, limit=9) == []


async def test_waits_are_found_by_source_by_item_and_by_deadline(bench: Bench) -> None:
    wait = a_wait(work_item_id=WORK, deadline_at=HOUR)
    await bench.make(PutWorkItem(item=a_work_item()), OpenWait(wait=wait))
    assert await bench.reads.wake.waits_on("task_1") == [wait]
    assert await bench.reads.wake.item_waits(WORK) == [wait]
    assert await bench.reads.wake.next_due_at(after=START) == HOUR
    assert await bench.reads.wake.due_waits(HOUR, limit=9) == [wait]
    await bench.make(
        MoveWait(
            agent_id=MAIN,
            wait_id=wait.id,
            state=WaitState.TRIGGERED,
            by="task_1",
            triggered_by=MessageId("msg_1"),
        )
    )
    assert await bench.reads.wake.due_waits(HOUR, limit=9) == []
    (triggered,) = await bench.reads.wake.waits_on("task_1")
    assert (triggered.state, triggered.triggered_by) == (WaitState.TRIGGERED, "msg_1")


async def test_held_work_comes_due_for_an_idle_agent_only(bench: Bench) -> None:
    held = RememberActivation(memory=an_activation(not_before=HOUR))
    await bench.make(PutWorkItem(item=a_work_item()), held)
    assert await bench.reads.wake.next_due_at(after=START) == HOUR
    assert await bench.reads.wake.due_activations(START, limit=9) == []
    assert await bench.reads.wake.due_activations(HOUR, limit=9) == [MAIN]
    assert await bench.reads.wake.due_activations(moment(-DAY_MS), limit=9) == [MAIN], (
        "clock set back"
    )
    await bench.make(queued("msg_1"))
    assert await bench.reads.wake.due_activations(HOUR, limit=9) == []


async def test_a_task_is_read_as_it_stands(bench: Bench) -> None:
    await bench.make(CreateTask(task=a_task()))
    assert await bench.reads.tasks.open_tasks() == [a_task()]
    await bench.make(
        AdvanceTask(
            agent_id=MAIN,
            task_id=TaskId("task_1"),
            status=TaskStatus.COMPLETED,
            result_summary="ok",
            exit_status=0,
        )
    )
    task = await bench.reads.tasks.task(TaskId("task_1"))
    assert task is not None
    assert (task.status, task.result_summary, task.exit_status) == ("completed", "ok", 0)
    assert await bench.reads.tasks.open_tasks() == []
