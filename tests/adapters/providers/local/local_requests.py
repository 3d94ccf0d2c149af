"""Requests as a small local model gets them."""

import json

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

EXEC = ToolSpec(
    name="ExecCommand",
    description="Run a command.\nMore about it.",
    input_schema={
        "type": "object",
        "properties": {
            "cmd": {"type": "string", "minLength": 1},
            "workdir": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["cmd"],
        "additionalProperties": False,
    },
)
SLEEP = ToolSpec(
    name="Sleep",
    description="Rest.",
    input_schema={"type": "object", "properties": {"reason": {"type": "string"}}},
)
PRINTED = {"ok": True, "result": {"exit_status": 0, "stdout_preview": "holon-42\n"}}


def user(text: str) -> UserMessage:
    """Return words of the user."""
    return UserMessage(blocks=(TextBlock(text=text),))


def said(text: str) -> AssistantMessage:
    """Return words of the model."""
    return AssistantMessage(blocks=(TextBlock(text=text),))


def called(call_id: str, cmd: str) -> AssistantMessage:
    """Return a call of the command tool."""
    use = ToolUseBlock(call_id=CallId(call_id), name="ExecCommand", input={"cmd": cmd})
    return AssistantMessage(blocks=(use,))


def returned(call_id: str, envelope: object = PRINTED) -> UserMessage:
    """Return the result of a call."""
    content = envelope if isinstance(envelope, str) else json.dumps(envelope)
    return UserMessage(blocks=(ToolResultBlock(call_id=CallId(call_id), content=content),))


def request(
    *conversation: ConversationMessage, tools: tuple[ToolSpec, ...] = (EXEC, SLEEP)
) -> ProviderRequest:
    """Return a request with a frame a small model should not be shown."""
    frame = PromptFrame(
        system_prompt="The frame's own words.",
        context_blocks=(PromptBlock(text="Now.", stability=Stability.TURN_SCOPED),),
    )
    return ProviderRequest(
        agent_id=AgentId("main"), frame=frame, conversation=conversation, tools=tools
    )
