"""Work items: objectives, plans, todo lists and their scheduling states.

Owns:  the work item, its todo list, plan artifact, delivery summary and derived scheduling states;
       the reminder policy; the audit events about an agent's work.
Rule 1: focus is not a state of the item; the agent's focus points at it.
Rule 2: `open` alone never entitles an item to run; readiness is derived (decide/work/projection).
Rule 3: an event names its item; the item's text stays in its row.
"""

from enum import StrEnum

from holon.model import limits
from holon.model.record import Record
from holon.model.values import AgentId, Instant, SummaryId, TurnId, WorkItemId, WorkspaceId


class WorkItemState(StrEnum):
    """The lifecycle of an item."""

    OPEN = "open"
    COMPLETED = "completed"


class PlanStatus(StrEnum):
    """How far the plan has come."""

    DRAFT = "draft"
    READY = "ready"
    NEEDS_INPUT = "needs_input"


class TodoState(StrEnum):
    """How far one todo has come."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class TodoItem(Record, frozen=True, kw_only=True):
    """One line of the checklist."""

    text: str
    state: TodoState = TodoState.PENDING


class SchedulingState(StrEnum):
    """What the scheduler may do with an item, derived from its record and its waits."""

    RUNNABLE = "runnable"
    WAITING_OPERATOR = "waiting_operator"
    WAITING_TASK = "waiting_task"
    WAITING_EXTERNAL = "waiting_external"
    WAITING_TIMER = "waiting_timer"
    WAITING_SYSTEM = "waiting_system"
    BLOCKED = "blocked"
    COMPLETED = "completed"


class Readiness(StrEnum):
    """The older, coarser label shown to readers."""

    RUNNABLE = "runnable"
    WAITING_FOR_OPERATOR = "waiting_for_operator"
    BLOCKED = "blocked"
    COMPLETED = "completed"


class PlanArtifact(Record, frozen=True, kw_only=True):
    """Where the plan's prose lives, with a bounded preview of it."""

    path: str
    hash: str
    bytes: int
    updated_at: Instant
    preview: str
    preview_complete: bool


class WorkItemRecord(Record, frozen=True, kw_only=True):
    """One objective, durable."""

    id: WorkItemId
    agent_id: AgentId
    objective: str
    created_at: Instant
    updated_at: Instant
    revision: int = 1
    workspace_id: WorkspaceId | None = None
    state: WorkItemState = WorkItemState.OPEN
    plan_status: PlanStatus = PlanStatus.DRAFT
    plan_artifact: PlanArtifact | None = None
    todo_list: tuple[TodoItem, ...] = ()
    blocked_by: str | None = None
    recheck_at: Instant | None = None
    recheck_consumed_at: Instant | None = None
    result_summary: str | None = None


class WorkItemCounts(Record, frozen=True, kw_only=True):
    """How many items an agent has."""

    open_count: int
    completed_count: int


class DeliverySummary(Record, frozen=True, kw_only=True):
    """The report an agent gave when it completed an item."""

    id: SummaryId
    agent_id: AgentId
    work_item_id: WorkItemId
    created_at: Instant
    text: str
    turn_id: TurnId | None = None


class ActivationMemory(Record, frozen=True, kw_only=True):
    """How often the runtime has offered an item without seeing it move.

    Keyed by agent and item alone: a restart or a new lane must not reset the count, or a model
    that makes no progress would be woken without end.
    """

    agent_id: AgentId
    work_item_id: WorkItemId
    revision_seen: int
    no_progress_count: int
    last_at: Instant
    not_before: Instant


class WorkItemWritten(Record, tag_field="kind", tag="work_item_written", frozen=True, kw_only=True):
    """A work item was created or changed."""

    work_item_id: WorkItemId
    state: WorkItemState
    revision: int


class WorkItemPicked(Record, tag_field="kind", tag="work_item_picked", frozen=True, kw_only=True):
    """The agent's focus moved to an item."""

    work_item_id: WorkItemId


class WorkItemFocusReleased(
    Record, tag_field="kind", tag="work_item_focus_released", frozen=True, kw_only=True
):
    """The agent focuses on nothing."""


class CompletionReportPromoted(
    Record, tag_field="kind", tag="work_item_completion_report_promoted", frozen=True, kw_only=True
):
    """Same-round text became the report of a completed item."""

    work_item_id: WorkItemId


class ReportProblem(StrEnum):
    """Why the completion of an item left no report."""

    NO_TEXT = "no_text"  # the round that completed it had no text
    SEVERAL_COMPLETED = "several_completed"  # the round completed more than one item


class CompletionReportMissing(
    Record, tag_field="kind", tag="work_item_completion_report_warning", frozen=True, kw_only=True
):
    """An item was completed and no report of it is kept."""

    work_item_id: WorkItemId
    turn_id: TurnId
    problem: ReportProblem


class WorkReminderInjected(
    Record, tag_field="kind", tag="work_item_stale_reminder_injected", frozen=True, kw_only=True
):
    """The model was reminded of its current item, which had not been touched for many rounds."""

    turn_id: TurnId
    work_item_id: WorkItemId
    after_round: int


class ReminderObstacle(StrEnum):
    """Why a reminder that was due was not given."""

    BUDGET_TOO_SMALL = "budget_too_small"  # not even the shortest form fits the reminder's budget
    PROMPT_BUDGET = "prompt_budget"  # the next prompt would outgrow what the model takes


class WorkReminderSkipped(
    Record, tag_field="kind", tag="work_item_stale_reminder_skipped", frozen=True, kw_only=True
):
    """A reminder was due and was not given."""

    turn_id: TurnId
    work_item_id: WorkItemId
    after_round: int
    obstacle: ReminderObstacle


class ReminderPolicy(Record, frozen=True, kw_only=True):
    """After how many rounds a model is reminded; 0 turns reminders off."""

    rounds_count: int = limits.REMINDER_ROUNDS_COUNT_DEFAULT
    cooldown_rounds_count: int = limits.REMINDER_COOLDOWN_ROUNDS_COUNT_DEFAULT
    tokens_max: int = limits.REMINDER_TOKENS_DEFAULT
