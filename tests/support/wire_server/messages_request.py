"""Requests to the Anthropic Messages wire.

Owns:  what that server accepts: fields, alternation, content blocks, and the pairing of
       tool uses and tool results.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from holon.model.turns.conversation import (
    AssistantBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
from holon.model.values import CallId, JsonValue
from tests.support.wire_server.tool_checks import require_name, require_schema
from tests.support.wire_server.wire_request import (
    ConversationBuilder,
    JsonObject,
    ParsedRequest,
    Piece,
    RawRequest,
    WireRefusal,
    list_at,
    object_at,
    text_at,
)

FIELDS: Final = frozenset(
    [
        "cache_control",
        "container",
        "context_management",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "prefill",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "user_profile_id",
        "workspace_id",
    ]
)
TOOL_FIELDS: Final = frozenset(
    [
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "description",
        "eager_input_streaming",
        "input_examples",
        "input_schema",
        "name",
        "strict",
        "type",
    ]
)
BLOCK_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
SAID_BY: Final = {
    "user": frozenset({"text", "tool_result"}),
    "assistant": frozenset({"text", "tool_use", "thinking", "redacted_thinking"}),
}
MARKS_COUNT_MAX: Final = 4
CONTEXT_BETA: Final = "context-management-2025-06-27"


def read_messages(asked: RawRequest) -> ParsedRequest:
    """Understand a request to `/v1/messages`, or refuse it."""
    body = asked.body
    _require_fields(asked)
    system = _blocks_at(body.get("system") or [], "system")
    messages = [
        _message(value, f"messages.{index}")
        for index, value in enumerate(list_at(body.get("messages"), "messages"))
    ]
    _require_alternation(messages)
    _require_results(messages)
    tools = [object_at(tool, "tools") for tool in list_at(body.get("tools") or [], "tools")]
    names = tuple(_tool_names(tools))
    pieces = tuple(_pieces(tools, system, messages))
    _require_few_marks(pieces)
    talk = ConversationBuilder()
    for role, blocks in messages:
        _hear(role, blocks, talk)
    return ParsedRequest(
        model=text_at(body["model"], "model"),
        stream=body.get("stream") is True,
        system="\n".join(str(block.get("text", "")) for block in system),
        conversation=talk.done(),
        tools=names,
        pieces=pieces,
        cache_key=str(body["model"]),
        caches_marked=True,
    )


Message = tuple[str, list[JsonObject]]


def _require_fields(asked: RawRequest) -> None:
    body = asked.body
    if "anthropic-version" not in asked.headers:
        raise WireRefusal("anthropic-version: header is required")
    for name in sorted(set(body) - FIELDS):
        raise WireRefusal(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise WireRefusal(f"{name}: Field required")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise WireRefusal("max_tokens: Input should be greater than or equal to 1")
    if "context_management" in body and CONTEXT_BETA not in asked.headers.get("anthropic-beta", ""):
        raise WireRefusal("context_management: Extra inputs are not permitted")
    _require_thinking(object_at(body.get("thinking") or {}, "thinking"), body["max_tokens"])


def _require_thinking(thinking: JsonObject, tokens_max: int) -> None:
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens", 0)
    if budget < 1_024:
        raise WireRefusal(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    if budget >= tokens_max:
        raise WireRefusal("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _message(value: JsonValue, where: str) -> Message:
    message = object_at(value, where)
    for name in sorted(set(message) - {"role", "content"}):
        raise WireRefusal(f"{where}.{name}: Extra inputs are not permitted")
    role = message.get("role")
    if role not in SAID_BY:
        raise WireRefusal(f"{where}.role: Input should be 'user' or 'assistant'")
    blocks = _blocks_at(message.get("content"), f"{where}.content")
    if not blocks:
        raise WireRefusal(f"{where}: all messages must have non-empty content")
    for index, block in enumerate(blocks):
        if block["type"] not in SAID_BY[role]:
            raise WireRefusal(
                f"{where}.content.{index}: `{block['type']}` blocks can not be in {role} messages"
            )
    return role, blocks


def _blocks_at(content: JsonValue, where: str) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks = list_at(content, where)
    return [_block(value, f"{where}.{index}") for index, value in enumerate(blocks)]


def _block(value: JsonValue, where: str) -> JsonObject:
    block = object_at(value, where)
    kind = str(block.get("type"))
    if kind not in BLOCK_FIELDS:
        raise WireRefusal(f"{where}: Input tag '{kind}' does not match any of the expected tags")
    for name in sorted(set(block) - BLOCK_FIELDS[kind]):
        raise WireRefusal(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    if kind == "text" and not text_at(block.get("text"), f"{where}.text").strip():
        raise WireRefusal("messages: text content blocks must contain non-whitespace text")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        raise WireRefusal(f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "thinking" and not block.get("signature"):
        raise WireRefusal(f"{where}.thinking.signature: Field required")
    return block


def _require_alternation(messages: list[Message]) -> None:
    if not messages:
        raise WireRefusal("messages: at least one message is required")
    if messages[0][0] != "user":
        raise WireRefusal('messages: first message must use the "user" role')
    for (before, _), (role, _) in itertools.pairwise(messages):
        if before == role:
            raise WireRefusal(
                'messages: roles must alternate between "user" and "assistant", but found multiple '
                f'"{role}" roles in a row'
            )
    if messages[-1][0] != "user":
        raise WireRefusal("The conversation must end with a user message.")


def _require_results(messages: list[Message]) -> None:
    """The results of a message's tool uses stand at the head of the next one, each exactly once."""
    uses: list[str] = []
    for index, (_, blocks) in enumerate(messages):
        results = [str(b.get("tool_use_id")) for b in blocks if b["type"] == "tool_result"]
        missing = [use for use in uses if use not in results]
        if missing:
            raise WireRefusal(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message."
            )
        if any(result not in uses for result in results):
            raise WireRefusal(
                f"messages.{index}.content: unexpected `tool_use_id` found in `tool_result` "
                "blocks. Each `tool_result` block must have a corresponding `tool_use` block in "
                "the previous message."
            )
        if len(set(results)) < len(results):
            raise WireRefusal("each tool_use must have a single result. Found multiple.")
        head = [block["type"] for block in blocks[: len(results)]]
        if any(kind != "tool_result" for kind in head):
            raise WireRefusal(
                f"messages.{index}: `tool_result` blocks must come first in the message"
            )
        uses = [str(block.get("id")) for block in blocks if block["type"] == "tool_use"]
        if len(set(uses)) < len(uses):
            raise WireRefusal("messages: `tool_use` ids must be unique")


