"""Commits of services: control, timers, work items, tasks, waits and wake hints.

Owns:  each durable operator or runtime act that is not part of a turn, as one commit.
Rule 1: what must become durable together is one commit: a cancelled timer and its voided ticks, a
        task's end with its message and wait, a stop and the turn it cuts off.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.decide.agents.lifecycle import next_status
from holon.decide.budgets.no_progress import reset_turn_rate
from holon.decide.queue.admission import Admitted
from holon.decide.wake.timers import FireDecision
from holon.model.agents import AgentSignal, AgentStatus
from holon.model.commits import (
    AdvanceTask,
    AgentGeneration,
    AgentInStatus,
    AppendBrief,
    CancelTimer,
    Change,
    Commit,
    Expect,
    FireTimer,
    MessageInState,
    MoveWait,
    OpenWait,
    QueueMessage,
    RecordEvent,
    RememberActivation,
    RescheduleTimer,
    SetAgentStatus,
    SettleMessage,
    TaskNotTerminal,
    TimerAtSlot,
    WaitInState,
    WorkItemAtRevision,
)
from holon.model.events.briefs import BriefKind, BriefRecord, OperatorVisibility
from holon.model.events.event import ControlApplied
from holon.model.events.reads import AgentSnapshot, DueTimer
from holon.model.queue import MessageState
from holon.model.record import Record
from holon.model.values import BriefId, MessageId, WorkspaceId, to_micros
from holon.model.wake import TimerRecord, WaitRecord, WaitState
from holon.model.work import ActivationMemory, WorkItemRecord


def queue_change(admitted: Admitted) -> QueueMessage:
    """The change that puts an admitted message into its queue."""
    return QueueMessage(
        message=admitted.message,
        idempotency_key=admitted.idempotency_key,
        body_digest=admitted.body_digest,
        tick_key=admitted.tick_key,
    )


class StatusRequest(Record, frozen=True, kw_only=True):
    """A request to move an agent's posture from outside."""

    request_id: str
    action: str
    signals: tuple[AgentSignal, ...]
    reason: str
    also: tuple[Change, ...] = ()


def control_commit(snapshot: AgentSnapshot, request: StatusRequest, *, now: datetime) -> Commit:
    """Move the posture and fence the lane; raises ForbiddenTransitionError when it may not.

    The signals are folded from the posture in the snapshot, so a resume means the same whether the
    agent was paused or stopped when it was decided.
    """
    agent = snapshot.agent
    agent_id = agent.identity.agent_id
    status: AgentStatus = agent.posture.status
    for signal in request.signals:
        status = next_status(status, signal)
    if status is AgentStatus.BOOTING:
        status = next_status(
            status, AgentSignal.BOOTED
        )  # an agent is rows: nothing is left to boot
    return Commit(
        commit_id=f"control:{request.request_id}",
        at=now,
        changes=(
            *request.also,
            SetAgentStatus(
                agent_id=agent_id,
                status=status,
                reason=request.reason,
                new_generation=agent.generation + 1,
            ),
            RecordEvent(
                agent_id=agent_id,
                event=ControlApplied(action=request.action, request_id=request.request_id),
            ),
            *((reset_turn_rate(agent_id),) if agent.pace.self_started_count else ()),
        ),
        expects=(
            AgentGeneration(agent_id=agent_id, generation=agent.generation),
            AgentInStatus(agent_id=agent_id, statuses=(agent.posture.status,)),
        ),
    )


def fire_commit(
    due: DueTimer,
    *,
    fire: FireDecision,
    tick: Admitted | None,
    expects: tuple[Expect, ...],
    now: datetime,
) -> Commit:
    """Move a timer past its slot and, unless one still waits, queue its tick."""
    timer = due.timer
    slot = slot_of(timer)
    changes: list[Change] = [
        FireTimer(
            agent_id=timer.agent_id,
            timer_id=timer.id,
            slot=slot,
            next_fire_at=fire.next_fire_at,
            late_by_ms=fire.late_by_ms,
        )
    ]
    if tick is not None:
        changes.append(queue_change(tick))
        if timer.wait_id is not None:
            changes.append(
                MoveWait(
                    agent_id=timer.agent_id,
                    wait_id=timer.wait_id,
                    state=WaitState.TRIGGERED,
                    by=timer.id,
                    triggered_by=tick.message.id,
                )
            )
    return Commit(
        # The count distinguishes a slot that comes a second time, after a clock setback, from a
        # repeat of its fire.
        commit_id=f"fire:{timer.id}:{to_micros(slot)}:{timer.fire_count}",
        at=now,
        changes=tuple(changes),
        expects=(TimerAtSlot(timer_id=timer.id, slot=slot), *expects),
    )


