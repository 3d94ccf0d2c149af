"""A work item as its agent reads it.

Owns:  the view every work-item tool answers with: the record, what is derived from it, the look at
       its plan, its open waits and, for a completed item, the report that was promoted.
Rule 1: a view is bounded. The todo list is shown when asked for; its counts are always there.
Rule 2: readiness is projected from the scheduling state, never decided here.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.decide.readiness import readiness_of, scheduling_state
from holon.model.ids import WorkItemId
from holon.model.json_value import JsonValue
from holon.model.limits import AGENT_ROWS_SHOWN_COUNT_MAX, PLAN_PREVIEW_CHARS_MAX
from holon.model.record import Record
from holon.model.wait import WaitRecord
from holon.model.work_item import (
    PlanArtifact,
    SchedulingState,
    WorkItemRecord,
    WorkItemState,
)
from holon.projections.work_item_view import todo_counts
from holon.tools.plan_artifact import plan_view


class Seen(Record, frozen=True, kw_only=True):
    """An item with what bears on how it reads."""

    item: WorkItemRecord
    waits: tuple[WaitRecord, ...] = ()  # its open ones
    focus: WorkItemId | None = None  # what the agent focuses on
    plan: PlanArtifact | None = None

    @property
    def scheduling(self) -> SchedulingState:
        """What the scheduler may do with the item."""
        return scheduling_state(self.item, self.waits)

    @property
    def standing(self) -> str:
        """Where the item stands in the agent's queue: the older view of focus."""
        if self.item.state is WorkItemState.COMPLETED:
            return "completed"
        if self.item.id == self.focus:
            return "current"
        return "blocked" if self.item.blocked_by is not None else "queued"


def work_item_view(
    seen: Seen, *, include_todo_list: bool, preview_chars_max: int = PLAN_PREVIEW_CHARS_MAX
) -> dict[str, JsonValue]:
    """Return the view; what an item does not have is left out of it."""
    item, state = seen.item, seen.scheduling
    plan = seen.plan
    view: dict[str, JsonValue] = {
        "id": item.id,
        "objective": item.objective,
        "state": item.state.value,
        "revision": item.revision,
        "focus": seen.standing,
        "is_current": seen.standing == "current",
        "is_runnable": state is SchedulingState.RUNNABLE,
        "readiness": readiness_of(state).value,
        "scheduling_state": state.value,
        "plan_status": item.plan_status.value,
        "plan_artifact": plan and plan_view(plan, item.id, chars_max=preview_chars_max),
        "todo_counts": todo_counts(item),
        "todo_list": _todo_list(item) if include_todo_list else None,
        "blocked_by": item.blocked_by,
        "recheck_at": _moment(item.recheck_at),
        "recheck_consumed_at": _moment(item.recheck_consumed_at),
        "active_wait_conditions": wait_views(seen.waits) or None,
        "completion_report": _report(item),
        "created_at": _moment(item.created_at),
        "updated_at": _moment(item.updated_at),
    }
    return {name: part for name, part in view.items() if part is not None}


def wait_views(waits: Sequence[WaitRecord]) -> list[JsonValue]:
    """Open waits as a reader sees them."""
    return [
        {
            "id": wait.id,
            "kind": wait.kind.value,
            "state": wait.state.value,
            "waiting_for": wait.waiting_for,
            "deadline_at": _moment(wait.deadline_at),
        }
        for wait in waits[:AGENT_ROWS_SHOWN_COUNT_MAX]
    ]


def _todo_list(item: WorkItemRecord) -> JsonValue:
    return [{"text": todo.text, "state": todo.state.value} for todo in item.todo_list]


def _report(item: WorkItemRecord) -> JsonValue:
    """Only what was promoted: nothing is made up for an item that was completed in silence."""
    if item.state is not WorkItemState.COMPLETED or item.result_summary is None:
        return None
    return {"text": item.result_summary, "source": "same_round_text"}


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
