"""The commits of the desks: what belongs together is one unit."""

from datetime import datetime

import msgspec
import pytest

from holon.decide.queue.admission import Admitted
from holon.decide.queue.commits import (
    OperatorQuestion,
    StatusRequest,
    TaskEnd,
    ask_operator_commit,
    cancel_timer_changes,
    control_commit,
    expire_wait_commit,
    fire_commit,
    queue_change,
    task_end_changes,
)
from holon.decide.wake.timers import FireDecision
from holon.model.agents import AgentSignal, AgentStatus
from holon.model.commits import (
    AdvanceTask,
    AgentAdmits,
    AgentGeneration,
    AgentInStatus,
    AppendBrief,
    CancelTimer,
    FireTimer,
    MarkSeen,
    MessageInState,
    MoveWait,
    OpenWait,
    QueueMessage,
    RecordEvent,
    RememberActivation,
    SetAgentStatus,
    SettleMessage,
    TaskNotTerminal,
    TimerAtSlot,
    WaitInState,
    WorkItemAtRevision,
)
from holon.model.errors import ForbiddenTransitionError
from holon.model.events.event import ControlApplied
from holon.model.events.reads import AgentSnapshot, DueTimer
from holon.model.queue import MessageState
from holon.model.tasks import TaskStatus
from holon.model.values import BriefId, MessageId, TaskId, TimerId, WaitId, to_micros
from holon.model.wake import Every, TimerRecord, WaitKind, WaitState
from tests.decide.sample_rows import AGENT_ID, MEMORY, NOW, agent_in, seconds, wait_of, weighed
from tests.decide.turn_rows import prompt

TIMER = TimerRecord(
    id=TimerId("timer_1"),
    agent_id=AGENT_ID,
    created_at=NOW,
    anchor_at=NOW,
    schedule=Every(interval_ms=60_000),
    next_fire_at=NOW,
)
TICK = Admitted(message=prompt(), tick_key="timer:timer_1")
GUARD = AgentAdmits(agent_id=AGENT_ID)


def test_an_admitted_message_is_queued_under_its_keys() -> None:
    admitted = Admitted(message=prompt(), idempotency_key="k", body_digest="d", tick_key="t")
    assert queue_change(admitted) == QueueMessage(
        message=prompt(), idempotency_key="k", body_digest="d", tick_key="t"
    )


@pytest.mark.parametrize(
    ("status", "signals", "expected"),
    [
        (AgentStatus.AWAKE_RUNNING, (AgentSignal.STOP_REQUESTED,), AgentStatus.STOPPED),
        (AgentStatus.ASLEEP, (AgentSignal.PAUSE_REQUESTED,), AgentStatus.PAUSED),
        (
            AgentStatus.STOPPED,
            (AgentSignal.RESUME_REQUESTED,),
            AgentStatus.AWAKE_IDLE,
        ),
    ],
)
def test_a_control_moves_the_posture_fences_the_lane_and_says_so(
    status: AgentStatus, signals: tuple[AgentSignal, ...], expected: AgentStatus
) -> None:
    also = MarkSeen(agent_id=AGENT_ID, message_ids=())
    request = StatusRequest(
        request_id="req_1", action="act", signals=signals, reason="because", also=(also,)
    )
    commit = control_commit(AgentSnapshot(agent=agent_in(status)), request, now=NOW)
    assert commit.changes == (
        also,
        SetAgentStatus(agent_id=AGENT_ID, status=expected, reason="because", new_generation=2),
        RecordEvent(agent_id=AGENT_ID, event=ControlApplied(action="act", request_id="req_1")),
    )
    assert commit.expects == (
        AgentGeneration(agent_id=AGENT_ID, generation=1),
        AgentInStatus(agent_id=AGENT_ID, statuses=(status,)),
    )


def test_a_control_the_lifecycle_forbids_makes_no_commit() -> None:
    request = StatusRequest(
        request_id="r", action="wake", signals=(AgentSignal.WOKEN,), reason="because"
    )
    with pytest.raises(ForbiddenTransitionError):
        control_commit(AgentSnapshot(agent=agent_in(AgentStatus.STOPPED)), request, now=NOW)


@pytest.mark.parametrize("next_fire_at", [None, NOW + seconds(60)])
def test_a_fire_is_named_by_its_slot_and_moves_the_timer_with_its_tick(
    next_fire_at: datetime | None,
) -> None:
    due = DueTimer(timer=TIMER, tick_pending=False)
    fire = FireDecision(slot=NOW, next_fire_at=next_fire_at, queues_tick=True, late_by_ms=7)
    commit = fire_commit(due, fire=fire, tick=TICK, expects=(GUARD,), now=NOW)
    assert commit.commit_id == f"fire:timer_1:{to_micros(NOW)}:{TIMER.fire_count}"
    assert commit.changes == (
        FireTimer(
            agent_id=AGENT_ID,
            timer_id=TIMER.id,
            slot=NOW,
            next_fire_at=next_fire_at,
            late_by_ms=7,
        ),
        queue_change(TICK),
    )
    assert commit.expects == (TimerAtSlot(timer_id=TIMER.id, slot=NOW), GUARD)


