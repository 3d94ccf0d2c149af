"""Closure and continuation: the outcome of a turn, and what a trigger does next.

Owns:  the order in which facts decide the closure; the continuation table: trigger kind × prior
       closure → a reason to run the model, or none.
Rule 1: the first match wins: failure, a deferred message, an open turn, work, waits; completed
        comes last and needs a turn that was seen to end.
Rule 2: work goes before waiting: an agent with something to do is not waiting.
Rule 3: a rest and an active timer never make an agent wait; a reminder on a blocked item neither.
Rule 4: an agent that never ran is neither completed nor waiting for anything nameable; its closure
        is a reasonless wait with the evidence NO_TURN_OBSERVED.
Rule 5: the prior closure is the one from before the message was claimed; a lane that has started to
        run must not hide the state the message found.
Rule 6: a message that ends a wait by identity resumes it, whatever else the agent waits for.
Rule 7: only the operator and a finished task override a wait for something else. Outside events,
        timers and ticks never do.
Rule 8: a deferred message is taken up again in any case: what it led to is not decided anew.
Rule 9: an agent that has never run is not waiting, although its closure cannot say completed. For a
        trigger its prior closure counts as completed: nothing was left open, and the evidence says
        why.
Rule 10: a tick whose reason is gone is silent, however long it waited: the tick of a timer that was
         cancelled meanwhile, and the offer of a work item that can no longer be worked on.
"""

from typing import Final, assert_never

from holon.decide.queue.admission import trigger_kind_of
from holon.decide.wake.ticks import WORK_QUEUE
from holon.decide.work.projection import is_runnable, scheduling_state
from holon.model.agents import AgentStatus
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.queue import MessageKind, QueueEntry, SystemOrigin, TimerOrigin
from holon.model.record import Record
from holon.model.turns.turn import (
    ENDED_WELL,
    Closure,
    ClosureOutcome,
    Completed,
    Continuable,
    Continuation,
    Failed,
    LivenessOnly,
    ReactivationMode,
    Reentry,
    ReentryClass,
    RuntimePosture,
    TriggerKind,
    TurnTerminal,
    Waiting,
    WaitingReason,
    WorkSignal,
    WorkSignalStatus,
    outcome_of,
    waiting_reason_of,
)
from holon.model.values import TimerId, WorkItemId
from holon.model.wake import TimerRecord, TimerStatus, WaitKind
from holon.model.work import SchedulingState

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
    """Return the closure of an agent's work as its rows stand; None when it has never run."""
    if snapshot.agent.last_terminal is None and snapshot.agent.focus.open_turn_id is None:
        return None
    return derive_closure(closure_facts(snapshot))


def _current_work(focus: WeighedItem | None) -> CurrentWork | None:
    if focus is None:
        return None
    return CurrentWork(work_item_id=focus.item.id, state=scheduling_state(focus.item, focus.waits))


def posture_of(status: AgentStatus) -> RuntimePosture:
    """Return whether an agent in this status is up."""
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


class ContinuationFacts(Record, frozen=True, kw_only=True):
    """A message about to be claimed, and the closure it found."""

    kind: MessageKind
    contentful: bool  # for a tick made of wake hints: whether a hint brought a body
    task_terminal: bool  # for a task result: whether the task has ended
    ends_wait: bool  # the message names an open wait of this agent and is what ends it
    prior: Closure
    was_put_off: bool = False  # it had its turn, and no provider would answer then
    moot: str | None = None  # why the tick has no content any more, if it has not


def timer_in_question(entry: QueueEntry) -> TimerId | None:
    """Return the timer whose end would make a message moot, if it has one."""
    origin = entry.message.origin
    return origin.timer_id if entry.was_put_off and isinstance(origin, TimerOrigin) else None


def item_in_question(entry: QueueEntry) -> WorkItemId | None:
    """Return the work item whose state may make a message moot, if it has one."""
    is_offer = entry.message.origin == SystemOrigin(subsystem=WORK_QUEUE)
    return entry.message.work_item_id if is_offer else None


def moot_reason(
    entry: QueueEntry, *, timer: TimerRecord | None, offered: WeighedItem | None
) -> str | None:
    """Return why a tick has no content any more, or None when it has.

    `timer` and `offered` are what the two functions above name, as the rows stand.
    """
    if timer_in_question(entry) is not None:
        is_cancelled = timer is not None and timer.status is TimerStatus.CANCELLED
        return "timer_cancelled" if is_cancelled else None
    if item_in_question(entry) is not None:
        can_run = offered is not None and is_runnable(offered.item, offered.waits)
        return None if can_run else "work_not_runnable"
    return None


