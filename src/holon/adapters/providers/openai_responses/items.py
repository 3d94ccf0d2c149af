"""Conversation messages as the input items of the Responses API.

Owns:  how each block looks on this wire, and which earlier calls were freeform.
Rule 1: a block is one item, so a conversation that grows only ever appends items.
Rule 2: reasoning goes back as the sealed item it came as, and only to the endpoint that sealed it.
        Without its encrypted content it stays away: nobody keeps it under its id for us.
Rule 3: every item begins with its type, so that reasoning can be told from the first bytes.
Rule 4: items we write carry no ids: an id would promise that the server still knows the item.
Rule 5: a call goes back under a name the API takes, also where the model made one up.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, assert_never

import msgspec

from holon.adapters.providers.json_reading import decode_json
from holon.adapters.providers.wire_names import plain_name
from holon.model.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
from holon.model.json_value import JsonValue
from holon.model.provider_errors import UnreadableResponseError
from holon.model.record import Record

WIRE_KEY_CHARS_MAX: Final = 64  # cache keys and call ids: the API refuses longer ones
_REASONING_HEAD: Final = b'{"type":"reasoning"'
_NO_CALLS: Final[frozenset[str]] = frozenset()

Item = dict[str, Any]


class ItemStyle(Record, frozen=True, kw_only=True):
    """What the items depend on besides the message."""

    thinking_origin: str
    freeform: Mapping[str, str] = {}  # freeform tools offered: name to the argument they fill
    assistant_parts: bool = False  # past answers as content parts, not as plain text
    keeps_ids: bool = True  # of items the provider made by itself; Codex knows none again


def items_of(
    message: ConversationMessage, style: ItemStyle, *, before: ConversationMessage | None = None
) -> list[Item]:
    """Return the items of one message; results are matched with the calls of the one before."""
    if isinstance(message, AssistantMessage):
        made = (_assistant_item(block, style) for block in message.blocks)
    else:
        freeform = freeform_calls_of(before, style.freeform)
        made = (_user_item(block, freeform) for block in message.blocks)
    return [item for item in made if item is not None]


def freeform_calls_of(
    message: ConversationMessage | None, freeform: Mapping[str, str]
) -> frozenset[str]:
    """Return the ids of the calls of a message that are replayed as freeform ones."""
    if not freeform or not isinstance(message, AssistantMessage):
        return _NO_CALLS
    calls = (block for block in message.blocks if isinstance(block, ToolUseBlock))
    return frozenset(call.call_id for call in calls if _freeform_text(call, freeform) is not None)


def is_reasoning(item: msgspec.Raw) -> bool:
    """Whether an encoded item is sealed reasoning."""
    return bytes(memoryview(item)[: len(_REASONING_HEAD)]) == _REASONING_HEAD


def type_first(item: Mapping[str, Any]) -> Item:
    """Return a provider's own item, beginning with its type."""
    return {"type": item.get("type"), **item}


def wire_key(text: str) -> str:
    """Return the text, or what stands for it where it is too long for the API."""
    if len(text) <= WIRE_KEY_CHARS_MAX:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def _assistant_item(block: AssistantBlock, style: ItemStyle) -> Item | None:
    match block:
        case TextBlock(text=""):
            return None
        case TextBlock(text=text):
            parts = [{"type": "output_text", "text": text}] if style.assistant_parts else text
            item: Item = {"type": "message", "role": "assistant", "content": parts}
            is_own = _provider_in(block.origin) == _provider_in(style.thinking_origin)
            return {**item, "phase": block.phase} if block.phase and is_own else item
        case ThinkingBlock():
            return _reasoning_item(block, style.thinking_origin)
        case OpaqueBlock():
            return _opaque_item(block, style)
        case ToolUseBlock():
            return _call_item(block, style.freeform)
        case _:
            assert_never(block)


def _opaque_item(block: OpaqueBlock, style: ItemStyle) -> Item | None:
    if block.origin != style.thinking_origin:
        return None
    try:
        item = decode_json(block.content, "an item of the provider's own")
    except UnreadableResponseError:
        return None
    return hosted_item(item, keeps_id=style.keeps_ids) if isinstance(item, dict) else None


def hosted_item(item: Mapping[str, Any], *, keeps_id: bool) -> Item:
    """Return an item of the provider's own as it goes back."""
    return {name: part for name, part in type_first(item).items() if keeps_id or name != "id"}


def _provider_in(origin: str | None) -> str | None:
    """A label is the provider's, whichever of its models gave it."""
    return None if origin is None else origin.split("/", 1)[0]


def _user_item(block: UserBlock, freeform_calls: frozenset[str]) -> Item | None:
    match block:
        case TextBlock(text=""):
            return None
        case TextBlock(text=text):
            parts = [{"type": "input_text", "text": text}]
            return {"type": "message", "role": "user", "content": parts}
        case ToolResultBlock(call_id=call_id, content=content):
            is_freeform = call_id in freeform_calls
            kind = "custom_tool_call_output" if is_freeform else "function_call_output"
            return {"type": kind, "call_id": wire_key(call_id), "output": content}
        case _:
            assert_never(block)


def _call_item(block: ToolUseBlock, freeform: Mapping[str, str]) -> Item:
    call_id = wire_key(block.call_id)
    text = _freeform_text(block, freeform)
    if text is not None:
        return {"type": "custom_tool_call", "call_id": call_id, "name": block.name, "input": text}
    # Text in the place of arguments is what the model wrote when it wrote no JSON.
    is_raw = isinstance(block.input, str)
    arguments = block.input if is_raw else msgspec.json.encode(block.input).decode()
    name = plain_name(block.name)  # a freeform one is known to be
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _freeform_text(block: ToolUseBlock, freeform: Mapping[str, str]) -> str | None:
    """Return the text of a call that can be told as a freeform one without losing anything."""
    argument = freeform.get(block.name)
    if argument is None or not isinstance(block.input, dict) or len(block.input) != 1:
        return None
    text = block.input.get(argument)
    return text if isinstance(text, str) else None


def _reasoning_item(block: ThinkingBlock, origin: str) -> Item | None:
    if block.origin != origin or block.signature is None:
        return None
    try:
        item = decode_json(block.signature, "the sealed reasoning")
    except UnreadableResponseError:
        return None
    return type_first(item) if is_sealed(item) else None


def is_hosted(item: Mapping[str, JsonValue]) -> bool:
    """Whether an item tells of a call the provider answered by itself: it waits for no result."""
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith("_call") and "call_id" not in item


def is_sealed(item: JsonValue) -> bool:
    """Whether a reasoning item carries what a server without memory needs to read it again."""
    is_item = isinstance(item, dict) and item.get("type") == "reasoning"
    return is_item and isinstance(item.get("encrypted_content"), str)