def _tool_names(tools: list[JsonObject]) -> Iterator[str]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        for name in sorted(set(tool) - TOOL_FIELDS):
            raise WireRefusal(f"{where}.custom.{name}: Extra inputs are not permitted")
        name = require_name(tool.get("name"), f"{where}.name", seen)
        strict = tool.get("strict") is True
        require_schema(tool.get("input_schema"), f"{where}.input_schema", tool=name, strict=strict)
        yield name


def _pieces(
    tools: list[JsonObject], system: list[JsonObject], messages: list[Message]
) -> Iterator[Piece]:
    yield from (_piece(tool, "tool") for tool in tools)
    yield from (_piece(block, "system") for block in system)
    for role, blocks in messages:
        yield from (_piece(block, role) for block in blocks)


def _piece(block: JsonObject, role: str) -> Piece:
    """A block without its mark: marks move from request to request, prompts stay."""
    kept = {name: value for name, value in block.items() if name != "cache_control"}
    data = role.encode() + msgspec.json.encode(kept)
    return Piece(data, marked=block.get("cache_control") is not None)


def _require_few_marks(pieces: tuple[Piece, ...]) -> None:
    found = sum(piece.marked for piece in pieces)
    if found > MARKS_COUNT_MAX:
        raise WireRefusal(
            f"A maximum of {MARKS_COUNT_MAX} blocks with cache_control may be provided. "
            f"Found {found}."
        )


def _hear(role: str, blocks: list[JsonObject], talk: ConversationBuilder) -> None:
    if role == "user":
        talk.heard(*(_user_block(block) for block in blocks))
    else:
        talk.said(*(_assistant_block(block) for block in blocks))


def _user_block(block: JsonObject) -> UserBlock:
    if block["type"] == "text":
        return TextBlock(text=block["text"])
    parts = _blocks_at(block.get("content") or [], "tool_result.content")
    return ToolResultBlock(
        call_id=CallId(block["tool_use_id"]),
        content="\n".join(str(part.get("text", "")) for part in parts),
        is_error=block.get("is_error") is True,
    )


def _assistant_block(block: JsonObject) -> AssistantBlock:
    match block["type"]:
        case "text":
            return TextBlock(text=block["text"])
        case "tool_use":
            name = require_name(block["name"], "tool_use.name", set())
            return ToolUseBlock(call_id=CallId(block["id"]), name=name, input=block["input"])
        case _:
            return ThinkingBlock(text=str(block.get("thinking", "")))
