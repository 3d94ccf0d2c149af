"""A scripted model answers from the conversation alone, and checks what it was shown."""

from datetime import timedelta
from random import Random

import pytest

from holon.adapters.providers.scripted.provider import ScriptedProvider
from holon.adapters.providers.scripted.script import (
    FAILURES,
    Expectation,
    Script,
    ScriptedCall,
    ScriptedRound,
    ScriptedRule,
)
from holon.model.providers.attempts import (
    ProviderError,
    ProviderOverloadedError,
    RequestRejectedError,
    TokenUsage,
    UsageLimitedError,
)
from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptFrame,
    ProviderRequest,
    Stability,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    text_of,
)
from holon.model.turns.tools import ToolSpec
from holon.model.turns.turn import (
    AnswerProgress,
    CallGrew,
    ModelAnswer,
    StopReason,
    TextGrew,
    ThinkingGrew,
)
from holon.model.values import AgentId, CallId
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.sim_loop import SimLoop

ASKED = UserMessage(blocks=(TextBlock(text="look at the house"),))
CALLED = AssistantMessage(
    blocks=(ToolUseBlock(call_id=CallId("call_0_0"), name="Look", input={"at": "house"}),)
)
LOOKED = UserMessage(blocks=(ToolResultBlock(call_id=CallId("call_0_0"), content="a red house"),))
START = ConversationPosition(message_index=0, block_index=0)
SAID = AssistantMessage(blocks=(TextBlock(text="so"),))


def request_of(
    *conversation: ConversationMessage, turn_start: ConversationPosition | None = None
) -> ProviderRequest:
    """A request as the runtime makes them."""
    return ProviderRequest(
        agent_id=AgentId("main"),
        frame=PromptFrame(
            system_prompt="You are careful.",
            context_blocks=(PromptBlock(text="It is noon.", stability=Stability.TURN_SCOPED),),
        ),
        conversation=conversation,
        tools=(ToolSpec(name="Look", description="looks", input_schema={"type": "object"}),),
        turn_start=turn_start,
    )


def heard(
    provider: ScriptedProvider, request: ProviderRequest, clock: ManualClock
) -> tuple[ModelAnswer | ProviderError, list[AnswerProgress]]:
    """Ask, and listen to the answer growing."""
    grown: list[AnswerProgress] = []
    answers: list[ModelAnswer | ProviderError] = []

    async def life() -> None:
        try:
            answers.append(await provider.answer(request, grown.append))
        except ProviderError as error:
            answers.append(error)

    SimLoop(clock, Random(0)).run_life(life())
    return answers[0], grown


def answer(script: Script, request: ProviderRequest) -> ModelAnswer:
    """Ask a fresh provider."""
    clock = ManualClock()
    found, _ = heard(ScriptedProvider(script, clock), request, clock)
    assert isinstance(found, ModelAnswer), found
    return found


def refusal(script: Script, request: ProviderRequest) -> ProviderError:
    """Ask a fresh provider that will not answer."""
    clock = ManualClock()
    found, _ = heard(ScriptedProvider(script, clock), request, clock)
    assert isinstance(found, ProviderError), found
    return found


SIMPLE = Script(
    rounds=(
        ScriptedRound(calls=(ScriptedCall(name="Look", input={"at": "house"}),)),
        ScriptedRound(text="It is red."),
    )
)


@pytest.mark.requirement("provider-scripted:a-resumed-turn-goes-on")
def test_the_conversation_alone_chooses_the_line() -> None:
    first = answer(SIMPLE, request_of(ASKED))
    assert first.blocks == CALLED.blocks
    assert first.stop_reason is StopReason.TOOL_USE
    second = answer(SIMPLE, request_of(ASKED, CALLED, LOOKED))
    assert text_of(second.blocks) == "It is red."
    assert second == answer(SIMPLE, request_of(ASKED, CALLED, LOOKED))


def test_a_rule_without_when_starts_over_with_each_turn() -> None:
    earlier = (ASKED, CALLED, LOOKED, SAID)
    assert answer(SIMPLE, request_of(*earlier, ASKED)).stop_reason is StopReason.TOOL_USE


def test_words_let_into_a_running_turn_do_not_start_it_over() -> None:
    nudged = UserMessage(blocks=(*LOOKED.blocks, TextBlock(text="do hurry")))
    said = answer(SIMPLE, request_of(ASKED, CALLED, nudged, turn_start=START))
    assert text_of(said.blocks) == "It is red."


def test_a_turn_that_opens_behind_old_words_is_chosen_by_its_own() -> None:
    script = Script(
        rules=(
            ScriptedRule(when="old", rounds=(ScriptedRound(text="about the old"),)),
            ScriptedRule(rounds=(ScriptedRound(text="about anything"),)),
        )
    )
    merged = UserMessage(blocks=(TextBlock(text="old words"), TextBlock(text="new words")))
    start = ConversationPosition(message_index=0, block_index=1)
    assert text_of(answer(script, request_of(merged, turn_start=start)).blocks) == "about anything"
    assert text_of(answer(script, request_of(merged)).blocks) == "about the old"


def test_a_named_rule_comes_before_one_without_when_wherever_it_stands() -> None:
    script = Script(
        rules=(
            ScriptedRule(rounds=(ScriptedRound(text="anything"),)),
            ScriptedRule(when="house", rounds=(ScriptedRound(text="the house"),)),
        )
    )
    assert text_of(answer(script, request_of(ASKED)).blocks) == "the house"
    other = UserMessage(blocks=(TextBlock(text="look at the tree"),))
    assert text_of(answer(script, request_of(ASKED, SAID, other)).blocks) == "anything"


