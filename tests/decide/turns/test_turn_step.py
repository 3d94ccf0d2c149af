"""The turn loop, scenario by scenario: what happened, and what the turn asks for next."""

from functools import reduce

import msgspec
import pytest

from holon.decide.turns.failures import ROUND_LIMIT, operator_abort
from holon.decide.turns.step import NUDGE, TurnState, advance, first_step, nudge_recorded, open_turn
from holon.model.errors import ForbiddenTransitionError
from holon.model.limits import (
    MAX_OUTPUT_CONTINUATIONS_COUNT_MAX,
    TOOL_CALLS_PER_ROUND_COUNT_MAX,
    TURN_ROUNDS_COUNT_MAX,
)
from holon.model.turns.conversation import ThinkingBlock, ToolUseBlock
from holon.model.turns.turn import (
    CallModel,
    Completion,
    Finish,
    ModelAnswered,
    ModelFailed,
    RunTools,
    SafePoint,
    StopReason,
    ToolReceipt,
    ToolsReturned,
    TurnInput,
    TurnStep,
)
from holon.model.values import WorkItemId
from tests.decide.turn_rows import (
    TOOLS,
    USAGE,
    bad,
    completes,
    interjected,
    ok,
    slept,
    spoke,
    use,
)

CUT = StopReason.MAX_TOKENS
FAILURE = operator_abort("enough")


def reported(item: str, report: str) -> Completion:
    """An item completed by itself in a round that said something."""
    return Completion(work_item_id=WorkItemId(item), report=report)


def after(*happened: TurnInput, start: TurnState | None = None) -> TurnState:
    """Fold a script into a state."""
    return reduce(
        lambda state, each: advance(state, each, tools=TOOLS)[0], happened, start or open_turn()
    )


def step_after(*happened: TurnInput) -> TurnStep:
    return after(*happened).step


def finish_after(*happened: TurnInput) -> Finish:
    step = step_after(*happened)
    assert isinstance(step, Finish)
    return step


def returned(*receipts: ToolReceipt) -> ToolsReturned:
    return ToolsReturned(receipts=receipts)


def test_a_fresh_turn_asks_the_model() -> None:
    assert first_step(open_turn()) == CallModel()


@pytest.mark.requirement("turn:completed-when-the-loop-drained")
@pytest.mark.parametrize("stop", [StopReason.END_TURN, StopReason.TOOL_USE])
def test_words_without_tool_uses_end_the_turn(stop: StopReason) -> None:
    assert step_after(spoke("all done", stop=stop)) == Finish(last_text="all done")


@pytest.mark.requirement("turn:ends-by-facts-not-text")
@pytest.mark.parametrize("text", ["I am done. Goodbye.", "TASK COMPLETE", ""])
def test_no_words_end_a_turn_that_still_asks_for_tools(text: str) -> None:
    step = step_after(spoke(text, use("Read")))
    assert step == RunTools(calls=(use("Read"),))


@pytest.mark.requirement("turn:last-message-may-be-empty")
def test_a_turn_may_end_without_a_word() -> None:
    thinking = ModelAnswered(
        blocks=(ThinkingBlock(text="hm"),), stop_reason=StopReason.END_TURN, usage=USAGE
    )
    assert finish_after(thinking).last_text == ""


@pytest.mark.requirement("turn:last-message-is-the-newest-text")
def test_the_last_words_of_the_turn_are_kept_when_a_later_round_says_nothing() -> None:
    script = (spoke("first", use("Read")), returned(ok()), spoke("second", use("Read")))
    assert finish_after(*script, returned(ok()), spoke()).last_text == "second"
    assert finish_after(*script, returned(ok()), spoke(" \n")).last_text == "second"


def test_results_go_back_to_the_model() -> None:
    assert step_after(spoke("", use("Read")), returned(ok())) == CallModel()
    assert step_after(spoke("", use("Read")), returned(bad())) == CallModel()


# --- calls that may not run -----------------------------------------------------------------------


@pytest.mark.requirement("turn:refused-call-gets-an-envelope")
@pytest.mark.parametrize(
    ("name", "stop", "kind"),
    [
        ("Nope", StopReason.TOOL_USE, "unknown_tool"),
        ("Hidden", StopReason.TOOL_USE, "tool_not_exposed_for_round"),
        ("Write", CUT, "truncated_mutation_tool_call"),
        ("Nope", CUT, "unknown_tool"),
    ],
)
def test_a_call_that_may_not_run_is_answered_without_running(
    name: str, stop: StopReason, kind: str
) -> None:
    step = step_after(spoke("", use("Read", "c1"), use(name, "c2"), stop=stop))
    assert isinstance(step, RunTools)
    assert step.calls == (use("Read", "c1"),)
    (refused,) = step.refused
    told = msgspec.json.decode(refused.content)
    assert (refused.call_id, refused.name, refused.error_kind) == ("c2", name, kind)
    assert refused.is_error
    assert (told["ok"], told["tool_name"], told["kind"]) == (False, name, kind)
    assert told["message"]
    assert told["hint"]
    assert isinstance(told["retryable"], bool)


