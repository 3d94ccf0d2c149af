"""Requests to the Responses wire, and to the Codex backend that speaks a stricter form of it.

Owns:  what those servers accept: fields, items, tools, and the pairing of calls and outputs.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from holon.model.turns.conversation import TextBlock, ToolResultBlock, ToolUseBlock
from holon.model.values import CallId, JsonValue
from tests.support.wire_server.tool_checks import require_name, require_schema
from tests.support.wire_server.wire_request import (
    ConversationBuilder,
    JsonObject,
    ParsedRequest,
    RawRequest,
    WireRefusal,
    decoded,
    list_at,
    object_at,
    pieces_of,
    text_at,
)

FIELDS: Final = frozenset(
    [
        "access_programs",
        "background",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
CODEX_REFUSED: Final = frozenset(
    [
        "background",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "previous_response_id",
        "temperature",
        "top_p",
        "truncation",
        "user",
    ]
)
ITEM_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase"}),
    "function_call": frozenset(
        {"type", "call_id", "name", "arguments", "id", "status", "namespace", "caller", "async"}
    ),
    "function_call_output": frozenset({"type", "call_id", "output", "id", "status"}),
    "custom_tool_call": frozenset(
        {"type", "call_id", "name", "input", "id", "status", "namespace", "caller", "async"}
    ),
    "custom_tool_call_output": frozenset({"type", "call_id", "output", "id", "status"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
}
_PART_TYPES: Final = {"assistant": ("output_text", "refusal")}
_INPUT_PARTS: Final = ("input_text", "input_image", "input_file")
_ECHOED: Final = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "store",
)


def read_responses(asked: RawRequest) -> ParsedRequest:
    """Understand a request to `/responses`, or refuse it."""
    _require_fields(asked.body)
    return _heard(asked)


def read_codex(asked: RawRequest) -> ParsedRequest:
    """Understand a request to the Codex backend, or refuse it."""
    body = asked.body
    _require_fields(body)
    for name in sorted(CODEX_REFUSED & set(body)):
        raise WireRefusal(f"Unsupported parameter: {name}", param=name)
    if body.get("stream") is not True:
        raise WireRefusal("Stream must be set to true", param="stream")
    if body.get("store") is not False:
        raise WireRefusal("Store must be set to false", param="store")
    if not body.get("instructions"):
        raise WireRefusal("Instructions are required", param="instructions")
    return _heard(asked, codex=True)


def _require_fields(body: JsonObject) -> None:
    for name in sorted(set(body) - FIELDS):
        raise WireRefusal(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    for name in ("model", "input"):
        if not body.get(name):
            raise WireRefusal(
                f"Missing required parameter: '{name}'.",
                code="missing_required_parameter",
                param=name,
            )
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < 16):
        raise WireRefusal(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.",
            code="integer_below_min_value",
            param="max_output_tokens",
        )


def _heard(asked: RawRequest, *, codex: bool = False) -> ParsedRequest:
    body = asked.body
    items = (*_earlier_items(asked), *_input_items(body))
    names, freeform = _tools(list_at(body.get("tools") or [], "tools"))
    stores = body.get("store") is not False
    _require_stored(items, stores=stores)
    _require_outputs(items)
    talk, spoken_system = ConversationBuilder(), [str(body.get("instructions") or "")]
    for index, item in enumerate(items):
        spoken_system.extend(_hear_item(object_at(item, f"input[{index}]"), index, talk))
    include = list_at(body.get("include") or [], "include")
    return ParsedRequest(
        model=text_at(body["model"], "model"),
        stream=body.get("stream") is True,
        system="\n".join(filter(None, spoken_system)),
        conversation=talk.done(),
        tools=names,
        pieces=pieces_of([body.get("tools"), body.get("instructions"), *items]),
        cache_key=f"{body['model']}:{body.get('prompt_cache_key') or ''}",
        freeform_tools=freeform,
        seals_thinking="reasoning.encrypted_content" in include,
        empty_output_at_end=codex,
        stores=stores,
        items=items,
        echoed={name: body[name] for name in _ECHOED if name in body},
    )


def _earlier_items(asked: RawRequest) -> tuple[JsonValue, ...]:
    earlier = asked.body.get("previous_response_id")
    if earlier is None:
        return ()
    if earlier not in asked.stored:
        raise WireRefusal(
            f"Previous response with id '{earlier}' not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    return asked.stored[earlier]


def _input_items(body: JsonObject) -> list[JsonValue]:
    if isinstance(body["input"], str):
        return [{"type": "message", "role": "user", "content": body["input"]}]
    return list_at(body["input"], "input")


def _hear_item(item: JsonObject, index: int, talk: ConversationBuilder) -> list[str]:
    """Add an item to the talk; system and developer words are returned instead."""
    where = f"input[{index}]"
    kind = item.get("type", "message")
    if kind not in ITEM_FIELDS:
        raise WireRefusal(
            f"Invalid value: '{kind}'. Supported values are: {', '.join(sorted(ITEM_FIELDS))}.",
            code="invalid_value",
            param=f"{where}.type",
        )
    for name in sorted(set(item) - ITEM_FIELDS[kind]):
        raise WireRefusal(
            f"Unknown parameter: '{where}.{name}'.",
            code="unknown_parameter",
            param=f"{where}.{name}",
        )
    if kind == "message":
        return _hear_message(item, where, talk)
    if kind == "reasoning":
        list_at(item.get("summary"), f"{where}.summary")
        talk.thought()
    elif kind.endswith("_output"):
        call_id = CallId(text_at(item.get("call_id"), f"{where}.call_id"))
        content = _text_of(item.get("output"), f"{where}.output", _INPUT_PARTS)
        talk.heard(ToolResultBlock(call_id=call_id, content=content))
    else:
        talk.said(_call(item, where))
    return []


def _hear_message(item: JsonObject, where: str, talk: ConversationBuilder) -> list[str]:
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        raise WireRefusal(
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', "
            "and 'user'.",
            code="invalid_value",
            param=f"{where}.role",
        )
    parts = _PART_TYPES.get(role, _INPUT_PARTS)
    text = _text_of(item.get("content"), f"{where}.content", parts)
    if role == "assistant":
        talk.said(TextBlock(text=text))
    elif role == "user":
        talk.heard(TextBlock(text=text))
    else:
        return [text]
    return []


def _text_of(content: JsonValue, where: str, allowed: tuple[str, ...]) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for index, value in enumerate(list_at(content, where)):
        part = object_at(value, f"{where}[{index}]")
        if part.get("type") not in allowed:
            raise WireRefusal(
                f"Invalid value: '{part.get('type')}'. Supported values are: "
                f"{', '.join(repr(name) for name in allowed)}.",
                code="invalid_value",
                param=f"{where}[{index}].type",
            )
        if "text" in part:
            texts.append(text_at(part["text"], f"{where}[{index}].text"))
    return "\n".join(texts)


def _call(item: JsonObject, where: str) -> ToolUseBlock:
    written = "input" if item["type"] == "custom_tool_call" else "arguments"
    text = text_at(item.get(written), f"{where}.{written}")
    return ToolUseBlock(
        call_id=CallId(text_at(item.get("call_id"), f"{where}.call_id")),
        name=require_name(item.get("name"), f"{where}.name", set()),
        input=text if written == "input" else decoded(text),
    )


def _require_stored(items: tuple[JsonValue, ...], *, stores: bool) -> None:
    """Reasoning that is neither kept by the server nor sealed by it cannot be read again."""
    for index, item in enumerate(items):
        is_reasoning = isinstance(item, dict) and item.get("type") == "reasoning"
        if is_reasoning and not stores and not item.get("encrypted_content"):
            raise WireRefusal(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` "
                "is set to false. Try again with `store` set to true, or remove this item from "
                "your input.",
                status=404,
                param=f"input[{index}]",
            )


def _require_outputs(items: tuple[JsonValue, ...]) -> None:
    """Every call is answered later, and every output answers an earlier call of its kind."""
    for kind, label in (
        ("function_call", "function call"),
        ("custom_tool_call", "custom tool call"),
    ):
        waiting: list[str] = []
        for call_id, is_output in _calls_of(items, kind):
            if not is_output:
                waiting.append(call_id)
            elif call_id in waiting:
                waiting.remove(call_id)
            else:
                raise WireRefusal(
                    f"No tool call found for {label} output with call_id {call_id}.",
                    param="input",
                )
        if waiting:
            raise WireRefusal(f"No tool output found for {label} {waiting[0]}.", param="input")


def _calls_of(items: tuple[JsonValue, ...], kind: str) -> Iterator[tuple[str, bool]]:
    for item in items:
        found = item.get("type") if isinstance(item, dict) else None
        if found in (kind, f"{kind}_output"):
            yield str(item.get("call_id")), found != kind


def _tools(tools: list[JsonValue]) -> tuple[tuple[str, ...], frozenset[str]]:
    names: list[str] = []
    freeform: set[str] = set()
    seen: set[str] = set()
    for index, value in enumerate(tools):
        where = f"tools[{index}]"
        tool = object_at(value, where)
        name = require_name(tool.get("name"), f"{where}.name", seen)
        if tool.get("type") == "custom":
            freeform.add(name)
        elif tool.get("type") == "function":
            strict = tool.get("strict", True) is True  # this wire is strict unless told otherwise
            place = f"{where}.parameters"
            require_schema(tool.get("parameters"), place, tool=name, strict=strict)
        else:
            raise WireRefusal(
                f"Invalid value: '{tool.get('type')}'. Supported values are: 'function', 'custom'.",
                code="invalid_value",
                param=f"{where}.type",
            )
        names.append(name)
    return tuple(names), frozenset(freeform)
