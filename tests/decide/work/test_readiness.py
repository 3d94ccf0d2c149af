"""When a work item may run: every combination of record and waits."""

import itertools

import msgspec
import pytest

from holon.decide.work.projection import readiness_of, scheduling_state
from holon.model.wake import WaitKind, WaitState
from holon.model.work import PlanStatus, Readiness, SchedulingState, WorkItemState
from tests.decide.sample_rows import ITEM, wait_of

vary = msgspec.structs.replace

EVERY_SET_OF_KINDS = [
    kinds for count in range(len(WaitKind) + 1) for kinds in itertools.combinations(WaitKind, count)
]
BLOCKERS = [None, "", "the weather"]
# The order of waits by hand, strongest first.
PRECEDENCE = [
    (WaitKind.TASK, SchedulingState.WAITING_TASK),
    (WaitKind.OPERATOR, SchedulingState.WAITING_OPERATOR),
    (WaitKind.TIMER, SchedulingState.WAITING_TIMER),
    (WaitKind.EXTERNAL, SchedulingState.WAITING_EXTERNAL),
    (WaitKind.SYSTEM, SchedulingState.WAITING_SYSTEM),
]


def expected_state(
    state: WorkItemState,
    plan: PlanStatus,
    blocked_by: str | None,
    kinds: tuple[WaitKind, ...],
) -> SchedulingState:
    if state is WorkItemState.COMPLETED:
        return SchedulingState.COMPLETED
    if plan is PlanStatus.NEEDS_INPUT:
        return SchedulingState.WAITING_OPERATOR
    named = [waiting for kind, waiting in PRECEDENCE if kind in kinds]
    if named:
        return named[0]
    blocked = bool(blocked_by) or WaitKind.RECHECK in kinds
    return SchedulingState.BLOCKED if blocked else SchedulingState.RUNNABLE


@pytest.mark.requirement("scheduling:readiness-is-derived")
@pytest.mark.parametrize(
    ("state", "plan", "blocked_by"),
    list(itertools.product(WorkItemState, PlanStatus, BLOCKERS)),
)
def test_every_combination_of_record_and_waits(
    state: WorkItemState, plan: PlanStatus, blocked_by: str | None
) -> None:
    item = vary(ITEM, state=state, plan_status=plan, blocked_by=blocked_by)
    for kinds in EVERY_SET_OF_KINDS:
        waits = [wait_of(kind) for kind in kinds]
        assert scheduling_state(item, waits) is expected_state(state, plan, blocked_by, kinds)


@pytest.mark.parametrize(("kind", "state"), list(itertools.product(WaitKind, WaitState)))
def test_a_wait_counts_while_it_is_open_and_not_after(kind: WaitKind, state: WaitState) -> None:
    open_states = (WaitState.ACTIVE, WaitState.TRIGGERED)
    counts = state in open_states and kind is not WaitKind.REST
    waiting = scheduling_state(ITEM, [wait_of(kind, state)]) is not SchedulingState.RUNNABLE
    assert waiting is counts


@pytest.mark.parametrize("order", list(itertools.permutations(WaitKind, 3)))
def test_the_order_in_which_waits_are_given_does_not_matter(order: tuple[WaitKind, ...]) -> None:
    waits = [wait_of(kind) for kind in order]
    assert scheduling_state(ITEM, waits) is scheduling_state(ITEM, waits[::-1])


@pytest.mark.requirement("scheduling:completed-work-is-over")
@pytest.mark.parametrize("plan", PlanStatus)
def test_nothing_makes_a_completed_item_anything_else(plan: PlanStatus) -> None:
    item = vary(ITEM, state=WorkItemState.COMPLETED, plan_status=plan, blocked_by="rain")
    waits = [wait_of(kind) for kind in WaitKind]
    assert scheduling_state(item, waits) is SchedulingState.COMPLETED


@pytest.mark.requirement("scheduling:needs-input-waits-for-the-operator")
def test_a_plan_that_needs_input_waits_for_the_operator() -> None:
    item = vary(ITEM, plan_status=PlanStatus.NEEDS_INPUT)
    assert scheduling_state(item, []) is SchedulingState.WAITING_OPERATOR
    assert readiness_of(SchedulingState.WAITING_OPERATOR) is Readiness.WAITING_FOR_OPERATOR


@pytest.mark.requirement("scheduling:blocker-blocks")
def test_a_blocker_keeps_an_item_from_running() -> None:
    assert scheduling_state(vary(ITEM, blocked_by="rain"), []) is SchedulingState.BLOCKED


@pytest.mark.requirement("scheduling:active-waits-block")
@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (WaitKind.TASK, SchedulingState.WAITING_TASK),
        (WaitKind.EXTERNAL, SchedulingState.WAITING_EXTERNAL),
    ],
)
def test_a_task_or_an_outside_event_keeps_an_item_from_running(
    kind: WaitKind, state: SchedulingState
) -> None:
    assert scheduling_state(ITEM, [wait_of(kind)]) is state
    assert readiness_of(state) is Readiness.BLOCKED


@pytest.mark.requirement("scheduling:open-alone-is-no-title")
@pytest.mark.parametrize("plan", [PlanStatus.DRAFT, PlanStatus.READY])
def test_an_open_item_runs_only_with_nothing_in_its_way(plan: PlanStatus) -> None:
    item = vary(ITEM, state=WorkItemState.OPEN, plan_status=plan)
    assert scheduling_state(item, []) is SchedulingState.RUNNABLE
    for kind in WaitKind:
        if kind is not WaitKind.REST:
            assert scheduling_state(item, [wait_of(kind)]) is not SchedulingState.RUNNABLE


@pytest.mark.requirement("scheduling:recheck-unblocks-nothing")
@pytest.mark.parametrize("state", [WaitState.ACTIVE, WaitState.TRIGGERED, WaitState.RESOLVED])
def test_a_recheck_leaves_the_item_blocked(state: WaitState) -> None:
    item = vary(ITEM, blocked_by="rain")
    reminded = scheduling_state(item, [wait_of(WaitKind.RECHECK, state)])
    assert reminded is SchedulingState.BLOCKED


@pytest.mark.requirement("scheduling:readiness-labels-are-projected")
@pytest.mark.parametrize(
    ("state", "label"),
    [
        (SchedulingState.RUNNABLE, Readiness.RUNNABLE),
        (SchedulingState.WAITING_OPERATOR, Readiness.WAITING_FOR_OPERATOR),
        (SchedulingState.WAITING_TASK, Readiness.BLOCKED),
        (SchedulingState.WAITING_EXTERNAL, Readiness.BLOCKED),
        (SchedulingState.WAITING_TIMER, Readiness.BLOCKED),
        (SchedulingState.WAITING_SYSTEM, Readiness.BLOCKED),
        (SchedulingState.BLOCKED, Readiness.BLOCKED),
        (SchedulingState.COMPLETED, Readiness.COMPLETED),
    ],
)
def test_the_label_readers_see(state: SchedulingState, label: Readiness) -> None:
    assert readiness_of(state) is label


def test_every_state_has_a_label_and_every_label_a_state() -> None:
    assert {readiness_of(state) for state in SchedulingState} == set(Readiness)
