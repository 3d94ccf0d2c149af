"""Requests to the Chat Completions wire.

Owns:  what that server accepts: fields, roles, and the pairing of tool calls and tool messages.
"""

from collections.abc import Mapping
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
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
# Compatible servers hand out `reasoning_content` and take it back.
MESSAGE_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset(
        {"role", "content", "name", "tool_calls", "refusal", "audio", "reasoning_content"}
    ),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}


def read_chat(asked: RawRequest) -> ParsedRequest:
    """Understand a request to `/chat/completions`, or refuse it."""
    body = asked.body
    _require_fields(body)
    messages = [
        _message(value, f"messages[{index}]")
        for index, value in enumerate(list_at(body["messages"], "messages"))
    ]
    _require_answers(messages)
    talk, system = ConversationBuilder(), list[str]()
    for message in messages:
        _hear(message, talk, system)
    return ParsedRequest(
        model=text_at(body["model"], "model"),
        stream=body.get("stream") is True,
        system="\n".join(system),
        conversation=talk.done(),
        tools=_tools(list_at(body.get("tools") or [], "tools")),
        pieces=pieces_of([body.get("tools"), *messages]),
        cache_key=f"{body['model']}:{body.get('prompt_cache_key') or ''}",
        usage_in_stream=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _require_fields(body: JsonObject) -> None:
    for name in sorted(set(body) - FIELDS):
        raise WireRefusal(f"Unrecognized request argument supplied: {name}")
    for name in ("model", "messages"):
        if not body.get(name):
            raise WireRefusal(
                f"Missing required parameter: '{name}'.",
                code="missing_required_parameter",
                param=name,
            )
    if body.get("stream_options") is not None and body.get("stream") is not True:
        raise WireRefusal(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise WireRefusal(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            code="invalid_parameter_combination",
        )


def _message(value: JsonValue, where: str) -> JsonObject:
    message = object_at(value, where)
    role = str(message.get("role"))
    if role not in MESSAGE_FIELDS:
        raise WireRefusal(
            f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', "
            "'tool', and 'developer'.",
            code="invalid_value",
            param=f"{where}.role",
        )
    for name in sorted(set(message) - MESSAGE_FIELDS[role]):
        raise WireRefusal(
            f"Additional properties are not allowed ('{name}' was unexpected) - '{where}'"
        )
    if message.get("content") is None and not message.get("tool_calls"):
        raise WireRefusal(
            f"Invalid value for 'content': expected a string, got null. - '{where}.content'",
            param=f"{where}.content",
        )
    return message


def _require_answers(messages: list[JsonObject]) -> None:
    """Tool messages follow the calls they answer, and no call is left without one."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in waiting:
                raise WireRefusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    param=f"messages[{index}].role",
                )
            waiting.remove(call_id)
            continue
        _require_none(waiting)
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or []]
    _require_none(waiting)


def _require_none(waiting: list[str]) -> None:
    if waiting:
        raise WireRefusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(waiting)}",
            param="messages",
        )


def _hear(message: JsonObject, talk: ConversationBuilder, system: list[str]) -> None:
    text = _text_of(message.get("content"))
    match message["role"]:
        case "user":
            talk.heard(TextBlock(text=text))
        case "tool":
            talk.heard(ToolResultBlock(call_id=CallId(message["tool_call_id"]), content=text))
        case "assistant":
            words = [TextBlock(text=text)] if text else []
            calls = [_call(object_at(c, "tool_calls")) for c in message.get("tool_calls") or []]
            talk.said(*words, *calls)
        case _:
            system.append(text)


def _text_of(content: JsonValue) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = [object_at(part, "content") for part in list_at(content, "content")]
    return "\n".join(text_at(part.get("text", ""), "content.text") for part in parts)


def _call(call: JsonObject) -> ToolUseBlock:
    function = object_at(call.get("function"), "tool_calls.function")
    return ToolUseBlock(
        call_id=CallId(text_at(call.get("id"), "tool_calls.id")),
        name=require_name(function.get("name"), "tool_calls.function.name", set()),
        input=decoded(text_at(function.get("arguments"), "tool_calls.function.arguments")),
    )


def _tools(tools: list[JsonValue]) -> tuple[str, ...]:
    seen: set[str] = set()
    names: list[str] = []
    for index, value in enumerate(tools):
        where = f"tools[{index}].function"
        tool = object_at(value, f"tools[{index}]")
        if tool.get("type") != "function":
            raise WireRefusal(
                f"Invalid value: '{tool.get('type')}'. Supported values are: 'function'.",
                code="invalid_value",
                param=f"tools[{index}].type",
            )
        function = object_at(tool.get("function"), where)
        name = require_name(function.get("name"), f"{where}.name", seen)
        strict = function.get("strict") is True
        require_schema(function.get("parameters"), f"{where}.parameters", tool=name, strict=strict)
        names.append(name)
    return tuple(names)
