"""A request in the Chat Completions form.

Owns:  the JSON body. Pure; conversation items come from the memo where they were encoded before.
Rule 1: always the whole history: this wire has no continuation.
Rule 2: tool results directly follow the calls they answer; words of the same message come after.
Rule 3: reasoning goes back only to the endpoint it came from, under the name it came by.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holon.adapters.providers.endpoint import Endpoint
from holon.adapters.providers.item_memo import ItemMemo
from holon.decide.prompt_layout import layout_of
from holon.decide.schema_emission import SchemaMode, emit_schema
from holon.model.conversation import (
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
from holon.model.json_value import JsonValue
from holon.model.prompt_frame import PromptBlock, ProviderRequest
from holon.model.tool import ToolSpec

CHAT_PATH: Final = "/chat/completions"
REASONING_FIELDS: Final = ("reasoning_content", "reasoning")  # the servers' two names for it


def lower(endpoint: Endpoint, request: ProviderRequest, memo: ItemMemo) -> bytes:
    """Return the body of the request."""
    layout = layout_of(request)
    messages: list[msgspec.Raw] = [*_system(layout.system)]
    origin = endpoint.thinking_origin

    def items(message: ConversationMessage) -> list[JsonValue]:
        return _items(message, origin)

    for message in layout.conversation:
        messages += memo.items_of(message, items)
    body: dict[str, Any] = {"model": endpoint.model, "messages": messages}
    if request.tools:
        body["tools"] = [_tool(spec, endpoint.schema_mode) for spec in request.tools]
    if endpoint.output_tokens_max is not None:
        body["max_tokens"] = endpoint.output_tokens_max
    if endpoint.reasoning_effort is not None:
        body["reasoning_effort"] = endpoint.reasoning_effort
    if endpoint.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return msgspec.json.encode(body)


def _system(pieces: tuple[PromptBlock, ...]) -> tuple[msgspec.Raw, ...]:
    if not pieces:
        return ()
    text = "\n\n".join(piece.text for piece in pieces)
    return (msgspec.Raw(msgspec.json.encode({"role": "system", "content": text})),)


def _tool(spec: ToolSpec, mode: SchemaMode) -> JsonValue:
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
    text = text_of(message.blocks)
    item: dict[str, JsonValue] = {
        "role": "assistant",
        "content": None if calls and not text else text,
    }
    item |= _own_thinking(message, thinking_origin)
    if calls:
        item["tool_calls"] = calls
    return item


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
        "function": {"name": block.name, "arguments": _arguments(block.input)},
    }


def _arguments(value: JsonValue) -> str:
    # Many servers parse what they are sent back, so broken arguments travel inside an object.
    sound = value if isinstance(value, dict) else {"invalid_arguments": value}
    return msgspec.json.encode(sound).decode()
