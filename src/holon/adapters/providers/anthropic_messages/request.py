"""The request body of Anthropic Messages.

Owns:  the body, the URL, every header but the credential, the context-editing options with their
       beta flag, and the cache of encoded messages.
Rule 1: roles alternate, and the first and the last message are the user's; adjacent messages of one
        role are joined, with tool results first.
Rule 2: thinking is returned verbatim, and only to the endpoint it came from. Foreign thinking is
        left out, and so is thinking that was cut off before its signature, which the API would
        refuse together with everything after it; a message with nothing else disappears.
Rule 3: what the API does not accept is sent in the nearest accepted form: blank text is left out,
        ids and names lose forbidden characters, unreadable arguments become an object.
Rule 4: apart from markers, the same layout gives the same bytes, and a longer conversation begins
        with the bytes of the shorter one. A message is encoded once, and again only when its
        markers move.
Rule 5: context editing leaves the request whole and replayable: the provider clears its own view,
        never ours. Patches are never cleared, because the model builds on what it has changed.
Rule 6: the estimate of clearable context is a number and quotes no tool result. Counting costs only
        what a round adds, because results follow their calls in the next message.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from holon.adapters.providers.anthropic_messages.cache_markers import (
    MARKER,
    conversation_marks,
    system_marks,
)
from holon.adapters.providers.wire_request import (
    ContextEditing,
    ConversationTextCache,
    Endpoint,
    Marks,
    MessageText,
    ToolCatalogs,
    plain_name,
)
from holon.decide.providers.prompt_layout import PromptLayout, layout_of
from holon.decide.providers.schemas import emit_schema
from holon.model.providers.models import SchemaMode
from holon.model.providers.prompt_frame import PromptBlock, ProviderRequest
from holon.model.record import Record
from holon.model.turns.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.turns.tools import ToolSpec
from holon.model.values import JsonValue

BETA: Final = "context-management-2025-06-27"
KEPT_TOOLS: Final = ("ApplyPatch",)
LowerMessage: TypeAlias = Callable[[ConversationMessage, frozenset[int]], Sequence[JsonValue]]
_UNMARKED: Final[frozenset[int]] = frozenset()
_NOBODY: Final = ""
_OPENING: Final = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}
_CLOSING: Final = b"]}"
_SILENCE: Final = _OPENING["user"] + b'{"type":"text","text":"(nothing was said)"}' + _CLOSING
_LEAD: Final = {  # what stands before a role's words, by the role whose words came before
    (_NOBODY, "user"): _OPENING["user"],
    (_NOBODY, "assistant"): _SILENCE + b"," + _OPENING["assistant"],
    ("user", "user"): b",",
    ("user", "assistant"): _CLOSING + b"," + _OPENING["assistant"],
    ("assistant", "user"): _CLOSING + b"," + _OPENING["user"],
    ("assistant", "assistant"): b",",
}
_END: Final = {
    _NOBODY: _SILENCE,
    "user": _CLOSING,
    "assistant": _CLOSING + b"," + _SILENCE,
}
API_VERSION: Final = "2023-06-01"
OUTPUT_TOKENS_DEFAULT: Final = 8_192  # the wire wants a number; every current model takes this one


def context_management(editing: ContextEditing) -> JsonValue:
    """Return the wire's options for clearing old tool uses."""
    edit: dict[str, JsonValue] = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": editing.trigger_input_tokens},
        "keep": {"type": "tool_uses", "value": editing.keep_recent_tool_uses},
        "exclude_tools": list(KEPT_TOOLS),
    }
    if editing.clear_at_least_input_tokens is not None:
        edit["clear_at_least"] = {
            "type": "input_tokens",
            "value": editing.clear_at_least_input_tokens,
        }
    return {"edits": [edit]}


class ClearableResults:
    """What could be cleared of each conversation, counted on as it grows."""

    def __init__(self) -> None:
        self._counted = ConversationTextCache(start=0)  # bytes of all results that are not kept

    def note(
        self, key: Hashable, conversation: tuple[ConversationMessage, ...], editing: ContextEditing
    ) -> str:
        """Return the remark for the diagnostics of this exchange."""
        eligible = self.eligible_bytes(key, conversation, editing)
        return f"context_editing: eligible_tool_result_bytes={eligible}"

    def eligible_bytes(
        self, key: Hashable, conversation: tuple[ConversationMessage, ...], editing: ContextEditing
    ) -> int:
        """Return how many bytes of tool results are old enough to be cleared."""

        def count(index: int, so_far: int) -> MessageText[int]:
            calls = _calls_of(conversation[index - 1]) if index else ()
            return MessageText(b"", so_far + _result_bytes(conversation[index], calls))

        counts = self._counted.joined(key, conversation, count).notes
        whole = counts[-1] if counts else 0
        return whole - _recent_bytes(conversation, editing.keep_recent_tool_uses)


def _recent_bytes(conversation: Sequence[ConversationMessage], calls_count: int) -> int:
    """Return how many bytes the last calls gave."""
    total = 0
    for index in range(len(conversation) - 1, -1, -1):
        if calls_count <= 0:
            break
        calls = _calls_of(conversation[index])[-calls_count:]
        calls_count -= len(calls)
        if index + 1 < len(conversation):
            total += _result_bytes(conversation[index + 1], calls)
    return total


def _calls_of(message: ConversationMessage) -> tuple[ToolUseBlock, ...]:
    return tool_uses_of(message.blocks) if isinstance(message, AssistantMessage) else ()


def _result_bytes(message: ConversationMessage, calls: Sequence[ToolUseBlock]) -> int:
    """Return how many bytes a message holds of what these calls gave and may be cleared."""
    clearable = {call.call_id for call in calls if call.name not in KEPT_TOOLS}
    return sum(
        len(block.content.encode())
        for block in message.blocks
        if isinstance(block, ToolResultBlock) and block.call_id in clearable
    )


class EncodedMessages:
    """The conversations of one endpoint."""

    def __init__(self, lower: LowerMessage) -> None:
        self._lower = lower
        self._joined = ConversationTextCache(start=_NOBODY)

    def between(
        self,
        head: bytes,
        tail: bytes,
        *,
        key: Hashable,
        conversation: tuple[ConversationMessage, ...],
        marks: Marks,
    ) -> bytes:
        """Return the JSON list of messages with something before and behind it, copied once."""

        def write(index: int, spoke_last: str) -> MessageText[str]:
            message = conversation[index]
            blocks = self._lower(message, marks.get(index, _UNMARKED))
            if not blocks:
                return MessageText(b"", spoke_last)
            speaks = "user" if isinstance(message, UserMessage) else "assistant"
            text = msgspec.json.encode(blocks)[1:-1]
            return MessageText(_LEAD[spoke_last, speaks] + text, speaks)

        joined = self._joined.joined(key, conversation, write, marks=marks)
        spoke_last = joined.notes[-1] if joined.notes else _NOBODY
        return b"".join((head, b"[", joined.text, _END[spoke_last], b"]", tail))


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
    tool_json: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema,
    }
    # Compatible servers do not know `strict`, so it is sent only where the operator enabled it.
    return tool_json | ({"strict": True} if mode is SchemaMode.STRICT else {})


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
