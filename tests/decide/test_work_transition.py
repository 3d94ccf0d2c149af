"""The end of a turn touches one work item at most: the one it was bound to."""

import msgspec
import pytest

from holon.decide.work_transition import (
    CompletionRound,
    decide_work_transition,
    promoted_report,
    report_problem,
)
from holon.model.commit import AppendDeliverySummary, Change, PutWorkItem
from holon.model.ids import SummaryId, WorkItemId
from holon.model.snapshot import WeighedItem
from holon.model.turn import Finish
from holon.model.work_item import DeliverySummary, WorkItemState
from tests.decide.sample_rows import ITEM, NOW, seconds
from tests.decide.turn_rows import TURN

LATER = NOW + seconds(5)
COMPLETED = WeighedItem(
    item=msgspec.structs.replace(ITEM, state=WorkItemState.COMPLETED, revision=4)
)
REPORTED = Finish(
    last_text="bye", completed_work_item_id=ITEM.id, completion_report="the roof is mended"
)


def decide(bound: WeighedItem | None, finish: Finish) -> tuple[Change, ...]:
    return decide_work_transition(
        bound, finish, now=LATER, summary_id=SummaryId("sum_1"), turn_id=TURN.turn_id
    )


@pytest.mark.requirement("settlement:report-is-promoted")
def test_the_report_becomes_result_summary_and_delivery_summary() -> None:
    put, summary = decide(COMPLETED, REPORTED)
    assert put == PutWorkItem(
        item=msgspec.structs.replace(
            COMPLETED.item, revision=5, updated_at=LATER, result_summary="the roof is mended"
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


@pytest.mark.requirement("settlement:only-the-bound-item")
@pytest.mark.parametrize(
    "bound", [None, WeighedItem(item=msgspec.structs.replace(COMPLETED.item, id=WorkItemId("w2")))]
)
def test_an_item_the_turn_was_not_bound_to_is_left_alone(bound: WeighedItem | None) -> None:
    assert decide(bound, REPORTED) == ()
    assert promoted_report(bound, REPORTED) is None


@pytest.mark.requirement("settlement:no-report-is-made-up")
@pytest.mark.parametrize("report", [None, "", "  \n"])
def test_a_completion_without_words_gets_no_report(report: str | None) -> None:
    silent = msgspec.structs.replace(REPORTED, completion_report=report)
    assert decide(COMPLETED, silent) == ()


@pytest.mark.requirement("settlement:only-the-tool-completes")
def test_the_end_of_a_turn_completes_nothing_by_itself() -> None:
    still_open = WeighedItem(item=ITEM)
    assert decide(still_open, REPORTED) == ()


@pytest.mark.requirement("settlement:item-stays-open")
@pytest.mark.parametrize("text", ["", "I have completed the work item.", "done"])
def test_a_turn_that_ends_without_completion_leaves_its_item_open(text: str) -> None:
    assert decide(WeighedItem(item=ITEM), Finish(last_text=text)) == ()


@pytest.mark.parametrize(
    ("text", "completions_count", "is_bound", "words"),
    [
        ("done", 1, True, None),
        (" \n", 1, True, "without a report"),
        ("done", 2, True, "several items"),
        ("done", 1, False, "not begun for the item"),
    ],
)
def test_whoever_completes_an_item_is_told_when_its_words_will_not_be_kept(
    text: str, completions_count: int, is_bound: bool, words: str | None
) -> None:
    spoken = CompletionRound(text=text, completions_count=completions_count, is_bound=is_bound)
    problem = report_problem(spoken)
    assert (problem is None) if words is None else (words in (problem or ""))
