"""What the scheduler may do with a work item.

Owns:  the scheduling state, derived from the item's record and its waits, and the coarser label.
Rule 1: being open entitles to nothing. An item runs only when no rule above `runnable` matches.
Rule 2: a wait counts while it is open. What it waits for decides the state; a recheck is a reminder
        for a blocked item and unblocks nothing; a rest holds back nobody.
Rule 3: the label is a projection of the state and is never decided apart from it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from holon.model.wait import WaitKind, WaitRecord
from holon.model.work_item import (
    PlanStatus,
    Readiness,
    SchedulingState,
    WorkItemRecord,
    WorkItemState,
)

# First match wins. WaitKind.REST is left out on purpose: anything may wake a resting agent.
WAIT_STATES: Final[tuple[tuple[WaitKind, SchedulingState], ...]] = (
    (WaitKind.TASK, SchedulingState.WAITING_TASK),
    (WaitKind.OPERATOR, SchedulingState.WAITING_OPERATOR),
    (WaitKind.TIMER, SchedulingState.WAITING_TIMER),
    (WaitKind.EXTERNAL, SchedulingState.WAITING_EXTERNAL),
    (WaitKind.SYSTEM, SchedulingState.WAITING_SYSTEM),
    (WaitKind.RECHECK, SchedulingState.BLOCKED),
)

READINESS: Final[Mapping[SchedulingState, Readiness]] = MappingProxyType(
    {
        SchedulingState.RUNNABLE: Readiness.RUNNABLE,
        SchedulingState.WAITING_OPERATOR: Readiness.WAITING_FOR_OPERATOR,
        SchedulingState.WAITING_TASK: Readiness.BLOCKED,
        SchedulingState.WAITING_EXTERNAL: Readiness.BLOCKED,
        SchedulingState.WAITING_TIMER: Readiness.BLOCKED,
        SchedulingState.WAITING_SYSTEM: Readiness.BLOCKED,
        SchedulingState.BLOCKED: Readiness.BLOCKED,
        SchedulingState.COMPLETED: Readiness.COMPLETED,
    }
)


def scheduling_state(item: WorkItemRecord, waits: Sequence[WaitRecord]) -> SchedulingState:
    """Return the item's state. First matching rule wins; read top to bottom."""
    if item.state is WorkItemState.COMPLETED:
        return SchedulingState.COMPLETED
    if item.plan_status is PlanStatus.NEEDS_INPUT:
        return SchedulingState.WAITING_OPERATOR
    if waits:
        awaited = {wait.kind for wait in waits if wait.state.is_open}
        for kind, state in WAIT_STATES:
            if kind in awaited:
                return state
    if item.blocked_by:
        return SchedulingState.BLOCKED
    return SchedulingState.RUNNABLE


def is_runnable(item: WorkItemRecord, waits: Sequence[WaitRecord]) -> bool:
    """Whether the item can be worked on now."""
    return scheduling_state(item, waits) is SchedulingState.RUNNABLE


def readiness_of(state: SchedulingState) -> Readiness:
    """Return the label readers know for a scheduling state."""
    return READINESS[state]
