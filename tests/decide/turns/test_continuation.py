"""The continuation table, every cell of it, against a table written by hand."""

import itertools
from typing import Final

import msgspec
import pytest

from holon.decide.turns.closure import (
    NO_TURN_OBSERVED,
    ClosureFacts,
    ContinuationFacts,
    derive_closure,
    is_waiting,
    item_in_question,
    moot_reason,
    resolve_continuation,
    timer_in_question,
)
from holon.decide.wake.ticks import WORK_QUEUE
from holon.model.queue import MessageEnvelope, MessageKind, MessageState, QueueEntry, SystemOrigin
from holon.model.turns.turn import (
    Closure,
    ClosureOutcome,
    Completed,
    Continuable,
    Failed,
    LivenessOnly,
    ReactivationMode,
    Reentry,
    ReentryClass,
    TriggerKind,
    Waiting,
    WaitingReason,
    WorkSignal,
    WorkSignalStatus,
    outcome_of,
)
from holon.model.values import WorkItemId
from holon.model.wake import TimerStatus
from tests.decide.sample_rows import weighed
from tests.support.builders import a_message, a_tick, a_timer, a_timer_tick

# The oracle: kind, then the condition under which it says anything, then the class it gets when the
# prior closure is: not waiting / operator / external / task / timer / a system wait without reason.
TABLE: Final = """
operator_prompt    always     local  expected  override  override  override  override
task_result        terminal   local  override  override  expected  override  override
webhook_event      contentful local  nothing   expected  nothing   nothing   nothing
callback_event     contentful local  nothing   expected  nothing   nothing   nothing
channel_event      contentful local  nothing   expected  nothing   nothing   nothing
system_tick        contentful local  nothing   expected  nothing   nothing   nothing
timer_tick         always     local  nothing   nothing   nothing   expected  nothing
internal_followup  always     local  nothing   nothing   nothing   nothing   nothing
task_status        never      -      -         -         -         -         -
control            never      -      -         -         -         -         -
brief_ack          never      -      -         -         -         -         -
brief_result       never      -      -         -         -         -         -
"""
CLASSES: Final = {
    "local": ReentryClass.LOCAL_CONTINUATION,
    "expected": ReentryClass.RESUME_EXPECTED_WAIT,
    "override": ReentryClass.RESUME_OVERRIDE,
}
SIGNAL: Final = WorkSignal(
    work_item_id=WorkItemId("work_1"),
    status=WorkSignalStatus.ACTIVE,
    reactivation_mode=ReactivationMode.CONTINUE_ACTIVE,
)
FRESH: Final = Waiting(evidence=(NO_TURN_OBSERVED,))
# Every prior closure, with the column of the table it falls into.
PRIORS: Final[tuple[tuple[Closure, int], ...]] = (
    (Completed(), 0),
    (Continuable(work_signal=SIGNAL), 0),
    (Failed(summary="timeout"), 0),
    (FRESH, 0),
    (Waiting(waiting_reason=WaitingReason.AWAITING_OPERATOR_INPUT), 1),
    (Waiting(waiting_reason=WaitingReason.AWAITING_EXTERNAL_CHANGE), 2),
    (Waiting(waiting_reason=WaitingReason.AWAITING_TASK_RESULT), 3),
    (Waiting(waiting_reason=WaitingReason.AWAITING_TIMER), 4),
    (Waiting(evidence=("current_item:waiting_system",)), 5),
)
ROWS: Final = {
    MessageKind(name): (condition, columns)
    for name, condition, *columns in (line.split() for line in TABLE.strip().splitlines())
}


def expected_class(facts: ContinuationFacts, column: int) -> ReentryClass | None:
    condition, columns = ROWS[facts.kind]
    if condition == "never":
        return None
    if facts.ends_wait:
        return ReentryClass.RESUME_EXPECTED_WAIT
    says = {"always": True, "terminal": facts.task_terminal, "contentful": facts.contentful}
    return CLASSES.get(columns[column]) if says[condition] else None


def test_the_oracle_names_every_kind_and_every_waiting_reason() -> None:
    assert set(ROWS) == set(MessageKind)
    named = {prior.waiting_reason for prior, _ in PRIORS if isinstance(prior, Waiting)}
    assert named == {None, *WaitingReason}


