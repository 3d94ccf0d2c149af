"""What a turn's end does to the work item the turn was bound to.

Owns:  the promotion of a completion report.
Rule 1: only the item the turn was bound to when it opened is touched, whatever is in focus now.
Rule 2: an item is completed by its tool alone; the end of a turn completes nothing. What is left to
        do here is to keep the words that came with the completion.
Rule 3: without such words there is no report: none is made up from what happened. Whoever
        completes an item is told beforehand when its words will not be kept (`report_problem`).
`bound` is the bound item as it stands just before settling, with the revision the tool left.
"""

from datetime import datetime

import msgspec

from holon.model.commit import AppendDeliverySummary, Change, PutWorkItem
from holon.model.ids import SummaryId, TurnId
from holon.model.record import Record
from holon.model.snapshot import WeighedItem
from holon.model.turn import Finish
from holon.model.work_item import DeliverySummary, WorkItemRecord, WorkItemState


def decide_work_transition(
    bound: WeighedItem | None,
    finish: Finish,
    *,
    now: datetime,
    summary_id: SummaryId,
    turn_id: TurnId,
) -> tuple[Change, ...]:
    """Return the changes that promote a completion report, or none."""
    report = promoted_report(bound, finish)
    if bound is None or report is None:
        return ()
    item: WorkItemRecord = msgspec.structs.replace(
        bound.item, result_summary=report, revision=bound.item.revision + 1, updated_at=now
    )
    summary = DeliverySummary(
        id=summary_id,
        agent_id=item.agent_id,
        work_item_id=item.id,
        created_at=now,
        text=report,
        turn_id=turn_id,
    )
    return (PutWorkItem(item=item), AppendDeliverySummary(summary=summary))


def promoted_report(bound: WeighedItem | None, finish: Finish) -> str | None:
    """Return the report that belongs to the bound item, if the turn gave one."""
    if bound is None or bound.item.id != finish.completed_work_item_id:
        return None
    if bound.item.state is not WorkItemState.COMPLETED:
        return None
    report = finish.completion_report
    return report if report and report.strip() else None


class CompletionRound(Record, frozen=True, kw_only=True):
    """The round that asks for a completion, as far as the report depends on it."""

    text: str
    completions_count: int  # calls that complete an item
    is_bound: bool  # whether the turn was begun for the item


def report_problem(spoken: CompletionRound) -> str | None:
    """Say why the turn's end will promote no report, or nothing when it will."""
    if not spoken.text.strip():
        return (
            "the item is completed without a report: nothing was said in the same answer as this"
            " call; next time write the report for the operator beside the call"
        )
    if spoken.completions_count > 1:
        return "one answer completes several items, so its text is kept as the report of none"
    if not spoken.is_bound:
        return "this turn was not begun for the item, so its text is not kept as the item's report"
    return None
