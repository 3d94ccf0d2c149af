"""What a trigger amounts to, given how the agent stood before it.

Owns:  the continuation table: trigger kind × prior closure → a reason to run the model, or none.
Rule 1: the prior closure is the one from before the message was claimed; a lane that has started
        to run must not hide the state the message found.
Rule 2: a message that ends a wait by identity resumes it, whatever else the agent waits for.
Rule 3: only the operator and a finished task override a wait for something else. Outside events,
        timers and ticks never do.
Rule 4: a message that was put off is taken up again, whatever happened in between: what it led to
        once is not decided anew.
Rule 5: an agent that has never run is not waiting, although its closure cannot say completed. What
        a trigger finds then is told as completed: nothing was left open, and the evidence says why.
Rule 6: a tick whose reason is gone is silent, however long it waited: that of a timer which was
        cancelled meanwhile, and the offer of a work item that can no longer be worked on.
"""

from typing import assert_never

from holon.decide.admission import trigger_kind_of
from holon.decide.closure import NO_TURN_OBSERVED
from holon.decide.readiness import is_runnable
from holon.decide.ticks import WORK_QUEUE
from holon.model.closure import (
    Closure,
    ClosureOutcome,
    Waiting,
    WaitingReason,
    outcome_of,
    waiting_reason_of,
)
from holon.model.continuation import (
    Continuation,
    LivenessOnly,
    Reentry,
    ReentryClass,
    TriggerKind,
)
from holon.model.ids import TimerId, WorkItemId
from holon.model.message import MessageKind, QueueEntry
from holon.model.provenance import SystemOrigin, TimerOrigin
from holon.model.record import Record
from holon.model.snapshot import WeighedItem
from holon.model.wake import TimerRecord, TimerStatus


class ContinuationFacts(Record, frozen=True, kw_only=True):
    """A message about to be claimed, and the closure it found."""

    kind: MessageKind
    contentful: bool  # for a tick made of wake hints: whether a hint brought a body
    task_terminal: bool  # for a task result: whether the task has ended
    ends_wait: bool  # the message names an open wait of this agent and is what ends it
    prior: Closure
    was_put_off: bool = False  # it had its turn, and no provider would answer then
    moot: str | None = None  # why the tick has nothing to say any more, if it has not


def timer_in_question(entry: QueueEntry) -> TimerId | None:
    """Return the timer whose end would make a message moot, if there is one."""
    origin = entry.message.origin
    return origin.timer_id if entry.was_put_off and isinstance(origin, TimerOrigin) else None


def item_in_question(entry: QueueEntry) -> WorkItemId | None:
    """Return the work item whose state may make a message moot, if there is one."""
    is_offer = entry.message.origin == SystemOrigin(subsystem=WORK_QUEUE)
    return entry.message.work_item_id if is_offer else None


def mootness(
    entry: QueueEntry, *, timer: TimerRecord | None, offered: WeighedItem | None
) -> str | None:
    """Return why a tick has nothing to say any more, or nothing when it has.

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
    """Say whether the message reaches the model now, and as what."""
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
