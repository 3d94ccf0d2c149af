"""Requests and answers the Chat Completions tests share."""

from typing import Any

import msgspec

from holon.adapters.providers.wire_request import Endpoint
from holon.model.providers.models import TransportKind
from holon.model.providers.prompt_frame import PromptBlock, PromptFrame, ProviderRequest, Stability
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.turns.tools import ToolSpec
from holon.model.values import AgentId, CallId

ENDPOINT = Endpoint(
    provider="acme",
    model="m1",
    transport=TransportKind.OPENAI_CHAT_COMPLETIONS,
    base_url="http://127.0.0.1:1/v1",
    output_tokens_max=512,
)
ORIGIN = ENDPOINT.thinking_origin
STREAMING = msgspec.structs.replace(ENDPOINT, stream=True)
TOOL = ToolSpec(
    name="ExecCommand",
    description="Run it.",
    input_schema={"type": "object", "properties": {"cmd": {"type": "string"}}},
)


def user(text: str) -> UserMessage:
    """The user says something."""
    return UserMessage(blocks=(TextBlock(text=text),))


def calling(call_id: str, text: str = "") -> AssistantMessage:
    """The model calls a tool, with or without words."""
    call = ToolUseBlock(call_id=CallId(call_id), name="ExecCommand", input={"cmd": "ls"})
    return AssistantMessage(blocks=(TextBlock(text=text), call) if text else (call,))


def result(call_id: str, *, then: str = "") -> UserMessage:
    """A tool result, and what an operator said meanwhile."""
    told = ToolResultBlock(call_id=CallId(call_id), content="a.txt")
    return UserMessage(blocks=(told, TextBlock(text=then)) if then else (told,))


def request(*conversation: ConversationMessage, turn_scoped: str = "") -> ProviderRequest:
    """A request with a stable and an agent-scoped piece."""
    blocks = [PromptBlock(text="You are agent main.", stability=Stability.AGENT_SCOPED)]
    if turn_scoped:
        blocks.append(PromptBlock(text=turn_scoped, stability=Stability.TURN_SCOPED))
    frame = PromptFrame(system_prompt="You are Holon.", context_blocks=tuple(blocks))
    return ProviderRequest(
        agent_id=AgentId("main"), frame=frame, conversation=conversation, tools=(TOOL,)
    )


def response(message: dict[str, Any], reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    """A whole answer."""
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}
    return {"id": "x", "object": "chat.completion", "choices": [choice], **more}


def wire_call(call_id: str = "c1", arguments: Any = '{"cmd":"ls"}') -> dict[str, Any]:
    """A tool call as the wire has it."""
    function = {"name": "ExecCommand", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
