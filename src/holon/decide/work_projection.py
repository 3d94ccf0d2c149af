"""Work items as a prompt projects them: which class a candidate is in, besides the current one.

Owns:  the classes and their order. They are read off the scheduling state, like readiness.
Rule 1: a blocked item that something has happened to comes first, since it may be able to go on: a
        wait of it was triggered, or its reminder was delivered and the blocker was not refreshed.
Rule 2: a completed item is shown by its promoted report or not at all; nothing is read out of a
        transcript for it.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from holon.decide.readiness import readiness_of, scheduling_state
from holon.model.snapshot import WeighedItem
from holon.model.wait import WaitState
from holon.model.work_item import Readiness, SchedulingState, WorkItemRecord, WorkItemState


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
    found: dict[QueueClass, list[WeighedItem]] = {each: [] for each in QueueClass}
    for weighed in items:
        found[queue_class(weighed)].append(weighed)
    return {name: members for name, members in found.items() if members}


def promoted_reports(items: Sequence[WorkItemRecord]) -> list[tuple[WorkItemRecord, str]]:
    """Return completed items that have a promoted report, with it."""
    return [
        (item, item.result_summary)
        for item in items
        if item.state is WorkItemState.COMPLETED and item.result_summary
    ]
