"""Requests and providers for the tests of recordings."""

from collections.abc import Sequence

from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import PromptCache, PromptFrame, ProviderRequest
from holon.model.turns.conversation import TextBlock, UserMessage
from holon.model.turns.tools import ToolSpec
from holon.model.turns.turn import ModelAnswer, StopReason, TextGrew
from holon.model.values import AgentId
from holon.ports.providers import OnProgress

MODEL = ModelRef(provider="anthropic", model="some-model")
OTHER_MODEL = ModelRef(provider="openai", model="some-other")


def asking(*words: str, agent: str = "main", tools: Sequence[str] = ("Sleep",)) -> ProviderRequest:
    """Return a request whose user says these words."""
    agent_id = AgentId(agent)
    cache = PromptCache(agent_id=agent_id, prompt_cache_key=agent, context_fingerprint=agent)
    schema = {"type": "object", "properties": {}}
    return ProviderRequest(
        agent_id=agent_id,
        frame=PromptFrame(system_prompt="You are tested.", cache=cache),
        conversation=(UserMessage(blocks=tuple(TextBlock(text=word) for word in words)),),
        tools=tuple(ToolSpec(name=n, description=n, input_schema=schema) for n in tools),
    )


def saying(text: str) -> ModelAnswer:
    """Return an answer of these words."""
    return ModelAnswer(blocks=(TextBlock(text=text),), stop_reason=StopReason.END_TURN)


class Sayer:
    """A provider that says, or fails with, one thing after the other."""

    def __init__(self, *ends: ModelAnswer | ProviderError) -> None:
        self._ends = list(ends)

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next answer or raise the next failure."""
        del request
        match self._ends.pop(0):
            case ModelAnswer() as answer:
                on_progress(TextGrew(text="…"))
                return answer
            case ProviderError() as error:
                raise error
