"""A huge answer is cut to the model's output limit before it is stored, and stored whole once."""

import pytest

from holon.decide.text.bounded import answer_bytes_max, bounded_answer
from holon.decide.work.completion import promotions_of
from holon.model.limits import (
    ANSWER_CALLS_BYTES_MAX,
    ANSWER_TEXT_BYTES_MAX,
    ANSWER_TOKEN_BYTES_MAX,
    BRIEF_TEXT_BYTES_MAX,
    MINUTE_MS,
    TERMINAL_TEXT_BYTES_MAX,
)
from holon.model.providers.attempts import UnreadableResponseError
from holon.model.turns.conversation import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    text_of,
)
from holon.model.turns.turn import Completion, Finish, ModelAnswer, ModelFailed, StopReason
from holon.model.values import CallId
from holon.model.work import WorkItemState
from holon.ports.providers import Candidate
from tests.runtime.cast import rule, says
from tests.runtime.house import House, run_house
from tests.runtime.stage import Stage, play, said
from tests.support.builders import a_work_item
from tests.support.database_oracle import stored_bytes

TWENTY_MB = 20_000_000
NEEDLE = "needle in a very large answer "
HUGE = NEEDLE * (TWENTY_MB // len(NEEDLE))
ONE = "one/a"


@pytest.mark.requirement("big-answer:bounded-before-it-is-stored")
@pytest.mark.requirement("big-answer:stored-once")
def test_a_huge_answer_is_stored_within_its_bound_and_whole_in_one_place() -> None:
    async def story(house: House) -> None:
        await house.prompt("write much")
        await house.rest(MINUTE_MS)
        found = stored_bytes(house.connection, NEEDLE)
        assert ANSWER_TEXT_BYTES_MAX <= found.pop("transcript.data") < ANSWER_TEXT_BYTES_MAX + 4_096
        assert max(found.values()) < BRIEF_TEXT_BYTES_MAX + 4_096, found
        assert found["turns.terminal"] < TERMINAL_TEXT_BYTES_MAX + 1_024
        assert found["briefs.record"] > BRIEF_TEXT_BYTES_MAX // 2

    run_house(story, script=[rule("write", says(HUGE))])


@pytest.mark.requirement("big-answer:stored-once")
def test_a_report_keeps_a_shortened_copy() -> None:
    item = a_work_item(state=WorkItemState.COMPLETED)
    finish = Finish(completions=(Completion(work_item_id=item.id, report=HUGE),))
    [promotion] = promotions_of(finish, [item])
    assert BRIEF_TEXT_BYTES_MAX // 2 < len(promotion.report) <= BRIEF_TEXT_BYTES_MAX


@pytest.mark.requirement("big-answer:bounded-before-it-is-stored")
@pytest.mark.parametrize(
    ("output_tokens_max", "bytes_max"),
    [
        (None, ANSWER_TEXT_BYTES_MAX),
        (1_000, 1_000 * ANSWER_TOKEN_BYTES_MAX),
        (10**9, ANSWER_TEXT_BYTES_MAX),
    ],
)
def test_the_bound_is_that_of_the_models_output(
    output_tokens_max: int | None, bytes_max: int
) -> None:
    assert answer_bytes_max(output_tokens_max) == bytes_max

    async def scene(stage: Stage) -> None:
        found = stage.bill.find

        def limited(ref: object) -> Candidate:
            each = found(ref)  # type: ignore[arg-type]
            return Candidate(
                model_ref=each.model_ref,
                provider=each.provider,
                account=each.account,
                output_tokens_max=output_tokens_max,
            )

        stage.bill.find = limited  # type: ignore[method-assign]
        spoke = await stage.succeed()
        assert bytes_max - 4 <= len(text_of(spoke.blocks).encode()) <= bytes_max
        assert "bytes left out" in text_of(spoke.blocks)
        assert spoke.timeline is not None
        told = spoke.timeline.attempts[0].transport_diagnostics
        assert told is not None
        assert any("was cut from" in note for note in told.notes)

    play(scene, {ONE: [said(HUGE)]})


def test_calls_are_never_cut_and_too_many_of_them_are_no_answer() -> None:
    whole = ToolUseBlock(call_id=CallId("c"), name="ExecCommand", input={"cmd": "x" * 100_000})
    answer = ModelAnswer(
        blocks=(ThinkingBlock(text="t"), TextBlock(text=HUGE), whole, TextBlock(text="after")),
        stop_reason=StopReason.TOOL_USE,
    )
    kept = bounded_answer(answer, bytes_max=10_000)
    assert kept.blocks[0] == answer.blocks[0]
    assert kept.blocks[2] == whole
    assert len(kept.blocks) == 3, "nothing is left for the text behind the call"

    async def scene(stage: Stage) -> None:
        failed = await stage.fail()
        assert isinstance(failed, ModelFailed)
        assert failed.failure.kind == UnreadableResponseError.code
        assert "too large" in failed.failure.summary

    big = ToolUseBlock(call_id=CallId("c"), name="X", input="y" * ANSWER_CALLS_BYTES_MAX)
    too_much = ModelAnswer(blocks=(big,), stop_reason=StopReason.TOOL_USE)
    play(scene, {ONE: [too_much]})


def test_thinking_over_the_bound_is_dropped_whole() -> None:
    sealed = ThinkingBlock(text="", signature="s" * (ANSWER_TEXT_BYTES_MAX + 1))
    answer = ModelAnswer(blocks=(sealed, TextBlock(text="short")), stop_reason=StopReason.END_TURN)
    assert bounded_answer(answer, bytes_max=10_000).blocks == (TextBlock(text="short"),)


@pytest.mark.requirement("big-answer:bounded-before-it-is-stored")
def test_what_a_provider_did_by_itself_is_dropped_whole_over_the_bound() -> None:
    did = OpaqueBlock(content='"' + "é" * 125_000 + '"', origin="o")
    words = TextBlock(text="short")
    answer = ModelAnswer(blocks=(*[did] * 120, words), stop_reason=StopReason.END_TURN)
    kept = bounded_answer(answer, bytes_max=16_000)
    assert kept.blocks == (words,)
    assert kept.diagnostics is not None
    [note] = kept.diagnostics.notes
    assert "what the provider did by itself" in note
    few = ModelAnswer(blocks=(*[did] * 8, words), stop_reason=StopReason.END_TURN)
    assert bounded_answer(few, bytes_max=16_000) is few


@pytest.mark.requirement("provider-wire:phases-are-sent-back")
def test_words_keep_their_phase_when_an_answer_is_cut() -> None:
    first = TextBlock(text="On my way.", phase="commentary", origin="o")
    last = TextBlock(text=HUGE, phase="final_answer", origin="o")
    answer = ModelAnswer(blocks=(first, last), stop_reason=StopReason.END_TURN)
    kept = bounded_answer(answer, bytes_max=10_000).blocks
    assert kept[0] == first
    assert isinstance(kept[1], TextBlock)
    assert (kept[1].phase, kept[1].origin) == ("final_answer", "o")


def test_an_answer_within_its_bound_is_left_as_it_is() -> None:
    answer = ModelAnswer(blocks=(TextBlock(text="é" * 100),), stop_reason=StopReason.END_TURN)
    assert bounded_answer(answer, bytes_max=200) is answer
