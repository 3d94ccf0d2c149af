"""Events about work items: written, picked, reported on, reminded of.

Owns:  what the audit log can say about an agent's work.
Rule 1: an event names its item; the item's own words stay in its row.
"""

from enum import StrEnum

from holon.model.ids import TurnId, WorkItemId
from holon.model.record import Record
from holon.model.work_item import WorkItemState


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

    NO_TEXT = "no_text"  # nothing was said in the round that completed it
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
