"""Requests and providers for the tests of recordings."""

from collections.abc import Sequence

from holon.model.answer import ModelAnswer, TextGrew
from holon.model.conversation import TextBlock, UserMessage
from holon.model.ids import AgentId
from holon.model.model_ref import ModelRef
from holon.model.prompt_frame import PromptCache, PromptFrame, ProviderRequest
from holon.model.provider_errors import ProviderError
from holon.model.tool import ToolSpec
from holon.model.turn import StopReason
from holon.ports.provider import Hear

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

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return the next answer or raise the next failure."""
        del request
        match self._ends.pop(0):
            case ModelAnswer() as answer:
                hear(TextGrew(text="…"))
                return answer
            case ProviderError() as error:
                raise error
