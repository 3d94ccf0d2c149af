"""A request, as Anthropic Messages takes it.

Owns:  the request body, its URL and every header but the credential.
Rule 1: roles alternate and begin and end with the user; neighbours of one role are joined; the tool
        results of a message come first in it.
Rule 2: thinking goes back word for word, and only to where it came from. Foreign thinking is left
        out, and so is a thought that was cut off before its signature, which the wire would refuse
        with all that follows; a message that was nothing else disappears.
Rule 3: what cannot be said on this wire is said in the nearest form it takes: a blank text is left
        out, ids and names lose characters it refuses, unreadable arguments become an object.
Rule 4: but for the markers, the same layout gives the same bytes, and a longer conversation begins
        with the bytes of the shorter one.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from holon.adapters.providers.anthropic_messages.cache_markers import (
    MARKER,
    conversation_marks,
    system_marks,
)
from holon.adapters.providers.anthropic_messages.context_editing import (
    BETA,
    ClearableResults,
    context_management,
)
from holon.adapters.providers.anthropic_messages.encoded_messages import EncodedMessages
from holon.adapters.providers.endpoint import Endpoint
from holon.adapters.providers.tool_catalogs import ToolCatalogs
from holon.adapters.providers.wire_names import plain_name
from holon.decide.prompt_layout import PromptLayout, layout_of
from holon.decide.schema_emission import emit_schema
from holon.model.conversation import (
    AssistantBlock,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
from holon.model.json_value import JsonValue
from holon.model.prompt_frame import PromptBlock, ProviderRequest
from holon.model.provider_setting import SchemaMode
from holon.model.record import Record
from holon.model.tool import ToolSpec

API_VERSION: Final = "2023-06-01"
OUTPUT_TOKENS_DEFAULT: Final = 8_192  # the wire wants a number; every current model takes this one


class LoweredRequest(Record, frozen=True, kw_only=True):
    """What goes over the wire, but for the credential."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    notes: tuple[str, ...] = ()


class RequestMemo:
    """What one endpoint's requests have in common, encoded once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.messages = EncodedMessages(partial(_blocks, endpoint.thinking_origin))
        self.tools = ToolCatalogs()
        self.clearable = ClearableResults()


def lower(endpoint: Endpoint, request: ProviderRequest, memo: RequestMemo) -> LoweredRequest:
    """Return the request for this endpoint."""
    layout = layout_of(request)
    notes: tuple[str, ...] = ()
    if endpoint.context_editing is not None:
        conversation = layout.conversation
        notes = (memo.clearable.note(request.agent_id, conversation, endpoint.context_editing),)
    return LoweredRequest(
        url=_url(endpoint.base_url),
        headers=_headers(endpoint),
        body=_body(endpoint, request, layout, memo),
        notes=notes,
    )


def _url(base_url: str) -> str:
    """Services that speak this wire give their address with or without the version."""
    root = base_url.rstrip("/")
    return f"{root}/messages" if root.endswith("/v1") else f"{root}/v1/messages"


def _headers(endpoint: Endpoint) -> Mapping[str, str]:
    own = (BETA,) if endpoint.context_editing is not None else ()
    betas = dict.fromkeys((*endpoint.betas, *own))
    return {
        "anthropic-version": API_VERSION,
        "accept": "text/event-stream" if endpoint.stream else "application/json",
        **({"anthropic-beta": ",".join(betas)} if betas else {}),
    }


def _body(
    endpoint: Endpoint, request: ProviderRequest, layout: PromptLayout, memo: RequestMemo
) -> bytes:
    """The body in the order the provider caches it; the part that grows stands last."""
    head = msgspec.json.encode(_head(endpoint, request, layout, memo))
    return memo.messages.between(
        head.removesuffix(b"}") + b',"messages":',
        b"}",
        key=request.agent_id,
        conversation=layout.conversation,
        marks=conversation_marks(layout.conversation, request.turn_start),
    )


def _head(
    endpoint: Endpoint, request: ProviderRequest, layout: PromptLayout, memo: RequestMemo
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": endpoint.model,
        "max_tokens": endpoint.output_tokens_max or OUTPUT_TOKENS_DEFAULT,
    }
    if endpoint.stream:
        body["stream"] = True
    if endpoint.reasoning_effort is not None:
        body["thinking"] = {"type": "adaptive"}
        body["output_config"] = {"effort": endpoint.reasoning_effort}
    if endpoint.context_editing is not None:
        body["context_management"] = context_management(endpoint.context_editing)
    if request.tools:
        body["tools"] = memo.tools.encoded(request.tools, partial(_tool, mode=endpoint.schema_mode))
    if layout.system:
        body["system"] = _system(layout.system)
    return body


def _tool(tool: ToolSpec, mode: SchemaMode) -> dict[str, JsonValue]:
    schema = emit_schema(tool.input_schema, mode, takes_bounds=False)
    told: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema,
    }
    # Compatible servers know no such word, so it is there only where the operator asked for it.
    return told | ({"strict": True} if mode is SchemaMode.STRICT else {})


def _system(system: Sequence[PromptBlock]) -> list[JsonValue]:
    marks = system_marks(system)
    return [
        _marked({"type": "text", "text": block.text}, index in marks)
        for index, block in enumerate(system)
    ]


def _blocks(
    origin: str, message: ConversationMessage, marks: frozenset[int]
) -> Sequence[JsonValue]:
    """Return the content of a message, its tool results first."""
    results: list[JsonValue] = []
    others: list[JsonValue] = []
    for index, block in enumerate(_without_cut_thought(message.blocks)):
        lowered = _block(block, origin)
        if lowered is not None:
            kind = results if isinstance(block, ToolResultBlock) else others
            kind.append(_marked(lowered, index in marks))
    return [*results, *others]


def _without_cut_thought(
    blocks: tuple[UserBlock | AssistantBlock, ...],
) -> tuple[UserBlock | AssistantBlock, ...]:
    """Return the blocks without a thought at their end that was cut off before it was signed."""
    match blocks:
        case (*_, ThinkingBlock(redacted=False, signature=None | "")):
            return blocks[:-1]
        case _:
            return blocks


def _block(block: UserBlock | AssistantBlock, origin: str) -> dict[str, JsonValue] | None:
    """Return one content block, or nothing for what this wire is not sent."""
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case ThinkingBlock():
            return _thinking(block) if block.origin == origin else None
        case OpaqueBlock(content=content):
            return msgspec.json.decode(content) if block.origin == origin else None
        case ToolUseBlock(call_id=call_id, name=name, input=asked):
            return {
                "type": "tool_use",
                "id": plain_name(call_id),
                "name": plain_name(name),
                "input": asked if isinstance(asked, dict) else {"unreadable_arguments": asked},
            }
        case ToolResultBlock(call_id=call_id, content=content, is_error=is_error):
            result = {"type": "tool_result", "tool_use_id": plain_name(call_id), "content": content}
            return {**result, "is_error": True} if is_error else result


def _thinking(block: ThinkingBlock) -> dict[str, JsonValue]:
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.signature or ""}
    thinking: dict[str, JsonValue] = {"type": "thinking", "thinking": block.text}
    return thinking if block.signature is None else {**thinking, "signature": block.signature}


def _marked(block: dict[str, JsonValue], is_marked: bool) -> dict[str, JsonValue]:
    return {**block, "cache_control": MARKER} if is_marked else block
