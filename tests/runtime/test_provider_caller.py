"""A provider's error becomes a value with its attempt on record."""

from random import Random

import pytest

from holon.model.conversation import TextBlock, UserMessage
from holon.model.ids import AgentId
from holon.model.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turn import ModelFailed, ModelSpoke
from holon.runtime.provider_caller import ask_provider
from holon.testing.manual_clock import DAWN, ManualClock
from holon.testing.scripted_provider import FAILURES, Script, ScriptedProvider, ScriptedRound
from holon.testing.sim_loop import SimLoop
from tests.runtime.cast import rule, says

REQUEST = ProviderRequest(
    agent_id=AgentId("main"),
    frame=PromptFrame(system_prompt=""),
    conversation=(UserMessage(blocks=(TextBlock(text="hello"),)),),
    tools=(),
)


def _ask(line: ScriptedRound) -> ModelSpoke | ModelFailed:
    clock = ManualClock()
    provider = ScriptedProvider(Script(rules=(rule("hello", line),)), clock)
    answers: list[ModelSpoke | ModelFailed] = []

    async def scene() -> None:
        answers.append(await ask_provider(provider, REQUEST, clock=clock))

    SimLoop(clock, Random(0)).run_life(scene())
    return answers[0]


def test_an_answer_is_handed_on_as_it_is() -> None:
    answer = _ask(says("hi"))
    assert isinstance(answer, ModelSpoke)
    assert answer.blocks == (TextBlock(text="hi"),)


@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_failure_names_its_kind_and_the_time_it_took(code: str) -> None:
    failed = _ask(ScriptedRound(fail=code, after_ms=2_000))
    assert isinstance(failed, ModelFailed)
    assert failed.failure.kind == code
    assert failed.failure.retryable is FAILURES[code].retryable
    [attempt] = failed.attempts
    assert attempt.failure_kind == code
    assert attempt.started_at == DAWN
    assert attempt.completed_at is not None
    assert (attempt.completed_at - attempt.started_at).total_seconds() == 2
