"""Requests and conversations for the tests of this wire."""

from typing import Any, Final, TypedDict, Unpack

import msgspec

from holon.adapters.providers.anthropic_messages.request import RequestMemo, lower
from holon.adapters.providers.wire_request import ContextEditing, Endpoint
from holon.model.providers.models import TransportKind
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
)
from holon.model.turns.tools import ToolSpec
from holon.model.values import AgentId, CallId
from holon.tools.registry import builtin_tools

ORIGIN: Final = "anthropic_messages:anthropic/claude-x"
FRAME: Final = PromptFrame(
    system_prompt="You are an agent.",
    system_blocks=(PromptBlock(text="Stable rules.", stability=Stability.STABLE),),
    context_blocks=(
        PromptBlock(text="Agent facts.", stability=Stability.AGENT_SCOPED),
        PromptBlock(text="More agent facts.", stability=Stability.AGENT_SCOPED),
    ),
)


class EndpointFields(TypedDict, total=False):
    """What a test may change of the endpoint."""

    base_url: str
    stream: bool
    output_tokens_max: int
    reasoning_effort: str
    betas: tuple[str, ...]
    context_editing: ContextEditing


def endpoint(**fields: Unpack[EndpointFields]) -> Endpoint:
    """An endpoint of this wire."""
    plain = Endpoint(
        provider="anthropic",
        model="claude-x",
        transport=TransportKind.ANTHROPIC_MESSAGES,
        base_url="https://api.example",
    )
    return msgspec.structs.replace(plain, **fields)


def request(
    *conversation: ConversationMessage,
    frame: PromptFrame = FRAME,
    tools: tuple[ToolSpec, ...] = (),
    turn_start: tuple[int, int] | None = None,
) -> ProviderRequest:
    """A request with this conversation."""
    place = None
    if turn_start is not None:
        place = ConversationPosition(message_index=turn_start[0], block_index=turn_start[1])
    return ProviderRequest(
        agent_id=AgentId("a"),
        frame=frame,
        conversation=conversation,
        tools=tools,
        turn_start=place,
    )


def body_of(asked: ProviderRequest, **fields: Unpack[EndpointFields]) -> Any:
    """The decoded body of a request that is lowered for the first time."""
    asked_of = endpoint(**fields)
    return msgspec.json.decode(lower(asked_of, asked, RequestMemo(asked_of)).body)


def user(*texts: str) -> UserMessage:
    """A user message of words."""
    return UserMessage(blocks=tuple(TextBlock(text=text) for text in texts))


def said(*texts: str) -> AssistantMessage:
    """An assistant message of words."""
    return AssistantMessage(blocks=tuple(TextBlock(text=text) for text in texts))


def thought(text: str = "hm", *, origin: str | None = ORIGIN) -> ThinkingBlock:
    """Signed thinking."""
    return ThinkingBlock(text=text, signature="sig", origin=origin)


def call(call_id: str, *, name: str = "Sleep", asked: object = None) -> ToolUseBlock:
    """A tool use."""
    return ToolUseBlock(call_id=CallId(call_id), name=name, input={} if asked is None else asked)


def result(call_id: str, content: str = "done", *, is_error: bool = False) -> ToolResultBlock:
    """A tool result."""
    return ToolResultBlock(call_id=CallId(call_id), content=content, is_error=is_error)


def rounds(first: int, last: int) -> tuple[ConversationMessage, ...]:
    """Tool rounds, each a call and its result."""
    messages: list[ConversationMessage] = []
    for number in range(first, last):
        blocks = (thought(), TextBlock(text=f"round {number}"), call(f"c{number}"))
        messages.append(AssistantMessage(blocks=blocks))
        messages.append(UserMessage(blocks=(result(f"c{number}", f"result {number}"),)))
    return tuple(messages)


def marked_texts(body: Any) -> list[str]:
    """What stands in the marked blocks, system first."""
    blocks = [*body.get("system", ()), *(b for m in body["messages"] for b in m["content"])]
    tools = body.get("tools", ())
    assert not any("cache_control" in tool for tool in tools)
    marked = [block for block in blocks if "cache_control" in block]
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in marked)
    return [block.get("text") or block.get("content") or block["name"] for block in marked]


TOOLS: Final = builtin_tools().specs
