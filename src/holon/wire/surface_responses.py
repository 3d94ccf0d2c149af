"""Pages of records over HTTP, and answers that show the record they changed.

Owns:  their shapes; what is in them are projections.
Rule 1: a page goes on after the record its cursor names, which is the last one of the page.
"""

from typing import Literal

from holon.model.brief import BriefRecord
from holon.model.ids import BriefId, TaskId, TimerId, WorkItemId
from holon.model.record import Record
from holon.projections.agent_state_view import TaskSlimView
from holon.projections.timer_view import TimerView
from holon.projections.work_item_view import WorkItemView


class BriefPage(Record, frozen=True, kw_only=True):
    """Briefs, newest first. `next_before` asks for the ones before them."""

    briefs: tuple[BriefRecord, ...]
    limit: int
    next_before: BriefId | None = None


class TaskPage(Record, frozen=True, kw_only=True):
    """Tasks: those that have not ended first. `next_after` asks for the ones that follow."""

    tasks: tuple[TaskSlimView, ...]
    limit: int
    next_after: TaskId | None = None


class TimerPage(Record, frozen=True, kw_only=True):
    """Timers: active ones first, soonest first. `next_after` asks for the ones that follow."""

    timers: tuple[TimerView, ...]
    limit: int
    next_after: TimerId | None = None


class WorkItemPage(Record, frozen=True, kw_only=True):
    """Work items: current, queued, waiting, completed. `next_after` asks for the next ones."""

    work_items: tuple[WorkItemView, ...]
    limit: int
    next_after: WorkItemId | None = None


class TimerAnswer(Record, frozen=True, kw_only=True):
    """The timer as it is now."""

    ok: Literal[True]
    timer: TimerView


class WorkItemAnswer(Record, frozen=True, kw_only=True):
    """The item as it is now."""

    ok: Literal[True]
    work_item: WorkItemView


class TaskAnswer(Record, frozen=True, kw_only=True):
    """The task that was started."""

    ok: Literal[True]
    task: TaskSlimView