def test_an_answer_grows_in_pieces_that_add_up_to_it() -> None:
    line = ScriptedRound(
        thinking="let me see",
        text="Looking at the house now.",
        calls=(ScriptedCall(name="Look", input={"at": "house"}, id="mine"),),
    )
    clock = ManualClock()
    provider = ScriptedProvider(Script(rounds=(line,)), clock)
    found, grown = heard(provider, request_of(ASKED), clock)
    assert isinstance(found, ModelAnswer)
    thinking, text, call = found.blocks
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.origin == "scripted:scripted"
    assert "".join(g.text for g in grown if isinstance(g, ThinkingGrew)) == thinking.text
    texts = [g.text for g in grown if isinstance(g, TextGrew)]
    assert len(texts) > 1
    assert text == TextBlock(text="".join(texts))
    assert call == ToolUseBlock(call_id=CallId("mine"), name="Look", input={"at": "house"})
    fragments = [g for g in grown if isinstance(g, CallGrew)]
    assert "".join(g.fragment for g in fragments) == '{"at":"house"}'
    assert {(g.call_id, g.name) for g in fragments} == {("mine", "Look")}


def test_usage_and_stop_reason_are_the_scripts_to_choose() -> None:
    usage = TokenUsage(input_tokens=900, output_tokens=7, cache_read_tokens=800)
    line = ScriptedRound(text="and", stop_reason=StopReason.MAX_TOKENS, usage=usage)
    found = answer(Script(rounds=(line,)), request_of(ASKED))
    assert found.usage == usage
    assert found.stop_reason is StopReason.MAX_TOKENS


@pytest.mark.requirement("provider-scripted:any-failure-can-be-rehearsed")
@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_line_may_be_any_failure_of_the_tree(code: str) -> None:
    line = ScriptedRound(fail=code, retry_after_ms=1_500)
    error = refusal(Script(rounds=(line,)), request_of(ASKED))
    assert type(error) is FAILURES[code]
    assert error.retry_after_ms == 1_500


def test_a_line_that_fails_a_few_times_is_said_in_the_end() -> None:
    line = ScriptedRound(fail="server_error", fail_times=2, text="at last")
    clock = ManualClock()
    provider = ScriptedProvider(Script(rounds=(line,)), clock)
    request = request_of(ASKED)
    attempts = [heard(provider, request, clock)[0] for _ in range(3)]
    assert [type(attempt) for attempt in attempts] == [
        ProviderOverloadedError,
        ProviderOverloadedError,
        ModelAnswer,
    ]
    assert isinstance(heard(provider, request, clock)[0], ProviderOverloadedError)


def test_a_line_may_take_its_time_before_it_is_said_or_fails() -> None:
    for line in (ScriptedRound(text="x"), ScriptedRound(fail="usage_limit_reached")):
        clock = ManualClock()
        slow = Script(rounds=(ScriptedRound(text=line.text, fail=line.fail, after_ms=3_000),))
        found, _ = heard(ScriptedProvider(slow, clock), request_of(ASKED), clock)
        assert isinstance(found, ModelAnswer | UsageLimitedError)
        assert clock.now() == DAWN + timedelta(seconds=3)


MET = (
    Expectation(says="house", not_says=("tree", "garden")),
    Expectation(says=("It is noon.", "look")),
    Expectation(tools=("Look",), system_says="careful"),
    Expectation(result_of={"Look": ("red", "house")}),
)
UNMET = (
    (Expectation(says="tree"), ("'tree'", "look at the house")),
    (Expectation(not_says="house"), ("not to say 'house'", "look at the house")),
    (Expectation(tools=("Look", "Leap")), ("'Leap'", "offered: Look")),
    (Expectation(system_says="bold"), ("'bold'", "You are careful.")),
    (Expectation(result_of={"Look": "blue"}), ("'Look'", "'blue'", "a red house")),
    (Expectation(result_of={"Leap": ()}), ("'Leap'", "none")),
)


@pytest.mark.parametrize("expect", MET)
def test_a_line_is_said_when_the_model_was_shown_what_the_script_expects(
    expect: Expectation,
) -> None:
    line = ScriptedRound(text="fine", expect=expect)
    request = request_of(ASKED, CALLED, LOOKED, turn_start=START)
    assert text_of(answer(Script(rounds=(line,)), request).blocks) == "fine"


@pytest.mark.requirement("provider-scripted:expectations-are-held-against-what-was-shown")
@pytest.mark.parametrize(("expect", "words"), UNMET)
def test_an_unmet_expectation_says_what_was_expected_and_what_was_shown(
    expect: Expectation, words: tuple[str, ...]
) -> None:
    script = Script(name="house", rounds=(ScriptedRound(text="fine", expect=expect),))
    error = refusal(script, request_of(ASKED, CALLED, LOOKED, turn_start=START))
    assert type(error) is RequestRejectedError
    for word in ("'house', round 2", *words):
        assert word in error.message


def test_a_long_prompt_is_not_repeated_whole_in_a_complaint() -> None:
    long = UserMessage(blocks=(TextBlock(text="x" * 100_000),))
    line = ScriptedRound(expect=Expectation(says="y"))
    assert len(refusal(Script(rounds=(line,)), request_of(long)).message) < 1_000
