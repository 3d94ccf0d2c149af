"""Work items as operators see them."""

import msgspec
import pytest

from holon.model.events.reads import WeighedItem
from holon.model.limits import PLAN_PREVIEW_LISTED_CHARS_MAX, SURFACE_TEXT_CHARS_MAX
from holon.model.values import WorkItemId
from holon.model.wake import WaitRecord
from holon.model.work import PlanArtifact, TodoItem, TodoState, WorkItemRecord, WorkItemState
from holon.projections.work import work_item_view
from tests.support.builders import START, a_wait, a_work_item

DONE = msgspec.structs.replace(
    a_work_item(state=WorkItemState.COMPLETED), result_summary="r" * 9_000
)


@pytest.mark.parametrize(
    ("item", "waits", "focus", "expected"),
    [
        (a_work_item(), (), None, ("queued", "runnable", "runnable", True)),
        (a_work_item(), (), "work_1", ("current", "runnable", "runnable", True)),
        (a_work_item(), (a_wait(),), None, ("queued", "blocked", "waiting_task", False)),
        (a_work_item(blocked_by="x"), (), None, ("blocked", "blocked", "blocked", False)),
        (DONE, (), "work_1", ("completed", "completed", "completed", False)),
    ],
)
def test_focus_and_readiness_are_derived(
    item: WorkItemRecord,
    waits: tuple[WaitRecord, ...],
    focus: str | None,
    expected: tuple[str, str, str, bool],
) -> None:
    current = None if focus is None else WorkItemId(focus)
    view = work_item_view(WeighedItem(item=item, waits=waits), focus=current)
    assert (view.focus, view.readiness, view.scheduling_state, view.is_runnable) == expected
    assert len(view.active_wait_conditions) == len(waits)


def test_texts_of_an_item_are_bounded_and_say_so() -> None:
    report = work_item_view(WeighedItem(item=DONE), focus=None).completion_report
    assert report is not None
    assert (len(report.text), report.truncated) == (SURFACE_TEXT_CHARS_MAX, True)
    plan = PlanArtifact(
        path="plan.md", hash="h", bytes=900, updated_at=START, preview="p" * 900,
        preview_complete=True,
    )  # fmt: skip
    item = msgspec.structs.replace(
        a_work_item(),
        plan_artifact=plan,
        todo_list=(TodoItem(text="a"), TodoItem(text="b", state=TodoState.COMPLETED)),
    )
    view = work_item_view(WeighedItem(item=item), focus=None)
    assert view.plan_artifact is not None
    assert len(view.plan_artifact.preview) == PLAN_PREVIEW_LISTED_CHARS_MAX
    assert not view.plan_artifact.preview_complete
    assert view.todo_counts == {"pending": 1, "in_progress": 0, "completed": 1}
    assert view.completion_report is None
