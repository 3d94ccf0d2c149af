"""Closure: every combination of facts, judged by predicates that must hold in their order."""

import itertools
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from holon.decide.turns.closure import (
    NO_TURN_OBSERVED,
    ClosureFacts,
    CurrentWork,
    closure_facts,
    derive_closure,
    posture_of,
)
from holon.model.agents import AgentFocus, AgentStatus
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.turns.turn import (
    Closure,
    ClosureOutcome,
    Completed,
    Continuable,
    Failed,
    ReactivationMode,
    RuntimePosture,
    TerminalKind,
    TurnTerminal,
    Waiting,
    WaitingReason,
    WorkSignalStatus,
    outcome_of,
    waiting_reason_of,
)
from holon.model.values import TurnId, WorkItemId
from holon.model.wake import WaitKind, WaitState
from holon.model.work import PlanStatus, SchedulingState
from tests.decide.sample_rows import ITEM, NOW, agent_in, wait_of, weighed

OPERATOR: Final = WaitingReason.AWAITING_OPERATOR_INPUT
EXTERNAL: Final = WaitingReason.AWAITING_EXTERNAL_CHANGE
TASK: Final = WaitingReason.AWAITING_TASK_RESULT
TIMER: Final = WaitingReason.AWAITING_TIMER


ENDED_WELL: Final = {TerminalKind.COMPLETED, TerminalKind.DEFERRED}


def ended(kind: TerminalKind, reason: str | None = None) -> TurnTerminal:
    return TurnTerminal(
        turn_id=TurnId("turn_1"),
        turn_index=1,
        kind=kind,
        completed_at=NOW,
        duration_ms=5,
        reason=reason,
    )


def every_fact() -> Iterator[ClosureFacts]:
    terminals = (None, *(ended(kind, "why") for kind in TerminalKind))
    currents = (
        None,
        *(CurrentWork(work_item_id=WorkItemId("work_1"), state=s) for s in SchedulingState),
    )
    kinds = tuple(WaitKind)
    subsets = [
        frozenset(subset)
        for size in range(len(kinds) + 1)
        for subset in itertools.combinations(kinds, size)
    ]
    choices = itertools.product(
        terminals, (False, True), (False, True), currents, (None, WorkItemId("work_2")), subsets
    )
    for terminal, put_off, turn_open, current, queued, waits in choices:
        yield ClosureFacts(
            last_terminal=terminal,
            put_off=put_off,
            turn_open=turn_open,
            current=current,
            queued_runnable_id=queued,
            agent_waits=waits,
        )


def oracle(facts: ClosureFacts) -> tuple[ClosureOutcome, WaitingReason | None]:
    """The order of the rules as a list of predicates; the first true one names the outcome."""
    state = facts.current.state if facts.current else None
    waits = facts.agent_waits
    kind = facts.last_terminal.kind.value if facts.last_terminal is not None else None
    failed = kind not in (None, "completed", "deferred")
    runnable = state == "runnable" or facts.queued_runnable_id is not None
    rules: list[tuple[bool, ClosureOutcome, WaitingReason | None]] = [
        (failed, ClosureOutcome.FAILED, None),
        (facts.put_off, ClosureOutcome.WAITING, TIMER),
        (facts.turn_open, ClosureOutcome.WAITING, EXTERNAL),
        (runnable, ClosureOutcome.CONTINUABLE, None),
        ("operator" in waits, ClosureOutcome.WAITING, OPERATOR),
        ("external" in waits, ClosureOutcome.WAITING, EXTERNAL),
        ("task" in waits, ClosureOutcome.WAITING, TASK),
        ("timer" in waits, ClosureOutcome.WAITING, TIMER),
        ("system" in waits, ClosureOutcome.WAITING, None),
        (state == "waiting_operator", ClosureOutcome.WAITING, OPERATOR),
        (state == "waiting_task", ClosureOutcome.WAITING, TASK),
        (state == "waiting_external", ClosureOutcome.WAITING, EXTERNAL),
        (state == "waiting_timer", ClosureOutcome.WAITING, TIMER),
        (state == "waiting_system", ClosureOutcome.WAITING, None),
        (facts.last_terminal is None, ClosureOutcome.WAITING, None),
        (True, ClosureOutcome.COMPLETED, None),
    ]
    return next((outcome, reason) for holds, outcome, reason in rules if holds)


