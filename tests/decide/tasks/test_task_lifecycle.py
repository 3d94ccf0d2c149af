"""Tasks move forward, and the first ending stands."""

import itertools

import pytest

from holon.decide.tasks.commands import Advance, IgnoreLate, decide_advance, is_terminal, phase_of
from holon.model.tasks import TaskStatus

LIVE = [TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.CANCELLING]
ENDINGS = [
    TaskStatus.COMPLETED,
    TaskStatus.FAILED,
    TaskStatus.CANCELLED,
    TaskStatus.INTERRUPTED,
]
# Everything that may follow each status, by hand.
FOLLOWERS: dict[TaskStatus, set[TaskStatus]] = {
    TaskStatus.QUEUED: {TaskStatus.RUNNING, TaskStatus.CANCELLING, *ENDINGS},
    TaskStatus.RUNNING: {TaskStatus.CANCELLING, *ENDINGS},
    TaskStatus.CANCELLING: set(ENDINGS),
    **{ending: set() for ending in ENDINGS},
}


@pytest.mark.requirement("lifecycle:task-moves-forward-only")
@pytest.mark.parametrize(("current", "proposed"), list(itertools.product(TaskStatus, TaskStatus)))
def test_every_pair_of_statuses_advances_or_is_ignored_as_written(
    current: TaskStatus, proposed: TaskStatus
) -> None:
    decision = decide_advance(current, proposed)
    if proposed in FOLLOWERS[current]:
        assert decision == Advance(status=proposed)
    else:
        assert decision == IgnoreLate(current=current, proposed=proposed)


@pytest.mark.requirement("lifecycle:first-ending-stands")
@pytest.mark.parametrize(("ending", "late"), list(itertools.product(ENDINGS, TaskStatus)))
def test_nothing_follows_an_ending(ending: TaskStatus, late: TaskStatus) -> None:
    assert isinstance(decide_advance(ending, late), IgnoreLate)


@pytest.mark.requirement("lifecycle:late-status-never-downgrades")
@pytest.mark.parametrize(("ending", "stale"), list(itertools.product(ENDINGS, LIVE)))
def test_a_stale_status_report_does_not_reopen_a_task(
    ending: TaskStatus, stale: TaskStatus
) -> None:
    assert decide_advance(ending, stale) == IgnoreLate(current=ending, proposed=stale)


@pytest.mark.requirement("lifecycle:task-endings")
@pytest.mark.parametrize("status", TaskStatus)
def test_which_statuses_are_endings(status: TaskStatus) -> None:
    assert is_terminal(status) is (status in ENDINGS)


def test_endings_share_the_last_phase_and_the_rest_have_one_each() -> None:
    assert [phase_of(status) for status in LIVE] == [0, 1, 2]
    assert {phase_of(status) for status in ENDINGS} == {3}


@pytest.mark.parametrize("reports", list(itertools.permutations(TaskStatus, 3)))
def test_whatever_the_order_of_reports_the_phase_never_falls(
    reports: tuple[TaskStatus, ...],
) -> None:
    status = TaskStatus.QUEUED
    for report in reports:
        decision = decide_advance(status, report)
        reached = decision.status if isinstance(decision, Advance) else status
        assert phase_of(reached) >= phase_of(status)
        status = reached
    first_ending = next((report for report in reports if is_terminal(report)), None)
    assert first_ending is None or status is first_ending
