"""The end of a turn touches the work items the turn completed, and no others."""

import msgspec
import pytest

from holon.decide.work.completion import (
    CompletionRound,
    decide_work_transition,
    promotions_of,
    report_problem,
)
from holon.model.commits import AppendDeliverySummary, Change, PutWorkItem, RecordEvent
from holon.model.turns.turn import Completion, Finish
from holon.model.values import SummaryId, WorkItemId
from holon.model.work import (
    CompletionReportMissing,
    DeliverySummary,
    ReportProblem,
    WorkItemRecord,
    WorkItemState,
)
from tests.decide.sample_rows import AGENT_ID, ITEM, NOW, seconds
from tests.decide.turn_rows import TURN

LATER = NOW + seconds(5)
COMPLETED: WorkItemRecord = msgspec.structs.replace(ITEM, state=WorkItemState.COMPLETED, revision=4)
MENDED = Completion(work_item_id=ITEM.id, report="the roof is mended")
REPORTED = Finish(last_text="bye", completions=(MENDED,))


def decide(finish: Finish, *completed: WorkItemRecord) -> tuple[Change, ...]:
    ids = tuple(SummaryId(f"sum_{number}") for number in range(1, 4))
    return decide_work_transition(finish, completed, turn=TURN, summary_ids=ids, now=LATER)


@pytest.mark.requirement("settlement:report-is-promoted")
def test_the_report_becomes_result_summary_and_delivery_summary() -> None:
    put, summary = decide(REPORTED, COMPLETED)
    assert put == PutWorkItem(
        item=msgspec.structs.replace(
            COMPLETED, revision=5, updated_at=LATER, result_summary="the roof is mended"
        )
    )
    assert summary == AppendDeliverySummary(
        summary=DeliverySummary(
            id=SummaryId("sum_1"),
            agent_id=ITEM.agent_id,
            work_item_id=ITEM.id,
            created_at=LATER,
            text="the roof is mended",
            turn_id=TURN.turn_id,
        )
    )


@pytest.mark.requirement("settlement:only-what-the-turn-completed")
@pytest.mark.parametrize(
    "found", [(), (msgspec.structs.replace(COMPLETED, id=WorkItemId("w2")),)], ids=["gone", "other"]
)
def test_an_item_the_turn_did_not_complete_is_left_alone(
    found: tuple[WorkItemRecord, ...],
) -> None:
    assert decide(REPORTED, *found) == ()
    assert promotions_of(REPORTED, found) == ()


@pytest.mark.requirement("settlement:no-report-is-made-up")
@pytest.mark.requirement("turn-complete:missing-report-is-an-event")
@pytest.mark.parametrize(
    ("alone", "problem"),
    [(True, ReportProblem.NO_TEXT), (False, ReportProblem.SEVERAL_COMPLETED)],
)
def test_a_completion_without_a_report_leaves_a_warning_and_nothing_else(
    alone: bool, problem: ReportProblem
) -> None:
    silent = Finish(
        last_text="bye", completions=(Completion(work_item_id=ITEM.id, is_alone=alone),)
    )
    missing = CompletionReportMissing(work_item_id=ITEM.id, turn_id=TURN.turn_id, problem=problem)
    assert decide(silent, COMPLETED) == (RecordEvent(agent_id=AGENT_ID, event=missing),)


@pytest.mark.requirement("settlement:only-the-tool-completes")
def test_the_end_of_a_turn_completes_nothing_by_itself() -> None:
    assert decide(REPORTED, ITEM) == ()


@pytest.mark.requirement("settlement:item-stays-open")
@pytest.mark.parametrize("text", ["", "I have completed the work item.", "done"])
def test_a_turn_that_ends_without_completion_leaves_its_item_open(text: str) -> None:
    assert decide(Finish(last_text=text), ITEM) == ()


@pytest.mark.parametrize(
    ("text", "completions_count", "words"),
    [
        ("done", 1, None),
        (" \n", 1, "without a report"),
        ("done", 2, "several items"),
    ],
)
def test_whoever_completes_an_item_is_told_when_its_words_will_not_be_kept(
    text: str, completions_count: int, words: str | None
) -> None:
    problem = report_problem(CompletionRound(text=text, completions_count=completions_count))
    assert (problem is None) if words is None else (words in (problem or ""))