@pytest.mark.requirement("closure:first-match-decides")
@pytest.mark.requirement("closure:waiting-reason-iff-waiting")
@pytest.mark.requirement("closure:work-signal-iff-continuable")
def test_every_combination_of_facts_has_the_outcome_of_the_first_rule_that_holds() -> None:
    count = 0
    for facts in every_fact():
        count += 1
        closure = derive_closure(facts)
        assert (outcome_of(closure), waiting_reason_of(closure)) == oracle(facts), facts
        assert hasattr(closure, "waiting_reason") is isinstance(closure, Waiting)
        assert hasattr(closure, "work_signal") is isinstance(closure, Continuable)
        assert closure.evidence
    assert count > 10_000


@pytest.mark.requirement("closure:completed-needs-terminal-turn")
def test_nothing_is_completed_without_a_turn_that_was_seen_to_end() -> None:
    for facts in every_fact():
        if isinstance(derive_closure(facts), Completed):
            assert facts.last_terminal is not None
            assert facts.last_terminal.kind in ENDED_WELL
            assert not facts.turn_open


@pytest.mark.requirement("closure:completed-needs-terminal-turn")
def test_an_agent_that_never_ran_waits_for_nothing_nameable() -> None:
    assert derive_closure(ClosureFacts()) == Waiting(evidence=(NO_TURN_OBSERVED,))


@pytest.mark.requirement("closure:rest-is-not-waiting")
@pytest.mark.parametrize("kind", [WaitKind.REST, WaitKind.RECHECK])
def test_a_rest_or_a_reminder_leaves_the_closure_as_it_is(kind: WaitKind) -> None:
    for facts in every_fact():
        without = msgspec.structs.replace(facts, agent_waits=facts.agent_waits - {kind})
        assert derive_closure(facts) == derive_closure(without)


@pytest.mark.requirement("closure:work-before-waiting")
@pytest.mark.requirement("closure:continuable-means-work-warrants-followup")
@pytest.mark.parametrize("kind", WaitKind)
def test_runnable_work_goes_before_any_wait_of_the_agent(kind: WaitKind) -> None:
    facts = ClosureFacts(
        last_terminal=ended(TerminalKind.COMPLETED),
        current=CurrentWork(work_item_id=ITEM.id, state=SchedulingState.RUNNABLE),
        queued_runnable_id=WorkItemId("work_2"),
        agent_waits=frozenset({kind}),
    )
    closure = derive_closure(facts)
    assert isinstance(closure, Continuable)
    assert closure.work_signal.work_item_id == ITEM.id
    assert closure.work_signal.status is WorkSignalStatus.ACTIVE
    assert closure.work_signal.reactivation_mode is ReactivationMode.CONTINUE_ACTIVE


@pytest.mark.requirement("closure:queued-work-is-offered-not-focused")
def test_queued_work_is_signalled_by_its_own_id_and_mode() -> None:
    closure = derive_closure(
        ClosureFacts(
            last_terminal=ended(TerminalKind.COMPLETED),
            current=CurrentWork(work_item_id=ITEM.id, state=SchedulingState.BLOCKED),
            queued_runnable_id=WorkItemId("work_2"),
        )
    )
    assert isinstance(closure, Continuable)
    assert closure.work_signal.work_item_id == "work_2"
    assert closure.work_signal.status is WorkSignalStatus.QUEUED
    assert closure.work_signal.reactivation_mode is ReactivationMode.ACTIVATE_QUEUED


@pytest.mark.requirement("closure:every-other-terminal-is-failure")
@pytest.mark.parametrize("kind", sorted(set(TerminalKind) - ENDED_WELL))
@pytest.mark.parametrize("reason", ["the provider timed out", None])
def test_every_terminal_but_a_completed_or_a_put_off_one_is_a_failure_that_says_why(
    kind: TerminalKind, reason: str | None
) -> None:
    closure = derive_closure(ClosureFacts(last_terminal=ended(kind, reason)))
    assert isinstance(closure, Failed)
    assert closure.summary == (reason or kind.value)


