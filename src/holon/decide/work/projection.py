"""Work item scheduling: state, readiness label and queue class.

Owns:  the scheduling state, derived from the item's record and its waits; the coarser label and the
       classes of the work queue, both derived from that state.
Rule 1: being open entitles to nothing. An item runs only when no rule above `runnable` matches.
Rule 2: a wait counts while it is open. What it waits for decides the state; a recheck is a reminder
        for a blocked item and unblocks nothing; a rest holds back no item.
Rule 3: the label is a projection of the state and is never decided apart from it.
Rule 4: a blocked item with news comes first, since it may be able to go on: a wait of it was
        triggered, or its reminder was delivered and the blocker was not refreshed.
Rule 5: a completed item is shown by its promoted report or not at all; no report is extracted from
        a transcript.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from holon.model.events.reads import WeighedItem
from holon.model.wake import WaitKind, WaitRecord, WaitState
from holon.model.work import PlanStatus, Readiness, SchedulingState, WorkItemRecord, WorkItemState

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


class QueueClass(StrEnum):
    """What an item that is not current waits for; the order here is the order shown."""

    TRIGGERED_BLOCKED = "triggered_blocked"
    QUEUED_RUNNABLE = "queued_runnable"
    WAITING_FOR_OPERATOR = "waiting_for_operator"
    BLOCKED = "blocked"
    COMPLETED_RECENT = "completed_recent"


_CLASSES: Final = {
    Readiness.RUNNABLE: QueueClass.QUEUED_RUNNABLE,
    Readiness.WAITING_FOR_OPERATOR: QueueClass.WAITING_FOR_OPERATOR,
    Readiness.BLOCKED: QueueClass.BLOCKED,
    Readiness.COMPLETED: QueueClass.COMPLETED_RECENT,
}


def queue_class(weighed: WeighedItem) -> QueueClass:
    """Return the class of an item."""
    state = scheduling_state(weighed.item, weighed.waits)
    if state is SchedulingState.RUNNABLE:  # as most are: the tables below need not be asked
        return QueueClass.QUEUED_RUNNABLE
    readiness = readiness_of(state)
    if readiness is Readiness.BLOCKED and _is_triggered(weighed):
        return QueueClass.TRIGGERED_BLOCKED
    return _CLASSES[readiness]


def _is_triggered(weighed: WeighedItem) -> bool:
    reminded = weighed.item.blocked_by is not None and weighed.item.recheck_consumed_at is not None
    return reminded or any(wait.state is WaitState.TRIGGERED for wait in weighed.waits)


def by_class(items: Sequence[WeighedItem]) -> dict[QueueClass, list[WeighedItem]]:
    """Return items by class, classes in their order, items as they came; empty ones left out."""
    classes: dict[QueueClass, list[WeighedItem]] = {each: [] for each in QueueClass}
    for weighed in items:
        classes[queue_class(weighed)].append(weighed)
    return {name: members for name, members in classes.items() if members}


def promoted_reports(items: Sequence[WorkItemRecord]) -> list[tuple[WorkItemRecord, str]]:
    """Return completed items that have a promoted report, with it."""
    return [
        (item, item.result_summary)
        for item in items
        if item.state is WorkItemState.COMPLETED and item.result_summary
    ]
