"""The scripted model gives the scripted answers, and gives them again after a crash."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest

from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    text_of,
)
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import AgentId, CallId
from holon.ports.providers import ignore_progress
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.scripted_provider import (
    FAILURES,
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
    read_script,
)
from tests.support.sim_loop import SimLoop

SCRIPT = Script(
    rules=(
        ScriptedRule(
            when="hello",
            rounds=(
                ScriptedRound(calls=(ScriptedCall(name="Sleep"), ScriptedCall(name="Enqueue"))),
                ScriptedRound(text="second line"),
            ),
        ),
        ScriptedRule(when="slow", rounds=(ScriptedRound(text="done", after_ms=3_000),)),
        *(ScriptedRule(when=code, rounds=(ScriptedRound(fail=code),)) for code in sorted(FAILURES)),
    )
)


def user(text: str) -> UserMessage:
    """Something said to the model."""
    return UserMessage(blocks=(TextBlock(text=text),))


def answer(*conversation: ConversationMessage, clock: ManualClock | None = None) -> ModelAnswer:
    """Ask the model."""
    clock = clock or ManualClock()
    request = ProviderRequest(
        agent_id=AgentId("main"),
        frame=PromptFrame(system_prompt=""),
        conversation=conversation,
        tools=(),
    )
    answers: list[ModelAnswer] = []

    async def life() -> None:
        answers.append(await ScriptedProvider(SCRIPT, clock).answer(request, ignore_progress))

    SimLoop(clock, Random(0)).run_life(life())
    return answers[0]


def results(spoke: ModelAnswer) -> Sequence[ConversationMessage]:
    """The round and the results of its calls."""
    uses = [block for block in spoke.blocks if isinstance(block, ToolUseBlock)]
    done = tuple(ToolResultBlock(call_id=use.call_id, content="ok") for use in uses)
    return (AssistantMessage(blocks=spoke.blocks), UserMessage(blocks=done))


def test_the_conversation_alone_chooses_the_line() -> None:
    first = answer(user("well, hello there"))
    assert first.stop_reason is StopReason.TOOL_USE
    assert first == answer(user("well, hello there"))
    second = answer(user("well, hello there"), *results(first))
    assert text_of(second.blocks) == "second line"
    assert second.stop_reason is StopReason.END_TURN


def test_call_ids_are_unique_within_a_conversation() -> None:
    first = answer(user("hello"))
    ids = [block.call_id for block in first.blocks if isinstance(block, ToolUseBlock)]
    assert ids == [CallId("call_0_0"), CallId("call_0_1")]


def test_a_script_that_runs_out_repeats_its_last_words() -> None:
    said = AssistantMessage(blocks=(TextBlock(text="x"),))
    spoke = answer(user("hello"), said, user("go on"), said, user("go on"), said, user("go on"))
    assert text_of(spoke.blocks) == "second line"


def test_a_prompt_nobody_has_a_line_for_is_understood() -> None:
    assert text_of(answer(user("what?")).blocks) == "Understood."


def test_the_newest_message_that_is_known_decides() -> None:
    said = AssistantMessage(blocks=(TextBlock(text="x"),))
    assert text_of(answer(user("hello"), said, user("slow now")).blocks) == "done"


def test_a_line_may_take_its_time() -> None:
    clock = ManualClock()
    answer(user("slow"), clock=clock)
    assert clock.now() == DAWN + timedelta(seconds=3)


@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_line_may_be_a_failure_of_any_kind(code: str) -> None:
    with pytest.raises(FAILURES[code]):
        answer(user(code))


def test_a_script_is_read_from_json() -> None:
    text = b'{"rules": [{"when": "hi", "rounds": [{"text": "ho", "stop_reason": "max_tokens"}]}]}'
    [rule] = read_script(text).rules
    assert rule.rounds[0].stop_reason is StopReason.MAX_TOKENS
