"""Every change of a work item is a new revision."""

from collections.abc import Callable
from datetime import datetime

import msgspec
import pytest

from holon.decide.work import items
from holon.decide.work.items import WorkItemEdit, objective_refusal
from holon.decide.work.projection import scheduling_state
from holon.model.limits import OBJECTIVE_CHARS_MAX
from holon.model.work import PlanStatus, SchedulingState, TodoItem, WorkItemRecord, WorkItemState
from tests.decide.sample_rows import ITEM, NOW, seconds

LATER = NOW + seconds(60)
BLOCKED = msgspec.structs.replace(
    ITEM, blocked_by="the weather", recheck_at=NOW, recheck_consumed_at=NOW, revision=7
)


def _blocked(item: WorkItemRecord, now: datetime) -> WorkItemRecord:
    return items.block(item, blocked_by="rain", recheck_at=LATER, now=now)


CHANGES: dict[str, Callable[[WorkItemRecord, datetime], WorkItemRecord]] = {
    "consume_recheck": lambda item, now: items.consume_recheck(item, now=now),
    "block": _blocked,
    "unblock": lambda item, now: items.unblock(item, now=now),
    "complete": lambda item, now: items.complete(item, now=now),
    "edit": lambda item, now: items.edit(item, WorkItemEdit(), now=now),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("item", [ITEM, BLOCKED], ids=["free", "blocked"])
def test_a_change_follows_the_revision_before_and_keeps_what_it_is_not_about(
    name: str, item: WorkItemRecord
) -> None:
    changed = CHANGES[name](item, LATER)
    assert changed.revision == item.revision + 1
    assert changed.updated_at == LATER
    kept = ("id", "agent_id", "objective", "created_at", "plan_status", "todo_list")
    assert [getattr(changed, field) for field in kept] == [getattr(item, field) for field in kept]


def test_a_new_blocker_brings_a_new_reminder() -> None:
    changed = _blocked(BLOCKED, NOW)
    assert (changed.blocked_by, changed.recheck_at) == ("rain", LATER)
    assert changed.recheck_consumed_at is None
    assert scheduling_state(changed, ()) is SchedulingState.BLOCKED


def test_a_reminder_that_was_delivered_leaves_the_blocker_standing() -> None:
    changed = items.consume_recheck(BLOCKED, now=LATER)
    assert changed.blocked_by == "the weather"
    assert changed.recheck_consumed_at == LATER
    assert scheduling_state(changed, ()) is SchedulingState.BLOCKED


@pytest.mark.parametrize("name", ["unblock", "complete"])
def test_clearing_the_blocker_clears_the_reminder_with_it(name: str) -> None:
    changed = CHANGES[name](BLOCKED, LATER)
    assert (changed.blocked_by, changed.recheck_at, changed.recheck_consumed_at) == (None,) * 3


def test_only_completion_ends_the_item() -> None:
    ended = [name for name, change in CHANGES.items() if change(ITEM, NOW).state is not ITEM.state]
    assert ended == ["complete"]
    assert CHANGES["complete"](ITEM, NOW).state is WorkItemState.COMPLETED


@pytest.mark.parametrize(
    "change",
    [
        WorkItemEdit(objective="else"),
        WorkItemEdit(plan_status=PlanStatus.READY),
        WorkItemEdit(todo_list=(TodoItem(text="a"),)),
        WorkItemEdit(todo_list=()),
    ],
)
def test_an_edit_touches_what_it_names_and_leaves_the_blocker_alone(change: WorkItemEdit) -> None:
    changed = items.edit(BLOCKED, change, now=LATER)
    named = {k: v for k, v in msgspec.structs.asdict(change).items() if v is not None}
    assert changed == msgspec.structs.replace(
        BLOCKED, revision=BLOCKED.revision + 1, updated_at=LATER, **named
    )


@pytest.mark.parametrize(
    ("objective", "fits"),
    [("x", True), ("x" * OBJECTIVE_CHARS_MAX, True), ("", False), (" \n", False),
     ("x" * (OBJECTIVE_CHARS_MAX + 1), False)],
)  # fmt: skip
def test_an_objective_says_something_and_not_too_much(objective: str, fits: bool) -> None:
    assert (objective_refusal(objective) is None) is fits