@pytest.mark.requirement("continuation:derived-from-prior-closure")
@pytest.mark.requirement("continuation:prior-is-reported")
@pytest.mark.requirement("continuation:matched-reason-is-reported")
@pytest.mark.parametrize("kind", MessageKind)
def test_every_cell_of_the_table_is_as_written(kind: MessageKind) -> None:
    flags = itertools.product((False, True), repeat=3)
    for (contentful, terminal, ends_wait), (prior, column) in itertools.product(flags, PRIORS):
        facts = ContinuationFacts(
            kind=kind,
            contentful=contentful,
            task_terminal=terminal,
            ends_wait=ends_wait,
            prior=prior,
        )
        found = resolve_continuation(facts)
        wanted = expected_class(facts, column)
        told = ClosureOutcome.COMPLETED if prior == FRESH else outcome_of(prior)
        assert found.prior_outcome == told
        reason = prior.waiting_reason if isinstance(prior, Waiting) else None
        assert found.prior_waiting_reason == reason
        assert found.evidence
        if wanted is None:
            assert isinstance(found, LivenessOnly), facts
        else:
            assert isinstance(found, Reentry), facts
            assert found.continuation_class is wanted, facts
            in_table = CLASSES.get(ROWS[kind][1][column])
            matched = in_table is ReentryClass.RESUME_EXPECTED_WAIT
            assert found.matched_waiting_reason is matched, facts


def resolve(
    kind: MessageKind,
    prior: Closure,
    *,
    contentful: bool = True,
    terminal: bool = True,
    ends_wait: bool = False,
) -> Reentry | LivenessOnly:
    return resolve_continuation(
        ContinuationFacts(
            kind=kind,
            contentful=contentful,
            task_terminal=terminal,
            ends_wait=ends_wait,
            prior=prior,
        )
    )


def waiting_for(reason: WaitingReason) -> Waiting:
    return Waiting(waiting_reason=reason)


@pytest.mark.requirement("continuation:task-status-is-observation")
@pytest.mark.parametrize(("prior", "column"), PRIORS)
def test_a_task_status_never_starts_a_turn(prior: Closure, column: int) -> None:
    del column
    found = resolve(MessageKind.TASK_STATUS, prior, ends_wait=True)
    assert isinstance(found, LivenessOnly)
    assert found.trigger_kind is None


@pytest.mark.requirement("continuation:task-result-rejoins")
@pytest.mark.parametrize(("prior", "column"), PRIORS)
def test_a_terminal_task_result_always_rejoins(prior: Closure, column: int) -> None:
    del column
    found = resolve(MessageKind.TASK_RESULT, prior)
    assert isinstance(found, Reentry)
    assert found.trigger_kind is TriggerKind.TASK_RESULT
    assert isinstance(resolve(MessageKind.TASK_RESULT, prior, terminal=False), LivenessOnly)


@pytest.mark.requirement("continuation:only-operator-overrides")
@pytest.mark.parametrize("reason", WaitingReason)
def test_nothing_from_outside_overrides_a_wait_but_the_operator(reason: WaitingReason) -> None:
    prior = waiting_for(reason)
    overriding = {
        kind
        for kind in MessageKind
        if isinstance(found := resolve(kind, prior), Reentry)
        and found.continuation_class is ReentryClass.RESUME_OVERRIDE
    }
    assert overriding <= {MessageKind.OPERATOR_PROMPT, MessageKind.TASK_RESULT}
    assert isinstance(resolve(MessageKind.OPERATOR_PROMPT, prior), Reentry)


@pytest.mark.requirement("continuation:external-is-not-operator")
@pytest.mark.parametrize(
    "kind", [MessageKind.WEBHOOK_EVENT, MessageKind.CALLBACK_EVENT, MessageKind.CHANNEL_EVENT]
)
def test_an_outside_event_does_not_answer_for_the_operator(kind: MessageKind) -> None:
    found = resolve(kind, waiting_for(WaitingReason.AWAITING_OPERATOR_INPUT))
    assert isinstance(found, LivenessOnly)
    assert found.trigger_kind is TriggerKind.EXTERNAL_EVENT


@pytest.mark.requirement("continuation:tick-may-be-liveness-only")
@pytest.mark.requirement("continuation:contentful-hint-may-be-visible")
@pytest.mark.parametrize("prior", [Completed(), FRESH])
def test_a_tick_reaches_the_model_only_with_something_to_say(prior: Closure) -> None:
    assert isinstance(resolve(MessageKind.SYSTEM_TICK, prior), Reentry)
    assert isinstance(resolve(MessageKind.SYSTEM_TICK, prior, contentful=False), LivenessOnly)


@pytest.mark.requirement("continuation:timer-tick-may-resume-local-work")
@pytest.mark.parametrize("contentful", [False, True])
def test_a_timer_tick_resumes_local_work_whatever_the_timer_record_says(contentful: bool) -> None:
    found = resolve(MessageKind.TIMER_TICK, Completed(), contentful=contentful)
    assert isinstance(found, Reentry)
    assert found.continuation_class is ReentryClass.LOCAL_CONTINUATION


@pytest.mark.requirement("continuation:running-marker-does-not-suppress")
@pytest.mark.parametrize("kind", [MessageKind.INTERNAL_FOLLOWUP, MessageKind.TIMER_TICK])
def test_a_followup_reaches_the_model_when_the_prior_state_was_not_waiting(
    kind: MessageKind,
) -> None:
    # What the lane itself would look like once it runs would hold the trigger back …
    running = derive_closure(ClosureFacts(turn_open=True))
    assert isinstance(resolve(kind, running), LivenessOnly)
    # … so it is the state before the claim that decides.
    assert isinstance(resolve(kind, Completed()), Reentry)