def reschedule_commit(
    commit_id: str, timer: TimerRecord, *, next_fire_at: datetime, now: datetime
) -> Commit:
    """Move a timer to another moment, after the clock was set."""
    slot = slot_of(timer)
    return Commit(
        commit_id=commit_id,
        at=now,
        changes=(
            RescheduleTimer(
                agent_id=timer.agent_id, timer_id=timer.id, slot=slot, next_fire_at=next_fire_at
            ),
        ),
        expects=(TimerAtSlot(timer_id=timer.id, slot=slot),),
    )


def slot_of(timer: TimerRecord) -> datetime:
    """The slot an active timer waits for."""
    assert timer.next_fire_at is not None, "an active timer always has a next slot"
    return timer.next_fire_at


def cancel_timer_changes(
    timer: TimerRecord, queued_ticks: Sequence[MessageId]
) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
    """Stop a timer, void its queued ticks and end the wait that depended on it."""
    changes: list[Change] = [CancelTimer(agent_id=timer.agent_id, timer_id=timer.id)]
    expects: list[Expect] = [TimerAtSlot(timer_id=timer.id, slot=slot_of(timer))]
    for message_id in queued_ticks:
        expects.append(MessageInState(message_id=message_id, state=MessageState.QUEUED))
        changes.append(
            SettleMessage(
                agent_id=timer.agent_id,
                message_id=message_id,
                state=MessageState.DROPPED,
                reason="timer_cancelled",
            )
        )
    return tuple(changes), tuple(expects)


def expire_wait_commit(
    wait: WaitRecord, tick: Admitted, *, expects: tuple[Expect, ...], now: datetime
) -> Commit:
    """A wait's deadline passed: inform the agent in the commit that ends the wait."""
    return Commit(
        commit_id=f"wait:{wait.id}:expired",
        at=now,
        changes=(
            MoveWait(
                agent_id=wait.agent_id,
                wait_id=wait.id,
                state=WaitState.EXPIRED,
                by="deadline",
                triggered_by=tick.message.id,
            ),
            queue_change(tick),
        ),
        expects=(WaitInState(wait_id=wait.id, state=WaitState.ACTIVE), *expects),
    )


class TaskEnd(Record, frozen=True, kw_only=True):
    """A task's terminal step with its result message and the waits it ends."""

    advance: AdvanceTask
    result: Admitted | None  # absent when the agent is archived: it will not be read
    waits: tuple[WaitRecord, ...] = ()


def task_end_changes(end: TaskEnd) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
    """The task's end, its result message and the waits it ends: one unit, never split."""
    changes: list[Change] = [end.advance]
    expects: list[Expect] = [TaskNotTerminal(task_id=end.advance.task_id)]
    for wait in end.waits:
        expects.append(WaitInState(wait_id=wait.id, state=wait.state))
        changes.append(
            MoveWait(
                agent_id=wait.agent_id,
                wait_id=wait.id,
                state=WaitState.TRIGGERED if end.result else WaitState.CANCELLED,
                by=end.advance.task_id,
                triggered_by=end.result.message.id if end.result else None,
            )
        )
    if end.result is not None:
        changes.append(queue_change(end.result))
    return tuple(changes), tuple(expects)


class OperatorQuestion(Record, frozen=True, kw_only=True):
    """The runtime stops offering an item and asks the operator instead."""

    item: WorkItemRecord
    wait: WaitRecord
    brief_id: BriefId
    text: str
    memory: ActivationMemory
    workspace_id: WorkspaceId | None = None  # where the agent works


def ask_operator_commit(
    question: OperatorQuestion, *, snapshot: AgentSnapshot, now: datetime
) -> Commit:
    """Open an operator wait on the item and inform the operator once."""
    agent = snapshot.agent
    brief = BriefRecord(
        id=question.brief_id,
        agent_id=agent.identity.agent_id,
        kind=BriefKind.RESULT,
        created_at=now,
        text=question.text,
        workspace_id=question.workspace_id,
        work_item_id=question.wait.work_item_id,
    )
    return Commit(
        commit_id=f"wait:{question.wait.id}:active",
        at=now,
        changes=(
            OpenWait(wait=question.wait),
            RememberActivation(memory=question.memory),
            AppendBrief(brief=brief, visibility=OperatorVisibility.ACTION_REQUIRED),
        ),
        expects=(
            AgentGeneration(agent_id=agent.identity.agent_id, generation=agent.generation),
            WorkItemAtRevision(work_item_id=question.item.id, revision=question.item.revision),
        ),
    )
