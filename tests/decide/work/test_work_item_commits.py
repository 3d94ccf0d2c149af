"""What moves along with a work item: its waits, its reminder, and the focus on it."""

import msgspec
import pytest

from holon.decide.work import items
from holon.decide.work.items import (
    ChangePlan,
    answer_questions,
    needs_reminder,
    open_item,
    put_blocker,
    put_revision,
    released_focus,
    waits_after,
)
from holon.model.commits import (
    FocusWorkItem,
    MoveWait,
    OpenWait,
    PutWorkItem,
    WaitInState,
    WorkItemAtRevision,
    WorkItemWaitsForOnly,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.values import WaitId, WorkItemId
from holon.model.wake import WaitKind, WaitRecord, WaitState
from holon.model.work import WorkItemRecord
from tests.decide.sample_rows import ITEM, NOW, seconds

LATER = NOW + seconds(60)
REMINDER = WaitId("wait_new")


def a_wait(number: int, kind: WaitKind, state: WaitState = WaitState.ACTIVE) -> WaitRecord:
    """An open wait of the item."""
    return WaitRecord(
        id=WaitId(f"wait_{number}"),
        agent_id=ITEM.agent_id,
        kind=kind,
        waiting_for="x",
        created_at=NOW,
        deadline_at=LATER,
        state=state,
        work_item_id=ITEM.id,
    )


WAITS = (
    a_wait(1, WaitKind.RECHECK),
    a_wait(2, WaitKind.TASK),
    a_wait(3, WaitKind.EXTERNAL, WaitState.TRIGGERED),
)
BLOCKED = items.block(ITEM, blocked_by="rain", recheck_at=LATER, now=NOW)
FREE = items.unblock(ITEM, now=NOW)
DONE = items.complete(ITEM, now=NOW)


def test_a_plain_revision_moves_nothing_else() -> None:
    planned = put_revision(FREE)
    assert planned.changes == (PutWorkItem(item=FREE),)
    assert planned.expects == (WorkItemAtRevision(work_item_id=ITEM.id, revision=ITEM.revision),)


@pytest.mark.parametrize(
    ("revised", "ended", "open_after"),
    [
        (BLOCKED, {"wait_1": "cancelled"}, ["wait_2", "wait_3", "wait_new"]),
        (FREE, {"wait_1": "cancelled"}, ["wait_2", "wait_3"]),
        (DONE, {"wait_1": "cancelled", "wait_2": "cancelled", "wait_3": "resolved"}, []),
    ],
    ids=["blocked", "unblocked", "completed"],
)
def test_reminders_follow_the_blocker_and_a_completed_item_waits_for_nothing(
    revised: object, ended: dict[str, str], open_after: list[str]
) -> None:
    item = msgspec.convert(revised, type(ITEM))
    wait_id = REMINDER if needs_reminder(item) else None
    planned = put_blocker(item, WAITS, now=NOW, wait_id=wait_id)
    moved = {c.wait_id: c.state.value for c in planned.changes if isinstance(c, MoveWait)}
    assert moved == ended
    assert [wait.id for wait in waits_after(WAITS, planned.changes)] == open_after
    opened = [c.wait for c in planned.changes if isinstance(c, OpenWait)]
    assert [wait.deadline_at for wait in opened] == ([LATER] if item.blocked_by else [])
    assert planned.expects == (
        WorkItemAtRevision(work_item_id=ITEM.id, revision=ITEM.revision),
        WorkItemWaitsForOnly(work_item_id=ITEM.id, wait_count=3),
        *(WaitInState(wait_id=wait.id, state=wait.state) for wait in WAITS),
    )


QUESTIONS = (a_wait(4, WaitKind.OPERATOR), a_wait(5, WaitKind.OPERATOR))


@pytest.mark.parametrize("item", [ITEM, FREE, BLOCKED], ids=["focused", "freed", "blocked"])
def test_what_the_operator_does_answers_the_open_questions_and_ends_no_other_wait(
    item: WorkItemRecord,
) -> None:
    told = a_wait(6, WaitKind.OPERATOR, WaitState.TRIGGERED)
    planned = answer_questions(item, (*WAITS, *QUESTIONS, told))
    assert planned.changes == tuple(
        MoveWait(agent_id=ITEM.agent_id, wait_id=wait.id, state=WaitState.RESOLVED, by=ITEM.id)
        for wait in QUESTIONS
    )
    assert planned.expects == (
        WorkItemWaitsForOnly(work_item_id=ITEM.id, wait_count=6),
        *(WaitInState(wait_id=wait.id, state=WaitState.ACTIVE) for wait in QUESTIONS),
    )


def test_a_question_that_is_asked_meanwhile_is_not_overlooked() -> None:
    planned = answer_questions(ITEM, ())
    assert planned.changes == ()
    assert planned.expects == (WorkItemWaitsForOnly(work_item_id=ITEM.id, wait_count=0),)


def test_the_waits_of_a_completed_item_end_with_it_and_only_once() -> None:
    assert answer_questions(DONE, QUESTIONS) == ChangePlan(changes=())
    ended = put_blocker(DONE, QUESTIONS, now=NOW, wait_id=None).changes
    assert [each.wait_id for each in ended if isinstance(each, MoveWait)] == ["wait_4", "wait_5"]


@pytest.mark.parametrize("item", [FREE, BLOCKED], ids=["freed", "blocked"])
def test_a_revision_by_itself_answers_no_question(item: WorkItemRecord) -> None:
    planned = put_blocker(item, QUESTIONS, now=NOW, wait_id=None)
    assert waits_after(QUESTIONS, planned.changes) == QUESTIONS


def test_only_the_focus_on_the_item_itself_is_let_go() -> None:
    assert released_focus(DONE, focus=None) == ()
    assert released_focus(DONE, focus=WorkItemId("work_other")) == ()
    assert released_focus(DONE, focus=DONE.id) == (
        FocusWorkItem(agent_id=DONE.agent_id, work_item_id=None),
    )


def test_only_an_open_item_can_be_worked_on() -> None:
    assert open_item(ITEM, ITEM.id) is ITEM
    for item, code in (
        (None, RefusalCode.WORK_ITEM_NOT_FOUND),
        (DONE, RefusalCode.WORK_ITEM_COMPLETED),
    ):
        refusal = open_item(item, ITEM.id)
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.field) == (code, "work_item_id")