@pytest.mark.requirement("continuation:identity-ends-a-wait")
@pytest.mark.parametrize(("prior", "column"), PRIORS)
def test_what_ends_a_wait_by_identity_resumes_it_whatever_else_is_awaited(
    prior: Closure, column: int
) -> None:
    del column
    found = resolve(MessageKind.TIMER_TICK, prior, contentful=False, ends_wait=True)
    assert isinstance(found, Reentry)
    assert found.continuation_class is ReentryClass.RESUME_EXPECTED_WAIT
    awaited = prior.waiting_reason if isinstance(prior, Waiting) else None
    assert found.matched_waiting_reason is (awaited is WaitingReason.AWAITING_TIMER)


@pytest.mark.requirement("scheduling:only-runnable-items-are-activated")
@pytest.mark.parametrize("was_put_off", [False, True])
@pytest.mark.parametrize("moot", ["timer_cancelled", "work_not_runnable"])
def test_a_tick_whose_reason_is_gone_is_silent_and_shown_to_nobody(
    moot: str, was_put_off: bool
) -> None:
    found = resolve_continuation(
        ContinuationFacts(
            kind=MessageKind.SYSTEM_TICK,
            contentful=True,
            task_terminal=False,
            ends_wait=False,
            prior=Completed(),
            was_put_off=was_put_off,
            moot=moot,
        )
    )
    assert isinstance(found, LivenessOnly)
    assert found.evidence == (moot,)
    assert found.trigger_kind is None, "what triggers nothing is not kept for the next turn"


@pytest.mark.requirement("continuation:prior-outcome-of-a-fresh-agent")
@pytest.mark.requirement("continuation:a-fresh-agent-is-not-waiting")
def test_an_agent_that_never_ran_takes_an_outside_event_as_local_continuation() -> None:
    fresh = derive_closure(ClosureFacts())
    assert fresh == FRESH
    assert not is_waiting(fresh)
    found = resolve(MessageKind.WEBHOOK_EVENT, fresh)
    assert isinstance(found, Reentry)
    assert found.continuation_class is ReentryClass.LOCAL_CONTINUATION
    assert found.prior_outcome is ClosureOutcome.COMPLETED, "what it found was not waiting"
    assert found.prior_waiting_reason is None
    assert NO_TURN_OBSERVED in found.evidence
    silent = resolve(MessageKind.TASK_STATUS, fresh)
    assert isinstance(silent, LivenessOnly)
    assert silent.prior_outcome is ClosureOutcome.COMPLETED


def test_a_system_wait_without_a_reason_still_holds_back() -> None:
    assert is_waiting(Waiting(evidence=("agent_wait:system",)))
    assert is_waiting(
        Waiting(waiting_reason=WaitingReason.AWAITING_TIMER, evidence=(NO_TURN_OBSERVED,))
    )


def _put_off(message: MessageEnvelope) -> QueueEntry:
    return QueueEntry(seq=1, state=MessageState.QUEUED, message=message, was_put_off=True)


def test_a_tick_of_a_cancelled_timer_is_moot_only_when_it_was_put_off() -> None:
    tick, timer = a_timer_tick("msg_1", "timer_1"), a_timer("timer_1")
    cancelled = msgspec.structs.replace(timer, status=TimerStatus.CANCELLED)
    late = _put_off(tick)
    assert timer_in_question(late) == "timer_1"
    assert moot_reason(late, timer=cancelled, offered=None) == "timer_cancelled"
    assert moot_reason(late, timer=timer, offered=None) is None
    fresh = QueueEntry(seq=1, state=MessageState.QUEUED, message=tick)
    assert timer_in_question(fresh) is None
    assert moot_reason(fresh, timer=cancelled, offered=None) is None


def test_an_offer_is_moot_once_its_item_cannot_be_worked_on() -> None:
    offer = msgspec.structs.replace(
        a_tick(), origin=SystemOrigin(subsystem=WORK_QUEUE), work_item_id=WorkItemId("work_1")
    )
    entry = QueueEntry(seq=1, state=MessageState.QUEUED, message=offer)
    assert item_in_question(entry) == "work_1"
    assert moot_reason(entry, timer=None, offered=weighed()) is None
    for offered in (None, weighed(blocked=True)):
        assert moot_reason(entry, timer=None, offered=offered) == "work_not_runnable"


def test_a_message_of_another_origin_is_never_moot() -> None:
    entry = _put_off(a_message(work_item_id=WorkItemId("work_1")))
    assert timer_in_question(entry) is None
    assert item_in_question(entry) is None
    assert moot_reason(entry, timer=None, offered=None) is None