def test_a_fire_without_a_tick_only_moves_the_timer() -> None:
    due = DueTimer(timer=TIMER, tick_pending=True)
    fire = FireDecision(slot=NOW, next_fire_at=NOW + seconds(60), queues_tick=False)
    commit = fire_commit(due, fire=fire, tick=None, expects=(), now=NOW)
    assert [type(change) for change in commit.changes] == [FireTimer]


def test_a_fire_triggers_the_wait_that_stands_on_its_timer() -> None:
    timer = msgspec.structs.replace(TIMER, wait_id=WaitId("wait_1"))
    due = DueTimer(timer=timer, tick_pending=False)
    fire = FireDecision(slot=NOW, next_fire_at=None, queues_tick=True)
    moved = fire_commit(due, fire=fire, tick=TICK, expects=(), now=NOW).changes[-1]
    assert isinstance(moved, MoveWait)
    assert (moved.state, moved.triggered_by) == (WaitState.TRIGGERED, TICK.message.id)


def test_cancelling_a_timer_voids_every_tick_that_still_waits() -> None:
    changes, expects = cancel_timer_changes(TIMER, (MessageId("msg_1"), MessageId("msg_2")))
    assert changes[0] == CancelTimer(agent_id=AGENT_ID, timer_id=TIMER.id)
    voided = changes[1:]
    assert all(isinstance(change, SettleMessage) for change in voided)
    assert {change.state for change in voided if isinstance(change, SettleMessage)} == {
        MessageState.DROPPED
    }
    assert expects == (
        TimerAtSlot(timer_id=TIMER.id, slot=NOW),
        MessageInState(message_id=MessageId("msg_1"), state=MessageState.QUEUED),
        MessageInState(message_id=MessageId("msg_2"), state=MessageState.QUEUED),
    )


def test_a_wait_that_runs_out_says_so_in_the_same_commit() -> None:
    wait = wait_of(WaitKind.TASK)
    commit = expire_wait_commit(wait, TICK, expects=(GUARD,), now=NOW)
    moved, queued = commit.changes
    assert isinstance(moved, MoveWait)
    assert (moved.state, moved.triggered_by) == (WaitState.EXPIRED, TICK.message.id)
    assert queued == queue_change(TICK)
    assert commit.expects == (WaitInState(wait_id=wait.id, state=WaitState.ACTIVE), GUARD)


@pytest.mark.parametrize("heard", [True, False])
def test_the_end_of_a_task_its_result_and_its_waits_are_one_unit(heard: bool) -> None:
    advance = AdvanceTask(agent_id=AGENT_ID, task_id=TaskId("task_1"), status=TaskStatus.COMPLETED)
    waits = (wait_of(WaitKind.TASK), msgspec.structs.replace(wait_of(WaitKind.TASK), id="wait_2"))
    end = TaskEnd(advance=advance, result=TICK if heard else None, waits=waits)
    changes, expects = task_end_changes(end)
    assert changes[0] == advance
    moved = [change for change in changes if isinstance(change, MoveWait)]
    assert [m.wait_id for m in moved] == [wait.id for wait in waits]
    assert {m.state for m in moved} == {WaitState.TRIGGERED if heard else WaitState.CANCELLED}
    assert {m.triggered_by for m in moved} == {TICK.message.id if heard else None}
    assert (queue_change(TICK) in changes) is heard
    assert expects == (
        TaskNotTerminal(task_id=TaskId("task_1")),
        *(WaitInState(wait_id=wait.id, state=wait.state) for wait in waits),
    )


def test_a_question_opens_the_wait_remembers_the_count_and_tells_the_operator_once() -> None:
    item = weighed().item
    wait = wait_of(WaitKind.OPERATOR)
    question = OperatorQuestion(
        item=item, wait=wait, brief_id=BriefId("brief_1"), text="how on?", memory=MEMORY
    )
    snapshot = AgentSnapshot(agent=agent_in(AgentStatus.ASLEEP))
    commit = ask_operator_commit(question, snapshot=snapshot, now=NOW)
    opened, remembered, told = commit.changes
    assert opened == OpenWait(wait=wait)
    assert remembered == RememberActivation(memory=MEMORY)
    assert isinstance(told, AppendBrief)
    assert (told.brief.text, told.brief.work_item_id) == ("how on?", item.id)
    assert commit.commit_id == f"wait:{wait.id}:active"
    assert WorkItemAtRevision(work_item_id=item.id, revision=item.revision) in commit.expects
