"""Views of work items.

Owns:  the work item and its waits on operator surfaces.
Rule 1: focus and readiness are derived from the record, the agent's focus and the open waits; they
        are not states of the item.
Rule 2: texts are bounded and lists are counted beyond what is shown.
"""

from collections import Counter
from enum import StrEnum

from holon.decide.text.bounded import bounded
from holon.decide.work.projection import readiness_of, scheduling_state
from holon.model.events.reads import WeighedItem
from holon.model.limits import PLAN_PREVIEW_LISTED_CHARS_MAX, TODO_ITEMS_COUNT_MAX
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.values import AgentId, Instant, MessageId, WaitId, WorkItemId, WorkspaceId
from holon.model.wake import WaitKind, WaitRecord, WaitState
from holon.model.work import (
    PlanStatus,
    Readiness,
    SchedulingState,
    TodoState,
    WorkItemRecord,
    WorkItemState,
)


class WorkItemFocus(StrEnum):
    """The position of an item in its agent's queue."""

    CURRENT = "current"
    QUEUED = "queued"
    BLOCKED = "blocked"
    COMPLETED = "completed"


class WaitView(Record, frozen=True, kw_only=True):
    """One wait: what it waits for, what will end it, and by when."""

    id: WaitId
    kind: WaitKind
    state: WaitState
    waiting_for: str
    created_at: Instant
    deadline_at: Instant | None = None
    work_item_id: WorkItemId | None = None
    source_id: str | None = None
    triggered_by: MessageId | None = None


class TodoView(Record, frozen=True, kw_only=True):
    """One line of a checklist."""

    text: str
    state: TodoState


class PlanView(Record, frozen=True, kw_only=True):
    """The path of a plan, and a preview of its text."""

    path: str
    hash: str
    bytes: int
    updated_at: Instant
    preview: str
    preview_complete: bool


class CompletionReport(Record, frozen=True, kw_only=True):
    """The report of a completed item."""

    text: str
    truncated: bool
    source: str


class WorkItemView(Record, frozen=True, kw_only=True):
    """One work item."""

    id: WorkItemId
    agent_id: AgentId
    objective: str
    state: WorkItemState
    revision: int
    focus: WorkItemFocus
    is_current: bool
    is_runnable: bool
    readiness: Readiness
    scheduling_state: SchedulingState
    plan_status: PlanStatus
    todo_counts: dict[str, int]
    todo_list: tuple[TodoView, ...]
    active_wait_conditions: tuple[WaitView, ...]
    created_at: Instant
    updated_at: Instant
    workspace_id: WorkspaceId | None = None
    plan_artifact: PlanView | None = None
    blocked_by: str | None = None
    recheck_at: Instant | None = None
    recheck_consumed_at: Instant | None = None
    completion_report: CompletionReport | None = None


def work_item_view(weighed: WeighedItem, *, focus: WorkItemId | None) -> WorkItemView:
    """Return the view of an item; `focus` is the agent's current item."""
    item = weighed.item
    state = scheduling_state(item, weighed.waits)
    standing = _focus_of(item, focus)
    return WorkItemView(
        id=item.id,
        agent_id=item.agent_id,
        objective=bounded(item.objective).text,
        state=item.state,
        revision=item.revision,
        focus=standing,
        is_current=standing is WorkItemFocus.CURRENT,
        is_runnable=state is SchedulingState.RUNNABLE,
        readiness=readiness_of(state),
        scheduling_state=state,
        plan_status=item.plan_status,
        todo_counts=todo_counts(item),
        todo_list=_todo_list(item),
        active_wait_conditions=tuple(wait_view(wait) for wait in weighed.waits),
        created_at=item.created_at,
        updated_at=item.updated_at,
        workspace_id=item.workspace_id,
        plan_artifact=_plan(item),
        blocked_by=None if item.blocked_by is None else one_line(item.blocked_by),
        recheck_at=item.recheck_at,
        recheck_consumed_at=item.recheck_consumed_at,
        completion_report=_report(item),
    )


def wait_view(wait: WaitRecord) -> WaitView:
    """Return the view of a wait."""
    return WaitView(
        id=wait.id,
        kind=wait.kind,
        state=wait.state,
        waiting_for=one_line(wait.waiting_for),
        created_at=wait.created_at,
        deadline_at=wait.deadline_at,
        work_item_id=wait.work_item_id,
        source_id=wait.source_id,
        triggered_by=wait.triggered_by,
    )


def todo_counts(item: WorkItemRecord) -> dict[str, int]:
    """Count the checklist lines in each state."""
    counts = Counter(todo.state for todo in item.todo_list)
    return {state.value: counts[state] for state in TodoState}


def _focus_of(item: WorkItemRecord, focus: WorkItemId | None) -> WorkItemFocus:
    if item.state is WorkItemState.COMPLETED:
        return WorkItemFocus.COMPLETED
    if item.id == focus:
        return WorkItemFocus.CURRENT
    return WorkItemFocus.BLOCKED if item.blocked_by is not None else WorkItemFocus.QUEUED


def _todo_list(item: WorkItemRecord) -> tuple[TodoView, ...]:
    shown = item.todo_list[:TODO_ITEMS_COUNT_MAX]
    return tuple(TodoView(text=one_line(todo.text), state=todo.state) for todo in shown)


def _plan(item: WorkItemRecord) -> PlanView | None:
    plan = item.plan_artifact
    if plan is None:
        return None
    shown = bounded(plan.preview, chars_max=PLAN_PREVIEW_LISTED_CHARS_MAX)
    return PlanView(
        path=plan.path,
        hash=plan.hash,
        bytes=plan.bytes,
        updated_at=plan.updated_at,
        preview=shown.text,
        preview_complete=plan.preview_complete and not shown.truncated,
    )


def _report(item: WorkItemRecord) -> CompletionReport | None:
    """The promoted report; None for an item that was completed without one."""
    if item.state is not WorkItemState.COMPLETED or item.result_summary is None:
        return None
    shown = bounded(item.result_summary)
    return CompletionReport(text=shown.text, truncated=shown.truncated, source="same_round_text")