def test_a_turn_that_was_put_off_waits_for_its_moment_whatever_work_there_is() -> None:
    facts = ClosureFacts(
        last_terminal=ended(TerminalKind.DEFERRED, "used up"),
        put_off=True,
        queued_runnable_id=WorkItemId("work_2"),
    )
    assert derive_closure(facts) == Waiting(waiting_reason=TIMER, evidence=("provider_deferred",))
    over = msgspec.structs.replace(facts, put_off=False)
    assert isinstance(derive_closure(over), Continuable)


# --- facts from rows ------------------------------------------------------------------------------


def snapshot_of(
    status: AgentStatus = AgentStatus.ASLEEP, *, terminal: TurnTerminal | None = None
) -> AgentSnapshot:
    agent = msgspec.structs.replace(agent_in(status), last_terminal=terminal)
    return AgentSnapshot(agent=agent)


def derive(snapshot: AgentSnapshot) -> Closure:
    return derive_closure(closure_facts(snapshot))


DONE: Final = snapshot_of(terminal=ended(TerminalKind.COMPLETED))


@pytest.mark.requirement("closure:timer-is-not-waiting")
def test_active_timers_alone_do_not_make_an_agent_wait() -> None:
    assert isinstance(derive(msgspec.structs.replace(DONE, active_timer_count=3)), Completed)


@pytest.mark.requirement("closure:posture-says-awake-or-sleeping")
@pytest.mark.parametrize("status", AgentStatus)
def test_the_posture_says_whether_the_agent_is_up(status: AgentStatus) -> None:
    up = status in ("awake_idle", "awake_running", "awaiting_task")
    wanted = RuntimePosture.AWAKE if up else RuntimePosture.SLEEPING
    assert posture_of(status) is wanted
    for terminal in (None, *(ended(kind) for kind in TerminalKind)):
        assert derive(snapshot_of(status, terminal=terminal)).runtime_posture is wanted


@pytest.mark.requirement("closure:differs-from-status")
@pytest.mark.parametrize("status", AgentStatus)
def test_the_status_never_changes_the_outcome(status: AgentStatus) -> None:
    for terminal in (None, *(ended(kind) for kind in TerminalKind)):
        asleep = derive(snapshot_of(terminal=terminal))
        assert outcome_of(derive(snapshot_of(status, terminal=terminal))) == outcome_of(asleep)


def test_an_open_turn_is_read_from_the_focus() -> None:
    agent = msgspec.structs.replace(DONE.agent, focus=AgentFocus(open_turn_id=TurnId("turn_2")))
    closure = derive(msgspec.structs.replace(DONE, agent=agent))
    assert closure == Waiting(waiting_reason=EXTERNAL, evidence=("turn_open",))


@pytest.mark.parametrize("state", WaitState)
def test_only_open_waits_of_the_agent_count(state: WaitState) -> None:
    wait = wait_of(WaitKind.OPERATOR, state)
    closure = derive(msgspec.structs.replace(DONE, agent_waits=(wait,)))
    assert (waiting_reason_of(closure) is OPERATOR) is state.is_open


@pytest.mark.requirement("closure:open-alone-is-not-runnable")
def test_work_is_weighed_by_readiness_not_by_being_open() -> None:
    blocked, runnable = weighed("work_2", blocked=True), weighed("work_3")
    needs_input = WeighedItem(
        item=msgspec.structs.replace(ITEM, plan_status=PlanStatus.NEEDS_INPUT)
    )
    closure = derive(msgspec.structs.replace(DONE, current=needs_input, queued=(blocked,)))
    assert waiting_reason_of(closure) is OPERATOR
    offered = derive(msgspec.structs.replace(DONE, current=blocked, queued=(blocked, runnable)))
    assert isinstance(offered, Continuable)
    assert offered.work_signal.work_item_id == "work_3"
    current = derive(msgspec.structs.replace(DONE, current=weighed(), queued=(runnable,)))
    assert isinstance(current, Continuable)
    assert current.work_signal.work_item_id == ITEM.id


def test_a_blocked_focus_and_nothing_else_is_completed() -> None:
    assert isinstance(
        derive(msgspec.structs.replace(DONE, current=weighed(blocked=True))), Completed
    )