def resolve_continuation(facts: ContinuationFacts) -> Continuation:
    """Decide whether the message reaches the model now, and as what."""
    trigger = trigger_kind_of(facts.kind)
    if facts.moot is not None:
        return _liveness(facts, None, facts.moot)
    if trigger is None:
        return _liveness(facts, trigger, "no_trigger_kind")
    if facts.ends_wait:
        return _reentry(facts, trigger, ReentryClass.RESUME_EXPECTED_WAIT, "ends_wait_by_identity")
    if facts.was_put_off:
        return _reentry(facts, trigger, ReentryClass.RESUME_EXPECTED_WAIT, "taken_up_again")
    if not _speaks(facts, trigger):
        return _liveness(facts, trigger, "nothing_to_say")
    if not is_waiting(facts.prior):
        return _reentry(facts, trigger, ReentryClass.LOCAL_CONTINUATION, "prior_not_waiting")
    if _is_matched(facts, trigger):
        return _reentry(facts, trigger, ReentryClass.RESUME_EXPECTED_WAIT, "reason_matched")
    if trigger in (TriggerKind.OPERATOR_INPUT, TriggerKind.TASK_RESULT):
        return _reentry(facts, trigger, ReentryClass.RESUME_OVERRIDE, "may_override")
    return _liveness(facts, trigger, "waits_for_something_else")


def is_waiting(closure: Closure) -> bool:
    """Whether a closure holds triggers back. One that only lacks a first turn does not."""
    return isinstance(closure, Waiting) and not _never_ran(closure)


def _never_ran(closure: Closure) -> bool:
    return (
        isinstance(closure, Waiting)
        and closure.waiting_reason is None
        and NO_TURN_OBSERVED in closure.evidence
    )


def _speaks(facts: ContinuationFacts, trigger: TriggerKind) -> bool:
    match trigger:
        case TriggerKind.OPERATOR_INPUT | TriggerKind.TIMER_FIRE | TriggerKind.INTERNAL_FOLLOWUP:
            return True
        case TriggerKind.TASK_RESULT:
            return facts.task_terminal
        case TriggerKind.EXTERNAL_EVENT | TriggerKind.SYSTEM_TICK:
            return facts.contentful
        case _:
            assert_never(trigger)


def _is_matched(facts: ContinuationFacts, trigger: TriggerKind) -> bool:
    """Whether the agent waited for just this kind of thing."""
    reason = waiting_reason_of(facts.prior)
    return reason is not None and reason is _reason_met_by(trigger)


def _reason_met_by(trigger: TriggerKind) -> WaitingReason | None:
    match trigger:
        case TriggerKind.OPERATOR_INPUT:
            return WaitingReason.AWAITING_OPERATOR_INPUT
        case TriggerKind.TASK_RESULT:
            return WaitingReason.AWAITING_TASK_RESULT
        case TriggerKind.EXTERNAL_EVENT | TriggerKind.SYSTEM_TICK:
            return WaitingReason.AWAITING_EXTERNAL_CHANGE
        case TriggerKind.TIMER_FIRE:
            return WaitingReason.AWAITING_TIMER
        case TriggerKind.INTERNAL_FOLLOWUP:
            return None
        case _:
            assert_never(trigger)


def _reentry(
    facts: ContinuationFacts, trigger: TriggerKind, reentry: ReentryClass, evidence: str
) -> Reentry:
    return Reentry(
        continuation_class=reentry,
        trigger_kind=trigger,
        prior_outcome=_prior_outcome(facts.prior),
        prior_waiting_reason=waiting_reason_of(facts.prior),
        matched_waiting_reason=_is_matched(facts, trigger),
        evidence=_with_origin(evidence, facts.prior),
    )


def _liveness(facts: ContinuationFacts, trigger: TriggerKind | None, evidence: str) -> LivenessOnly:
    return LivenessOnly(
        trigger_kind=trigger,
        prior_outcome=_prior_outcome(facts.prior),
        prior_waiting_reason=waiting_reason_of(facts.prior),
        evidence=_with_origin(evidence, facts.prior),
    )


def _prior_outcome(prior: Closure) -> ClosureOutcome:
    return ClosureOutcome.COMPLETED if _never_ran(prior) else outcome_of(prior)


def _with_origin(evidence: str, prior: Closure) -> tuple[str, ...]:
    return (evidence, NO_TURN_OBSERVED) if _never_ran(prior) else (evidence,)