def test_a_cut_round_refuses_only_its_last_call_and_only_if_it_changes_something() -> None:
    reads_last = step_after(spoke("", use("Write", "c1"), use("Read", "c2"), stop=CUT))
    assert reads_last == RunTools(calls=(use("Write", "c1"), use("Read", "c2")))
    writes_twice = step_after(spoke("", use("Write", "c1"), use("Write", "c2"), stop=CUT))
    assert isinstance(writes_twice, RunTools)
    assert writes_twice.calls == (use("Write", "c1"),)


def test_calls_beyond_the_limit_of_a_round_are_refused() -> None:
    many: list[ToolUseBlock] = [
        use("Read", f"c{n}") for n in range(TOOL_CALLS_PER_ROUND_COUNT_MAX + 2)
    ]
    step = step_after(spoke("", *many))
    assert isinstance(step, RunTools)
    assert len(step.calls) == TOOL_CALLS_PER_ROUND_COUNT_MAX
    assert [r.error_kind for r in step.refused] == ["too_many_tool_calls"] * 2


def test_a_round_of_refused_calls_only_goes_back_to_the_model() -> None:
    state = after(spoke("", use("Nope")))
    assert isinstance(state.step, RunTools)
    assert state.step.calls == ()
    assert after(returned(*state.step.refused), start=state).step == CallModel()


# --- answers that were cut ------------------------------------------------------------------------


@pytest.mark.requirement("turn:cut-answer-is-continued-boundedly")
def test_a_cut_answer_is_continued_a_few_times_and_then_taken_as_it_is() -> None:
    state = open_turn()
    for _ in range(MAX_OUTPUT_CONTINUATIONS_COUNT_MAX):
        state = after(spoke("more ", stop=CUT), start=state)
        assert state.step == CallModel(nudge=NUDGE)
        state, step = nudge_recorded(state)
        assert step == CallModel()
    last = after(spoke("and more", stop=CUT), start=state).step
    assert isinstance(last, Finish)
    assert last.last_text == "more " * MAX_OUTPUT_CONTINUATIONS_COUNT_MAX + "and more"


def test_the_parts_of_a_cut_answer_are_one_answer() -> None:
    assert finish_after(spoke("Hel", stop=CUT), spoke("lo")).last_text == "Hello"
    silent = finish_after(spoke("Hel", stop=CUT), spoke("", stop=CUT), spoke("lo"))
    assert silent.last_text == "Hello"


def test_a_cut_answer_followed_by_tools_does_not_leak_into_later_words() -> None:
    script = (spoke("Hel", stop=CUT), spoke("lo", use("Read")), returned(ok()), spoke("Bye"))
    assert finish_after(*script).last_text == "Bye"


def test_words_after_an_interjection_do_not_repeat_the_cut_answer_before_it() -> None:
    script = (spoke("Hel", stop=CUT), spoke("lo"), interjected(), spoke("Sure"))
    assert finish_after(*script).last_text == "Sure"


# --- rest -----------------------------------------------------------------------------------------


@pytest.mark.requirement("turn:sleep-only-round-ends-the-turn")
def test_a_round_that_only_sleeps_ends_the_turn() -> None:
    finish = finish_after(spoke("good night", use("Sleep")), returned(slept()))
    assert finish == Finish(last_text="good night", slept=True, sleep_reason="night")


@pytest.mark.requirement("turn:sleep-only-round-ends-the-turn")
@pytest.mark.parametrize(
    "receipts",
    [
        (slept("c1"), ok("Read", "c2")),
        (ok("Read", "c1"), slept("c2")),
        (slept("c1"), bad("Read", "c2")),
    ],
)
def test_sleep_among_other_calls_does_not_end_the_turn(receipts: tuple[ToolReceipt, ...]) -> None:
    calls = [use(receipt.name, receipt.call_id) for receipt in receipts]
    assert step_after(spoke("", *calls), returned(*receipts)) == CallModel()


def test_a_sleep_that_failed_does_not_end_the_turn() -> None:
    failed = msgspec.structs.replace(slept(), is_error=True)
    assert step_after(spoke("", use("Sleep")), returned(failed)) == CallModel()


# --- the operator speaks --------------------------------------------------------------------------


@pytest.mark.requirement("turn:interjection-extends-the-turn")
@pytest.mark.parametrize("point", SafePoint)
def test_an_interjection_after_the_last_words_lets_the_turn_go_on(point: SafePoint) -> None:
    assert step_after(spoke("done"), interjected(point)) == CallModel()
    rested = (spoke("", use("Sleep")), returned(slept()))
    assert step_after(*rested, interjected(point)) == CallModel()


@pytest.mark.requirement("turn:interjection-keeps-call-and-result-together")
@pytest.mark.parametrize("point", SafePoint)
def test_an_interjection_never_cancels_calls_that_were_asked_for(point: SafePoint) -> None:
    asked = after(spoke("", use("Read")))
    assert after(interjected(point), start=asked).step == asked.step


def test_a_rest_is_overruled_by_an_interjection_that_came_before_it() -> None:
    before = interjected(SafePoint.BEFORE_TOOL_EXECUTION)
    assert step_after(spoke("", use("Sleep")), before, returned(slept())) == CallModel()


