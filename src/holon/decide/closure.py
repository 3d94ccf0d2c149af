"""How an execution pass ended, from the rows alone.

Owns:  the order in which facts decide the outcome. First match wins.
Rule 1: failure speaks first, then a message that is put off, an open turn, work, and waits;
        completed comes last and needs a turn that was seen to end.
Rule 2: work goes before waiting: an agent with something to do is not waiting.
Rule 3: a rest and an active timer never make an agent wait; a reminder on a blocked item neither.
Rule 4: an agent that never ran is neither completed nor waiting for anything nameable; its closure
        is a reasonless wait with the evidence NO_TURN_OBSERVED.
"""

from typing import Final

from holon.decide.readiness import is_runnable, scheduling_state
from holon.model.agent_status import AgentStatus
from holon.model.closure import (
    Closure,
    Completed,
    Continuable,
    Failed,
    ReactivationMode,
    RuntimePosture,
    Waiting,
    WaitingReason,
    WorkSignal,
    WorkSignalStatus,
)
from holon.model.ids import WorkItemId
from holon.model.record import Record
from holon.model.snapshot import AgentSnapshot, WeighedItem
from holon.model.turn import ENDED_WELL, TurnTerminal
from holon.model.wait import WaitKind
from holon.model.work_item import SchedulingState

NO_TURN_OBSERVED: Final = "no_turn_observed"

# First match wins. REST and RECHECK are left out on purpose.
AGENT_WAIT_REASONS: Final[tuple[tuple[WaitKind, WaitingReason | None], ...]] = (
    (WaitKind.OPERATOR, WaitingReason.AWAITING_OPERATOR_INPUT),
    (WaitKind.EXTERNAL, WaitingReason.AWAITING_EXTERNAL_CHANGE),
    (WaitKind.TASK, WaitingReason.AWAITING_TASK_RESULT),
    (WaitKind.TIMER, WaitingReason.AWAITING_TIMER),
    (WaitKind.SYSTEM, None),
)

ITEM_WAIT_REASONS: Final[dict[SchedulingState, WaitingReason | None]] = {
    SchedulingState.WAITING_OPERATOR: WaitingReason.AWAITING_OPERATOR_INPUT,
    SchedulingState.WAITING_EXTERNAL: WaitingReason.AWAITING_EXTERNAL_CHANGE,
    SchedulingState.WAITING_TASK: WaitingReason.AWAITING_TASK_RESULT,
    SchedulingState.WAITING_TIMER: WaitingReason.AWAITING_TIMER,
    SchedulingState.WAITING_SYSTEM: None,
}

_AWAKE: Final = frozenset(
    {AgentStatus.AWAKE_IDLE, AgentStatus.AWAKE_RUNNING, AgentStatus.AWAITING_TASK}
)


class CurrentWork(Record, frozen=True, kw_only=True):
    """The item in focus and what the scheduler may do with it."""

    work_item_id: WorkItemId
    state: SchedulingState


class ClosureFacts(Record, frozen=True, kw_only=True):
    """Everything the outcome depends on."""

    last_terminal: TurnTerminal | None = None
    turn_open: bool = False
    current: CurrentWork | None = None
    queued_runnable_id: WorkItemId | None = None  # the first such item
    put_off: bool = False  # a message waits for the moment a provider named
    held_by_budget: bool = False  # and a used-up budget keeps every turn from beginning
    agent_waits: frozenset[WaitKind] = frozenset()  # kinds of the agent's own open waits
    posture: RuntimePosture = RuntimePosture.SLEEPING


def closure_facts(snapshot: AgentSnapshot) -> ClosureFacts:
    """Read the facts from an agent's rows."""
    queued = (
        weighed.item.id for weighed in snapshot.queued if is_runnable(weighed.item, weighed.waits)
    )
    return ClosureFacts(
        last_terminal=snapshot.agent.last_terminal,
        turn_open=snapshot.agent.focus.open_turn_id is not None,
        current=_current_work(snapshot.current),
        queued_runnable_id=next(queued, None),
        put_off=snapshot.deferred_until is not None,
        held_by_budget=snapshot.agent.pace.budget_until is not None,
        agent_waits=frozenset(wait.kind for wait in snapshot.agent_waits if wait.state.is_open),
        posture=posture_of(snapshot.agent.posture.status),
    )


def current_closure(snapshot: AgentSnapshot) -> Closure | None:
    """Return what has come of an agent's work as its rows stand; nothing when it has never run."""
    if snapshot.agent.last_terminal is None and snapshot.agent.focus.open_turn_id is None:
        return None
    return derive_closure(closure_facts(snapshot))


def _current_work(focus: WeighedItem | None) -> CurrentWork | None:
    if focus is None:
        return None
    return CurrentWork(work_item_id=focus.item.id, state=scheduling_state(focus.item, focus.waits))


def posture_of(status: AgentStatus) -> RuntimePosture:
    """Say whether an agent in this status is up."""
    return RuntimePosture.AWAKE if status in _AWAKE else RuntimePosture.SLEEPING


def derive_closure(facts: ClosureFacts) -> Closure:
    """Name the outcome. First matching rule wins; read top to bottom."""
    terminal = facts.last_terminal
    if terminal is not None and terminal.kind not in ENDED_WELL:
        return _failed(terminal, facts.posture)
    if facts.put_off:
        evidence = "budget_used_up" if facts.held_by_budget else "provider_deferred"
        return _waiting(facts, WaitingReason.AWAITING_TIMER, evidence)
    if facts.turn_open:
        return _waiting(facts, WaitingReason.AWAITING_EXTERNAL_CHANGE, "turn_open")
    if (signal := _work_signal(facts)) is not None:
        return Continuable(
            work_signal=signal,
            runtime_posture=facts.posture,
            evidence=(signal.reactivation_mode.value,),
        )
    for kind, reason in AGENT_WAIT_REASONS:
        if kind in facts.agent_waits:
            return _waiting(facts, reason, f"agent_wait:{kind}")
    if facts.current is not None and facts.current.state in ITEM_WAIT_REASONS:
        reason = ITEM_WAIT_REASONS[facts.current.state]
        return _waiting(facts, reason, f"current_item:{facts.current.state}")
    if terminal is None:
        return _waiting(facts, None, NO_TURN_OBSERVED)
    return Completed(runtime_posture=facts.posture, evidence=("turn_terminal",))


def _work_signal(facts: ClosureFacts) -> WorkSignal | None:
    if facts.current is not None and facts.current.state is SchedulingState.RUNNABLE:
        return WorkSignal(
            work_item_id=facts.current.work_item_id,
            status=WorkSignalStatus.ACTIVE,
            reactivation_mode=ReactivationMode.CONTINUE_ACTIVE,
        )
    if facts.queued_runnable_id is not None:
        return WorkSignal(
            work_item_id=facts.queued_runnable_id,
            status=WorkSignalStatus.QUEUED,
            reactivation_mode=ReactivationMode.ACTIVATE_QUEUED,
        )
    return None


def _waiting(facts: ClosureFacts, reason: WaitingReason | None, evidence: str) -> Waiting:
    return Waiting(waiting_reason=reason, runtime_posture=facts.posture, evidence=(evidence,))


def _failed(terminal: TurnTerminal, posture: RuntimePosture) -> Failed:
    return Failed(
        summary=terminal.reason or terminal.kind.value,
        runtime_posture=posture,
        evidence=(f"turn_terminal:{terminal.kind}",),
    )
