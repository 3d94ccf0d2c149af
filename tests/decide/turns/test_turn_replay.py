"""A replayed log is the live turn, at every durable moment."""

import msgspec
import pytest
from hypothesis import given

from holon.decide.turns.commits import entry_of
from holon.decide.turns.conversation import conversation_of, problems_of
from holon.decide.turns.failures import operator_abort
from holon.decide.turns.recovery import ResumeTurnPlan, plan_turn
from holon.decide.turns.replay import TurnUsage, cut_off, replay, used_by_turn
from holon.decide.turns.step import NUDGE, advance
from holon.model.errors import ForbiddenTransitionError
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import RuntimeFailure, TurnLog
from holon.model.turns.turn import CallModel, Completion, Finish, RunTools, SafePoint, StopReason
from tests.decide.sample_rows import ITEM, NOW
from tests.decide.turn_rows import (
    TIMELINE,
    TOOLS,
    TURN,
    USAGE,
    interjected,
    opened_log,
    recorded,
)
from tests.decide.turn_script import SCRIPTS, LiveTurn, RoundScript

NOWHERE: frozenset[SafePoint] = frozenset()


def scripted(*rounds: RoundScript) -> TurnLog:
    """The log of a live turn at the end of its script."""
    *_, last = LiveTurn().run(list(rounds))
    return last.log


def one_round(text: str, *names: str, stop: StopReason = StopReason.TOOL_USE) -> RoundScript:
    return RoundScript(text, list(names), stop, [True, True, True], NOWHERE)


def with_failure(log: TurnLog) -> TurnLog:
    failed = RuntimeFailure(failure=operator_abort("enough"), timeline=TIMELINE)
    entry = entry_of(TURN, position=len(log.entries), at=NOW, data=failed)
    return msgspec.structs.replace(log, entries=(*log.entries, entry))


@pytest.mark.requirement("turn:replay-rebuilds-the-turn")
@given(script=SCRIPTS)
def test_replaying_the_log_gives_the_state_and_step_of_the_live_turn(
    script: list[RoundScript],
) -> None:
    for moment in LiveTurn().run(script):
        if not moment.settled:
            continue
        found = replay(moment.log, tools=TOOLS)
        assert found.state == moment.state
        assert found.step == moment.state.step
        assert found.round_number == moment.rounds
        assert found.next_position == len(moment.log.entries)
        assert found.usage == moment.usage


@pytest.mark.requirement("recovery:transcript-stays-sendable")
@given(script=SCRIPTS)
def test_after_a_crash_anywhere_the_repaired_turn_goes_on_and_can_be_sent(
    script: list[RoundScript],
) -> None:
    for moment in LiveTurn().run(script):
        plan = plan_turn(moment.log)
        assert isinstance(plan, ResumeTurnPlan)
        repaired = recorded(moment.log, plan.interrupted)
        found = replay(repaired, tools=TOOLS)
        assert not isinstance(found.step, RunTools)
        if isinstance(found.step, CallModel):
            assert problems_of(conversation_of([repaired])) == ()
        # Whatever became of it, the next turn can build on it.
        following = conversation_of([repaired, opened_log()])
        assert problems_of(following) == ()


@given(script=SCRIPTS)
def test_a_log_with_unanswered_calls_is_neither_replayed_nor_sendable(
    script: list[RoundScript],
) -> None:
    for moment in LiveTurn().run(script):
        if all(each.receipt is not None for each in moment.log.calls):
            continue
        assert problems_of(conversation_of([moment.log]))
        with pytest.raises(ForbiddenTransitionError):
            replay(moment.log, tools=TOOLS)


def test_a_log_without_entries_is_a_fresh_turn() -> None:
    found = replay(TurnLog(turn=TURN), tools=TOOLS)
    assert (found.step, found.round_number, found.next_position) == (CallModel(), 0, 0)
    assert found.usage == TokenUsage()


def test_refused_calls_are_receipts_like_any_other() -> None:
    log = scripted(one_round("", "Nope", "Read", "Hidden"))
    assert [each.receipt is not None for each in log.calls] == [True, True, True]
    assert replay(log, tools=TOOLS).step == CallModel()