def test_an_interjection_the_model_has_seen_holds_nothing_up() -> None:
    seen = (interjected(SafePoint.BEFORE_PROVIDER_CONTINUATION), spoke("", use("Sleep")))
    assert isinstance(step_after(*seen, returned(slept())), Finish)


def test_an_interjection_while_the_model_is_due_changes_nothing_else() -> None:
    assert step_after(interjected()) == CallModel()
    assert step_after(spoke("Hel", stop=CUT), interjected()) == CallModel(nudge=NUDGE)


def test_an_interjection_does_not_revive_a_failed_turn() -> None:
    finish = finish_after(ModelFailed(failure=FAILURE), interjected())
    assert finish.failure == FAILURE


# --- failure and limits ---------------------------------------------------------------------------


@pytest.mark.requirement("turn:failure-ends-the-turn")
@pytest.mark.parametrize("script", [(), (spoke("", use("Read")),)])
def test_a_failure_ends_the_turn_wherever_it_stands(script: tuple[TurnInput, ...]) -> None:
    assert finish_after(*script, ModelFailed(failure=FAILURE)).failure == FAILURE


def test_a_failed_turn_keeps_what_it_had_said_and_done() -> None:
    script = (spoke("half way", use("Complete")), returned(completes()))
    finish = finish_after(*script, ModelFailed(failure=FAILURE))
    assert finish.last_text == "half way"
    assert finish.completions == (reported("work_1", "half way"),)
    assert finish.made_progress


@pytest.mark.requirement("turn:rounds-are-bounded")
def test_a_turn_that_never_ends_fails_at_its_round_limit() -> None:
    state = open_turn()
    for _ in range(TURN_ROUNDS_COUNT_MAX - 1):
        state = after(spoke("", use("Read")), returned(ok()), start=state)
        assert state.step == CallModel()
    # The last round may still end the turn by itself …
    drained = after(spoke("done"), start=state).step
    assert isinstance(drained, Finish)
    assert drained.failure is None
    # … but it cannot ask for another, nor can the operator.
    for script in (
        [spoke("", use("Read")), returned(ok())],
        [spoke("Hel", stop=CUT)],
        [spoke("done"), interjected()],
    ):
        over = after(*script, start=state).step
        assert isinstance(over, Finish)
        assert over.failure is not None
        assert over.failure.kind == ROUND_LIMIT


# --- completion reports ---------------------------------------------------------------------------


@pytest.mark.requirement("turn:report-needs-exactly-one-completion")
def test_words_beside_one_completion_become_its_report() -> None:
    script = (spoke("the roof is mended", use("Complete")), returned(completes()))
    finish = finish_after(*script, spoke("anything else?"))
    assert finish.completions == (reported("work_1", "the roof is mended"),)
    assert finish.last_text == "anything else?"


@pytest.mark.requirement("turn:report-needs-exactly-one-completion")
@pytest.mark.parametrize(
    ("text", "receipts"),
    [
        ("both done", (completes("work_1", "c1"), completes("work_2", "c2"))),
        ("", (completes("work_1", "c1"),)),
        ("  \n ", (completes("work_1", "c1"),)),
        ("not done", (bad("Complete", "c1"),)),
        ("lied", (msgspec.structs.replace(completes(), is_error=True),)),
    ],
)
def test_no_report_without_words_and_exactly_one_completion(
    text: str, receipts: tuple[ToolReceipt, ...]
) -> None:
    calls = [use("Complete", receipt.call_id) for receipt in receipts]
    finish = finish_after(spoke(text, *calls), returned(*receipts), spoke("bye"))
    assert [each.report for each in finish.completions] == [None] * sum(
        not receipt.is_error for receipt in receipts
    )


@pytest.mark.requirement("turn-complete:each-round-may-report")
def test_each_round_reports_on_the_item_it_completed() -> None:
    first = (spoke("one", use("Complete")), returned(completes("work_1")))
    second = (spoke("two", use("Complete")), returned(completes("work_2")))
    finish = finish_after(*first, *second, spoke("bye"))
    assert finish.completions == (reported("work_1", "one"), reported("work_2", "two"))


@pytest.mark.parametrize(
    ("receipt", "progress"), [(ok(), True), (bad(), False), (slept(), False), (completes(), True)]
)
def test_progress_is_a_call_that_worked_and_was_not_rest(
    receipt: ToolReceipt, progress: bool
) -> None:
    script = (spoke("", use(receipt.name)), returned(receipt), interjected(), spoke("bye"))
    assert finish_after(*script).made_progress is progress


# --- inputs out of place --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        (spoke("", use("Read")), spoke("again")),
        (spoke("done"), spoke("again")),
        (returned(ok()),),
        (spoke("", use("Read")), returned(ok(call_id="c7"))),
        (spoke("", use("Read")), returned()),
        (spoke("", use("Read")), returned(ok(), ok())),
        (spoke("done"), ModelFailed(failure=FAILURE)),
    ],
)
def test_what_cannot_happen_next_is_refused(script: tuple[TurnInput, ...]) -> None:
    with pytest.raises(ForbiddenTransitionError):
        after(*script)
