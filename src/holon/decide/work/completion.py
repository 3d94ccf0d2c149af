"""Completion reports: promoting the text that came with a completion.

Owns:  which completed items of a turn get a report, and the changes that store it.
Rule 1: only items the turn's own calls completed are touched, whatever was in focus when it began
        or is in focus now.
Rule 2: an item is completed by its tool alone; the end of a turn completes nothing. Settlement only
        stores the text that came with the completion.
Rule 3: without such text there is no report: none is made up from what happened, and the log says
        why. The tool result warns the model in advance (`report_problem`).
`completed` are those items as they stand just before settling, with the revision the tool left.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from holon.decide.text.bounded import shortened
from holon.model.commits import AppendDeliverySummary, Change, PutWorkItem, RecordEvent
from holon.model.limits import BRIEF_TEXT_BYTES_MAX
from holon.model.record import Record
from holon.model.turns.turn import Finish, TurnRecord
from holon.model.values import AgentId, SummaryId, TurnId
from holon.model.work import (
    CompletionReportMissing,
    DeliverySummary,
    ReportProblem,
    WorkItemRecord,
    WorkItemState,
)


class ReportPromotion(Record, frozen=True, kw_only=True):
    """A completed item and the report that becomes its result."""

    item: WorkItemRecord
    report: str


def promotions_of(
    finish: Finish, completed: Sequence[WorkItemRecord]
) -> tuple[ReportPromotion, ...]:
    """Return the reports to keep, in the order they were given."""
    by_id = {item.id: item for item in completed if item.state is WorkItemState.COMPLETED}
    return tuple(
        ReportPromotion(item=by_id[each.work_item_id], report=_bounded_report(each.report))
        for each in finish.completions
        if each.report is not None and each.work_item_id in by_id
    )


def _bounded_report(report: str) -> str:
    """A report of a bounded size; the whole text stays in the transcript."""
    return shortened(report, bytes_max=BRIEF_TEXT_BYTES_MAX).text


def decide_work_transition(
    finish: Finish,
    completed: Sequence[WorkItemRecord],
    *,
    turn: TurnRecord,
    summary_ids: Sequence[SummaryId],
    now: datetime,
) -> tuple[Change, ...]:
    """Return the changes that store the turn's reports and record the missing ones.

    `summary_ids` are at least as many as the completions.
    """
    changes: list[Change] = []
    for promotion, summary_id in zip(promotions_of(finish, completed), summary_ids, strict=False):
        changes.extend(_promoted(promotion, summary_id, turn_id=turn.turn_id, now=now))
    return (*changes, *_missing(finish, turn.agent_id, turn.turn_id))


def _promoted(
    promotion: ReportPromotion, summary_id: SummaryId, *, turn_id: TurnId, now: datetime
) -> tuple[Change, ...]:
    item: WorkItemRecord = msgspec.structs.replace(
        promotion.item,
        result_summary=promotion.report,
        revision=promotion.item.revision + 1,
        updated_at=now,
    )
    summary = DeliverySummary(
        id=summary_id,
        agent_id=item.agent_id,
        work_item_id=item.id,
        created_at=now,
        text=promotion.report,
        turn_id=turn_id,
    )
    return (PutWorkItem(item=item), AppendDeliverySummary(summary=summary))


def _missing(finish: Finish, agent_id: AgentId, turn_id: TurnId) -> tuple[RecordEvent, ...]:
    return tuple(
        RecordEvent(
            agent_id=agent_id,
            event=CompletionReportMissing(
                work_item_id=each.work_item_id,
                turn_id=turn_id,
                problem=(
                    ReportProblem.NO_TEXT if each.is_alone else ReportProblem.SEVERAL_COMPLETED
                ),
            ),
        )
        for each in finish.completions
        if each.report is None
    )


class CompletionRound(Record, frozen=True, kw_only=True):
    """The round that asks for a completion, as far as the report depends on it."""

    text: str
    completions_count: int  # calls that complete an item, or still may


def report_problem(spoken: CompletionRound) -> str | None:
    """Return why the turn's end will promote no report, or None when it will."""
    if not spoken.text.strip():
        return (
            "the item is completed without a report: nothing was said in the same answer as this"
            " call; next time write the report for the operator beside the call"
        )
    if spoken.completions_count > 1:
        return (
            "one answer completes several items: unless only one of its calls succeeds, its text"
            " is kept as the report of none; next time complete one item an answer"
        )
    return None