def test_a_nudge_that_was_recorded_is_not_given_twice() -> None:
    log = scripted(one_round("Hel", stop=StopReason.MAX_TOKENS))
    found = replay(log, tools=TOOLS)
    assert found.step == CallModel()
    without = msgspec.structs.replace(log, entries=log.entries[:-1])
    assert replay(without, tools=TOOLS).step == CallModel(nudge=NUDGE)


def test_a_recorded_failure_replays_as_a_failed_turn() -> None:
    for log, worked in ((opened_log(), False), (scripted(one_round("", "Read")), True)):
        found = replay(with_failure(log), tools=TOOLS)
        assert isinstance(found.step, Finish)
        assert found.step.failure == operator_abort("enough")
        assert found.step.made_progress is worked


def test_a_failure_the_loop_found_itself_is_not_folded_twice() -> None:
    finished = scripted(one_round("done"))
    found = replay(with_failure(finished), tools=TOOLS)
    assert found.step == Finish(last_text="done")


def test_usage_is_the_sum_of_the_recorded_rounds() -> None:
    log = scripted(one_round("", "Read"), one_round("", "Read"), one_round("done"))
    found = replay(log, tools=TOOLS)
    assert found.usage == USAGE.plus(USAGE).plus(USAGE)
    assert found.round_number == 3
    assert used_by_turn(log) == TurnUsage(usage=found.usage, round_count=3)
    assert used_by_turn(opened_log()) == TurnUsage(usage=TokenUsage(), round_count=0)


def test_an_interjection_keeps_its_side_of_the_results() -> None:
    before = RoundScript(
        "", ["Sleep"], StopReason.TOOL_USE, [True] * 3, frozenset({SafePoint.BEFORE_TOOL_EXECUTION})
    )
    behind = before._replace(points=frozenset({SafePoint.AFTER_TOOL_RESULTS}))
    # Either way the model has to answer the operator; the words around it stay in order.
    for script in (before, behind):
        found = replay(scripted(script), tools=TOOLS)
        assert found.step == CallModel()
        assert found.state.interjected
    quiet = replay(scripted(before._replace(points=NOWHERE)), tools=TOOLS)
    assert isinstance(quiet.step, Finish)
    assert advance(quiet.state, interjected(), tools=TOOLS)[1] == CallModel()


def test_a_reminder_that_was_recorded_is_not_due_again() -> None:
    log = scripted(one_round("", "Read")._replace(reminds=True))
    found = replay(log, tools=TOOLS)
    assert (found.step, found.state.reminded_at_round) == (CallModel(), 1)
    without = msgspec.structs.replace(log, entries=log.entries[:-1])
    assert replay(without, tools=TOOLS).state.reminded_at_round is None


@pytest.mark.requirement("turn-complete:cut-off-turn-keeps-what-it-did")
def test_a_turn_that_is_cut_off_keeps_its_last_words_and_what_it_completed() -> None:
    rounds = one_round("mended", "Complete"), one_round(" ", "Read")
    *_, last = LiveTurn().run(list(rounds))
    failure = operator_abort("enough")
    finish = cut_off(last.log, failure)
    done = Completion(work_item_id=ITEM.id, report="mended")
    assert finish == Finish(
        last_text="mended", failure=failure, completions=(done,), made_progress=True
    )
    assert cut_off(opened_log(), failure) == Finish(failure=failure)


@given(script=SCRIPTS)
def test_a_turn_that_is_cut_off_completed_what_it_would_have_completed_by_going_on(
    script: list[RoundScript],
) -> None:
    for moment in LiveTurn().run(script):
        if moment.settled:
            finish = cut_off(moment.log, operator_abort("enough"))
            told = [each.work_item_id for each in finish.completions]
            assert told == [each.work_item_id for each in moment.state.completions]
            assert finish.made_progress == moment.state.made_progress


def test_an_interrupted_call_is_recorded_as_such() -> None:
    *_, halfway = (m for m in LiveTurn().run([one_round("", "Read", "Read")]) if not m.settled)
    plan = plan_turn(halfway.log)
    assert isinstance(plan, ResumeTurnPlan)
    assert [each.state for each in plan.interrupted] == [ToolCallState.INTERRUPTED]
