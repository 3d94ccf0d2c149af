"""Why an agent runs or rests, in one word and one sentence.

Owns:  the scheduling posture every agent surface shows.
Rule 1: it is read off rows, first match wins: down, in a turn, input, given up, work, waits,
        blocked, idle.
Rule 2: it names the one thing that matters most: a turn, an item, a wait or a task.
"""

from enum import StrEnum
from typing import Final

from holon.model.agent import AgentPace, IdentityStatus
from holon.model.agent_status import AgentStatus
from holon.model.ids import TaskId, TurnId, WaitId, WorkItemId
from holon.model.record import Record
from holon.model.surface import ListedAgent
from holon.model.text_size import one_line
from holon.model.wait import WaitKind, WaitRecord
from holon.model.work_item import PlanStatus, WorkItemRecord


class Posture(StrEnum):
    """What the scheduler makes of an agent."""

    ARCHIVED = "archived"
    STOPPED = "stopped"
    ACTIVE_TURN = "active_turn"
    HAS_QUEUED_INPUT = "has_queued_input"
    HAS_RUNNABLE_WORK = "has_runnable_work"
    WAITING_FOR_TASK = "waiting_for_task"
    WAITING_FOR_EXTERNAL = "waiting_for_external"
    WAITING_FOR_OPERATOR = "waiting_for_operator"
    BLOCKED = "blocked"
    IDLE = "idle"
    UNKNOWN = "unknown"  # for readers of a newer runtime; never written


class SchedulingPosture(Record, frozen=True, kw_only=True):
    """The posture, why, and what it is about. `run_id` is the open turn."""

    posture: Posture
    reason: str
    work_item_id: WorkItemId | None = None
    waiting_intent_id: WaitId | None = None
    task_id: TaskId | None = None
    run_id: TurnId | None = None


# First match wins. A rest holds nobody back, and a recheck belongs to a blocked item.
_WAITS: Final[tuple[tuple[WaitKind, Posture], ...]] = (
    (WaitKind.TASK, Posture.WAITING_FOR_TASK),
    (WaitKind.OPERATOR, Posture.WAITING_FOR_OPERATOR),
    (WaitKind.EXTERNAL, Posture.WAITING_FOR_EXTERNAL),
    (WaitKind.TIMER, Posture.WAITING_FOR_EXTERNAL),
    (WaitKind.SYSTEM, Posture.WAITING_FOR_EXTERNAL),
)


def scheduling_posture(listed: ListedAgent) -> SchedulingPosture:
    """Return the posture of an agent. First matching rule wins; read top to bottom."""
    agent = listed.agent
    if agent.identity.status is IdentityStatus.ARCHIVED:
        return SchedulingPosture(posture=Posture.ARCHIVED, reason="the agent is archived")
    if agent.posture.status in (AgentStatus.STOPPED, AgentStatus.PAUSED):
        status = agent.posture.status.value
        return SchedulingPosture(posture=Posture.STOPPED, reason=f"the agent is {status}")
    if (turn_id := agent.focus.open_turn_id) is not None:
        return SchedulingPosture(
            posture=Posture.ACTIVE_TURN,
            reason="a turn is open",
            run_id=turn_id,
            work_item_id=agent.focus.current_work_item_id,
        )
    if listed.queued_count:
        reason = f"{listed.queued_count} queued{_held(agent.pace)}"
        return SchedulingPosture(posture=Posture.HAS_QUEUED_INPUT, reason=reason)
    if agent.pace.gave_up:
        reason = "nothing came of its turns; it rests until something comes from outside"
        return SchedulingPosture(posture=Posture.IDLE, reason=reason)
    if (item_id := listed.runnable_work_item_id) is not None:
        return SchedulingPosture(
            posture=Posture.HAS_RUNNABLE_WORK,
            reason="a work item may be taken up",
            work_item_id=item_id,
        )
    return _waiting(listed.waits) or _stuck(listed.stuck_work_item) or _idle(listed)


def _held(pace: AgentPace) -> str:
    if pace.budget_until is None:
        return ""
    return f"; the budget is used up until {pace.budget_until.isoformat()}"


def _waiting(waits: tuple[WaitRecord, ...]) -> SchedulingPosture | None:
    for kind, posture in _WAITS:
        wait = next((each for each in waits if each.kind is kind), None)
        if wait is not None:
            is_task = kind is WaitKind.TASK and wait.source_id is not None
            return SchedulingPosture(
                posture=posture,
                reason=one_line(wait.waiting_for),
                work_item_id=wait.work_item_id,
                waiting_intent_id=wait.id,
                task_id=TaskId(wait.source_id or "") if is_task else None,
            )
    return None


def _stuck(item: WorkItemRecord | None) -> SchedulingPosture | None:
    if item is None:
        return None
    if item.plan_status is PlanStatus.NEEDS_INPUT:
        return SchedulingPosture(
            posture=Posture.WAITING_FOR_OPERATOR,
            reason="the plan of a work item needs input",
            work_item_id=item.id,
        )
    return SchedulingPosture(
        posture=Posture.BLOCKED,
        reason=one_line(item.blocked_by or "a work item may not run"),
        work_item_id=item.id,
    )


def _idle(listed: ListedAgent) -> SchedulingPosture:
    posture = listed.agent.posture
    until = posture.sleeping_until
    reason = "nothing to do" if until is None else f"resting until {until.isoformat()}"
    return SchedulingPosture(posture=Posture.IDLE, reason=reason)
