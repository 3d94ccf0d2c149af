"""The request body of Chat Completions.

Owns:  the JSON body. Pure; messages encoded for an earlier request come from the memo.
Rule 1: every request carries the whole history: this API has no continuation.
Rule 2: tool results directly follow their calls; text of the same message comes after.
Rule 3: reasoning is returned only to the endpoint it came from, under the field name it came by.
Rule 4: a call is sent under a name the API accepts, even where the model invented one.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from holon.adapters.providers.wire_answer import THINK_CLOSE, THINK_OPEN
from holon.adapters.providers.wire_request import (
    ConversationTextCache,
    Endpoint,
    MessageText,
    ToolCatalogs,
    plain_name,
)
from holon.decide.providers.prompt_layout import layout_of
from holon.decide.providers.schemas import emit_schema
from holon.model.providers.models import SchemaMode
from holon.model.providers.prompt_frame import PromptBlock, ProviderRequest
from holon.model.record import Record
from holon.model.turns.conversation import (
    REASONING_FIELDS,
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    text_of,
    tool_uses_of,
)
from holon.model.turns.tools import ToolSpec
from holon.model.values import JsonValue

CHAT_PATH: Final = "/chat/completions"
_OPTIONAL: Final = frozenset(
    {"max_tokens", "max_completion_tokens", "reasoning_effort", "stream_options"}
)


class RequestMemo:
    """Remembers encoded conversations and tool catalogs of one endpoint."""

    def __init__(self) -> None:
        self.conversations = ConversationTextCache[None](start=None)
        self.tools = ToolCatalogs()


class LoweredRequest(Record, frozen=True, kw_only=True):
    """A body, and the names in it that a server may do without."""

    body: bytes
    optional: frozenset[str]


def lower(
    endpoint: Endpoint,
    request: ProviderRequest,
    memo: RequestMemo,
    *,
    without: frozenset[str] = frozenset(),
) -> LoweredRequest:
    """Return the request, without the parameters the provider is known to refuse."""
    layout = layout_of(request)
    origin = endpoint.thinking_origin

    def write(index: int, _: None) -> MessageText[None]:
        items = _items(layout.conversation[index], origin)
        return MessageText(b"," + msgspec.json.encode(items)[1:-1], None)

    joined = memo.conversations.joined(request.agent_id, layout.conversation, write)
    system = _system(layout.system)
    head = b'{"model":%b,"messages":[%b' % (msgspec.json.encode(endpoint.model), system)
    rest = _rest(endpoint, request, memo, without)
    tail = b"]," + msgspec.json.encode(rest)[1:] if rest else b"]}"
    # The comma before the first message is one too many where no system message comes before it.
    with memoryview(joined.text)[0 if system else 1 :] as messages:
        body = b"".join((head, messages, tail))
    return LoweredRequest(body=body, optional=_OPTIONAL.intersection(rest))


def _system(pieces: tuple[PromptBlock, ...]) -> bytes:
    if not pieces:
        return b""
    text = "\n\n".join(piece.text for piece in pieces)
    return msgspec.json.encode({"role": "system", "content": text})


def _rest(
    endpoint: Endpoint, request: ProviderRequest, memo: RequestMemo, without: frozenset[str]
) -> dict[str, Any]:
    """Return the rest of the body, behind the messages."""
    rest: dict[str, Any] = {}
    if request.tools:
        rest["tools"] = memo.tools.encoded(request.tools, partial(_tool, mode=endpoint.schema_mode))
    # Models that reason refuse the older name; many servers know no other.
    limits = ("max_completion_tokens", "max_tokens")
    by_choice = limits if endpoint.reasoning_effort is not None else reversed(limits)
    limit = next((name for name in by_choice if name not in without), None)
    if endpoint.output_tokens_max is not None and limit is not None:
        rest[limit] = endpoint.output_tokens_max
    if endpoint.reasoning_effort is not None:
        rest["reasoning_effort"] = endpoint.reasoning_effort
    if endpoint.stream:
        rest |= {"stream": True, "stream_options": {"include_usage": True}}
    return {name: value for name, value in rest.items() if name not in without}


def _tool(spec: ToolSpec, mode: SchemaMode) -> dict[str, JsonValue]:
    return {
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": emit_schema(spec.input_schema, mode),
            "strict": mode is SchemaMode.STRICT,
        },
    }


def _items(message: ConversationMessage, thinking_origin: str) -> list[JsonValue]:
    match message:
        case UserMessage():
            return _user_items(message)
        case AssistantMessage():
            return [_assistant_item(message, thinking_origin)]


def _user_items(message: UserMessage) -> list[JsonValue]:
    results: list[JsonValue] = [
        {"role": "tool", "tool_call_id": block.call_id, "content": block.content}
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    ]
    words = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    if words or not results:
        results.append({"role": "user", "content": "\n\n".join(words)})
    return results


def _assistant_item(message: AssistantMessage, thinking_origin: str) -> JsonValue:
    calls = [_call(block) for block in tool_uses_of(message.blocks)]
    text = _inline_thinking(message, thinking_origin) + text_of(message.blocks)
    item: dict[str, JsonValue] = {
        "role": "assistant",
        "content": None if calls and not text else text,
    }
    item |= _own_thinking(message, thinking_origin)
    if calls:
        item["tool_calls"] = calls
    return item


def _inline_thinking(message: AssistantMessage, origin: str) -> str:
    """Reasoning that came inside the text goes back there: some servers want it."""
    thoughts = (
        f"{THINK_OPEN}\n{block.text}\n{THINK_CLOSE}\n\n"
        for block in message.blocks
        if isinstance(block, ThinkingBlock)
        and block.origin == origin
        and block.signature == THINK_OPEN
    )
    return "".join(thoughts)


def _own_thinking(message: AssistantMessage, origin: str) -> Mapping[str, JsonValue]:
    return {
        block.signature: block.text
        for block in message.blocks
        if isinstance(block, ThinkingBlock)
        and block.origin == origin
        and block.signature in REASONING_FIELDS
    }


def _call(block: ToolUseBlock) -> JsonValue:
    return {
        "id": block.call_id,
        "type": "function",
        "function": {"name": plain_name(block.name), "arguments": _arguments(block.input)},
    }


def _arguments(value: JsonValue) -> str:
    # Many servers parse what they are sent back, so broken arguments travel inside an object.
    sound = value if isinstance(value, dict) else {"invalid_arguments": value}
    return msgspec.json.encode(sound).decode()
