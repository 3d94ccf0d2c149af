"""Canned parts for the tests of both OpenAI wires: requests, responses and an exchange.

Owns:  an exchange that answers from a list and remembers what it was sent.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio.lowlevel
import msgspec

from holon.adapters.providers.http.exchange import HttpCall
from holon.adapters.providers.wire_request import Endpoint
from holon.model.providers.attempts import ProviderError, TransportDiagnostics
from holon.model.providers.models import TransportKind
from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptCache,
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
from holon.model.turns.tools import FreeformGrammar, ToolSpec
from holon.model.values import AgentId, CallId

OPENAI: Final = Endpoint(
    provider="openai",
    model="gpt-5.4",
    transport=TransportKind.OPENAI_RESPONSES,
    base_url="https://api.example/v1",
    output_tokens_max=4_096,
    takes=frozenset({"parallel_tool_calls", "prompt_cache_key"}),
)
CODEX: Final = Endpoint(
    provider="openai-codex",
    model="gpt-5.4",
    transport=TransportKind.OPENAI_CODEX_RESPONSES,
    base_url="https://chat.example/backend-api/codex",
    stream=True,
    output_tokens_max=4_096,
)
CACHE: Final = PromptCache(
    agent_id=AgentId("main"), prompt_cache_key="main:ctx:0011", context_fingerprint="f"
)
FRAME: Final = PromptFrame(
    system_prompt="You are an agent.",
    context_blocks=(PromptBlock(text="Project notes.", stability=Stability.AGENT_SCOPED),),
    cache=CACHE,
)
EXEC: Final = ToolSpec(
    name="ExecCommand",
    description="Runs a command.",
    input_schema={
        "type": "object",
        "properties": {"cmd": {"type": "string"}, "cwd": {"type": "string"}},
        "required": ["cmd"],
    },
)
PATCH: Final = ToolSpec(
    name="ApplyPatch",
    description="Changes files.",
    input_schema={
        "type": "object",
        "properties": {"patch": {"type": "string"}},
        "required": ["patch"],
    },
    freeform=FreeformGrammar(argument="patch", syntax="lark", definition="start: /.+/"),
)
SEALED: Final = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look first."}],
    "encrypted_content": "gAAA",
}


def request_for(
    conversation: Sequence[ConversationMessage],
    *,
    frame: PromptFrame = FRAME,
    tools: tuple[ToolSpec, ...] = (EXEC, PATCH),
    turn_start: ConversationPosition | None = None,
) -> ProviderRequest:
    """A request with the usual frame and tools."""
    return ProviderRequest(
        agent_id=AgentId("main"),
        frame=frame,
        conversation=tuple(conversation),
        tools=tools,
        turn_start=turn_start,
    )


def user(text: str) -> UserMessage:
    """Words to the model."""
    return UserMessage(blocks=(TextBlock(text=text),))


def result(call_id: str, content: str = "ok") -> ToolResultBlock:
    """What a call gave."""
    return ToolResultBlock(call_id=CallId(call_id), content=content)


def use(call_id: str, name: str, arguments: Any) -> ToolUseBlock:
    """A call."""
    return ToolUseBlock(call_id=CallId(call_id), name=name, input=arguments)


def sealed_by(endpoint: Endpoint) -> ThinkingBlock:
    """Reasoning an endpoint may be sent back."""
    return ThinkingBlock(
        text="Look first.",
        signature=msgspec.json.encode(SEALED).decode(),
        origin=endpoint.thinking_origin,
    )


def every_block(endpoint: Endpoint) -> tuple[ConversationMessage, ...]:
    """A conversation with every kind of block."""
    return (
        user("Fix it."),
        AssistantMessage(
            blocks=(
                ThinkingBlock(text="private", signature="s", origin="anthropic_messages:anthropic"),
                sealed_by(endpoint),
                TextBlock(text="Looking."),
                use("call_1", "ExecCommand", {"cmd": "ls"}),
                use("call_2", "ApplyPatch", {"patch": "*** Begin"}),
                use("call_3", "ExecCommand", '{"cmd": "l'),
            )
        ),
        UserMessage(
            blocks=(
                result("call_1", "a.py"),
                result("call_2", "done"),
                ToolResultBlock(call_id=CallId("call_3"), content="bad input", is_error=True),
                TextBlock(text="And hurry."),
            )
        ),
    )


def message_item(text: str, item_id: str = "msg_1") -> dict[str, Any]:
    """A message as the API tells it."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def call_item(call_id: str, arguments: str = '{"cmd":"ls"}') -> dict[str, Any]:
    """A function call as the API tells it."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "ExecCommand",
        "arguments": arguments,
        "status": "completed",
    }


def response(*output: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A completed response."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 60},
    }
    whole = {"id": "resp_1", "status": "completed", "usage": usage, "output": list(output)}
    return {**whole, **fields}


def feed_of(*events: Mapping[str, Any] | str) -> bytes:
    """An event feed; a plain text is sent as data as it is."""
    lines = []
    for event in events:
        if isinstance(event, str):
            lines.append(f"data: {event}\n\n")
        else:
            lines.append(f"event: {event['type']}\ndata: {msgspec.json.encode(event).decode()}\n\n")
    return "".join(lines).encode()


def done(index: int, item: Mapping[str, Any]) -> dict[str, Any]:
    """The event that tells a finished item."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


class CannedReply:
    """A 2xx reply with a known body."""

    def __init__(self, body: bytes, *, content_type: str, piece_bytes: int = 7) -> None:
        self._body = body
        self._piece_bytes = piece_bytes
        self.headers: Mapping[str, str] = {"content-type": content_type}

    @property
    def is_event_stream(self) -> bool:
        return self.headers["content-type"] == "text/event-stream"

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), self._piece_bytes):
            await anyio.lowlevel.checkpoint()
            yield self._body[start : start + self._piece_bytes]

    def diagnostics(self) -> TransportDiagnostics:
        return TransportDiagnostics(provider="canned", status=200)


Canned = Mapping[str, Any] | bytes | ProviderError


class CannedExchange:
    """Answers each call with the next of a list: JSON, an event feed, or an error."""

    def __init__(self, *answers: Canned) -> None:
        self._answers = list(answers)
        self.calls: list[HttpCall] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(call.body) for call in self.calls]

    def reply_with(self, body: bytes) -> CannedReply:
        return CannedReply(body, content_type="text/event-stream")

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[CannedReply]:
        self.calls.append(call)
        answer = self._answers.pop(0)
        if isinstance(answer, ProviderError):
            raise answer
        if isinstance(answer, bytes):
            yield self.reply_with(answer)
        else:
            yield CannedReply(msgspec.json.encode(answer), content_type="application/json")
