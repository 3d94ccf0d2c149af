"""The request body of the Responses API.

Owns:  how each block becomes an input item, and which earlier calls were freeform; the encoded
       input; for endpoints that continue stored responses, how far a conversation has progressed at
       the end of each message; the full body, its shape (everything but the input), and the memo
       that makes the next body cheap.
Rule 1: a block is one item, so a growing conversation only appends items.
Rule 2: reasoning is returned as the encrypted item it came as, and only to the endpoint that
        encrypted it. Without its encrypted content it is left out: the provider does not store it
        under its id.
Rule 3: every item begins with its type, so that reasoning is recognized by its first bytes.
Rule 4: items we build carry no ids: an id would claim that the server still stores the item.
Rule 5: a call is sent under a name the API accepts, even where the model invented one.
Rule 6: two conversations with equal progress hold the same items, reasoning apart: progress is the
        number of items and a digest over all of them, in order.
Rule 7: a value that was handed out is never changed by a later request.
Rule 8: `input` comes last, so a longer conversation has the bytes of the shorter one as its prefix.
Rule 9: encoding is pure; the memo saves work and never changes a byte.
Rule 10: a response is stored by the provider only where the endpoint continues from stored ones.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final, assert_never

import msgspec

from holon.adapters.providers.wire_answer import decode_json, may_be_empty
from holon.adapters.providers.wire_request import (
    ConversationTextCache,
    Endpoint,
    MessageText,
    ToolCatalogs,
    plain_name,
)
from holon.decide.providers.prompt_layout import PromptLayout, layout_of
from holon.decide.providers.schemas import emit_schema
from holon.model.providers.attempts import UnreadableResponseError
from holon.model.providers.models import SchemaMode
from holon.model.providers.prompt_frame import ProviderRequest
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
)
from holon.model.turns.tools import ToolSpec
from holon.model.values import AgentId, JsonValue

WIRE_KEY_CHARS_MAX: Final = 64  # cache keys and call ids: the API refuses longer ones
_REASONING_HEAD: Final = b'{"type":"reasoning"'
_NO_CALLS: Final[frozenset[str]] = frozenset()

Item = dict[str, Any]
LowerMessage = Callable[[ConversationMessage, ConversationMessage | None], Sequence[Item]]
ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
OPTIONAL: Final = frozenset({
    "include", "max_output_tokens", "parallel_tool_calls", "prompt_cache_key", "reasoning",
    "tool_choice",
})  # fmt: skip
Replay = Callable[[Sequence[Item]], Sequence[Item]]


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
        items = (_assistant_item(block, style) for block in message.blocks)
    else:
        freeform = freeform_calls_of(before, style.freeform)
        items = (_user_item(block, freeform) for block in message.blocks)
    return [item for item in items if item is not None]


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
    """Return the text of a call that can be sent as freeform without losing anything."""
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
    """Whether an item is a call the provider executed itself, which needs no result."""
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith("_call") and "call_id" not in item


def is_sealed(item: JsonValue) -> bool:
    """Whether a reasoning item carries what a server without memory needs to read it again."""
    is_item = isinstance(item, dict) and item.get("type") == "reasoning"
    return is_item and isinstance(item.get("encrypted_content"), str)


class Progress(Record, frozen=True, kw_only=True):
    """How far a conversation has come; reasoning is not counted."""

    count: int = 0
    digest: bytes = b""

    def behind(self, items: Iterable[msgspec.Raw]) -> "Progress":
        """Return how far it has come behind some more items."""
        return reduce(_behind_one, items, self)


def _behind_one(progress: Progress, item: msgspec.Raw) -> Progress:
    if is_reasoning(item):
        return progress
    digest = hashlib.sha256(progress.digest + bytes(item)).digest()
    return Progress(count=progress.count + 1, digest=digest)


class EncodedMessage(Record, frozen=True, kw_only=True):
    """The items of one message, and how far the conversation has come behind it."""

    items: tuple[msgspec.Raw, ...] = ()
    progress: Progress = Progress()


class EncodedInput(Record, frozen=True, kw_only=True):
    """A body whose last field is the input; its messages only where they may be continued."""

    body: bytes
    messages: tuple[EncodedMessage, ...] = ()


_NOTHING: Final = EncodedMessage()


class ConversationMemo:
    """Remembers how conversations look on the wire, for each agent and set of freeform tools."""

    def __init__(self) -> None:
        self._joined = ConversationTextCache(start=_NOTHING)

    def encoded(
        self,
        shape: bytes,
        agent_id: AgentId,
        conversation: tuple[ConversationMessage, ...],
        lower: LowerMessage,
        *,
        freeform: Mapping[str, str],
        is_continued: bool,
    ) -> EncodedInput:
        """Return a body; `lower` is given a message and the one before it."""

        def write(index: int, before: EncodedMessage) -> MessageText[EncodedMessage]:
            items = lower(conversation[index], conversation[index - 1] if index else None)
            if not is_continued:
                text = b"," + msgspec.json.encode(items)[1:-1] if items else b""
                return MessageText(text, _NOTHING)
            encoded = tuple(msgspec.Raw(msgspec.json.encode(item)) for item in items)
            progress = before.progress.behind(encoded)
            text = b"".join(b"," + bytes(item) for item in encoded)
            return MessageText(text, EncodedMessage(items=encoded, progress=progress))

        # A call looks different where its tool is freeform.
        key = (agent_id, tuple(freeform.items()), is_continued)
        joined = self._joined.joined(key, conversation, write)
        with memoryview(joined.text)[1:] as items:  # without the comma before the first
            body = b"".join((shape[:-1], b',"input":[', items, b"]}"))
        return EncodedInput(body=body, messages=tuple(joined.notes) if is_continued else ())


class LoweredRequest(Record, frozen=True, kw_only=True):
    """A full request: its body, and everything but the input as one JSON object."""

    body: bytes
    shape: bytes
    messages: tuple[EncodedMessage, ...]  # where the endpoint continues from stored responses
    style: ItemStyle
    optional: frozenset[str] = frozenset()  # what the provider may do without
    allow_empty: bool = False  # an answer without words may be the end of the turn


class RequestMemo:
    """Remembers encoded conversations and tool catalogs of one endpoint."""

    def __init__(self) -> None:
        self._conversations = ConversationMemo()
        self._tools = ToolCatalogs()

    def catalog(self, endpoint: Endpoint, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """Return the encoded tools, emitting their schemas only the first time they are seen."""
        return self._tools.encoded(tools, partial(_tool, endpoint))

    def with_input(
        self,
        shape: Mapping[str, Any],
        request: ProviderRequest,
        layout: PromptLayout,
        style: ItemStyle,
        *,
        replay: Replay | None = None,
        is_continued: bool = False,
    ) -> LoweredRequest:
        """Return the request; `replay` may put known originals of answers in place."""

        def lowered(
            message: ConversationMessage, before: ConversationMessage | None
        ) -> Sequence[Item]:
            items = items_of(message, style, before=before)
            is_answer = isinstance(message, AssistantMessage)
            return replay(items) if replay is not None and is_answer else items

        encoded_shape = msgspec.json.encode(shape)
        encoded = self._conversations.encoded(
            encoded_shape,
            request.agent_id,
            layout.conversation,
            lowered,
            freeform=style.freeform,
            is_continued=is_continued,
        )
        return LoweredRequest(
            body=encoded.body,
            shape=encoded_shape,
            messages=encoded.messages,
            style=style,
            optional=OPTIONAL.intersection(shape),
            allow_empty=may_be_empty(request.conversation),
        )


def lower(
    endpoint: Endpoint,
    request: ProviderRequest,
    memo: RequestMemo,
    *,
    without: frozenset[str] = frozenset(),
) -> LoweredRequest:
    """Return the full request for an endpoint, without what its provider is known to refuse."""
    layout = layout_of(request)
    shape: dict[str, Any] = {"model": endpoint.model}
    instructions = instructions_of(layout)
    if instructions:
        shape["instructions"] = instructions
    if request.tools:
        shape["tools"] = memo.catalog(endpoint, request.tools)
        shape["tool_choice"] = "auto"
        if "parallel_tool_calls" in endpoint.takes:
            shape["parallel_tool_calls"] = False
    shape["store"] = endpoint.incremental
    if request.frame.cache is not None and "prompt_cache_key" in endpoint.takes:
        shape["prompt_cache_key"] = wire_key(request.frame.cache.prompt_cache_key)
    if endpoint.output_tokens_max is not None:
        shape["max_output_tokens"] = endpoint.output_tokens_max
    if endpoint.reasoning_effort is not None:
        shape["reasoning"] = {"effort": endpoint.reasoning_effort}
        shape["include"] = [ENCRYPTED_REASONING]
    if endpoint.stream:
        shape["stream"] = True
    shape = {name: value for name, value in shape.items() if name not in without}
    style = ItemStyle(
        thinking_origin=endpoint.thinking_origin, freeform=freeform_of(endpoint, request.tools)
    )
    return memo.with_input(shape, request, layout, style, is_continued=endpoint.incremental)


def continued_body(
    shape: bytes, items: Sequence[msgspec.Raw], *, previous_response_id: str
) -> bytes:
    """Return the body that continues from a stored response with only what is new."""
    previous = msgspec.json.encode(previous_response_id)
    head = b"".join((shape[:-1], b',"previous_response_id":', previous, b',"input":['))
    return b"".join((head, b",".join(items), b"]}"))


def instructions_of(layout: PromptLayout) -> str:
    """Return the system pieces as one text."""
    return "\n\n".join(piece.text for piece in layout.system)


def freeform_of(endpoint: Endpoint, tools: tuple[ToolSpec, ...]) -> Mapping[str, str]:
    """Return the tools that take plain text here, with the argument the text stands for."""
    if not endpoint.freeform_tools:
        return {}
    return {tool.name: tool.freeform.argument for tool in tools if tool.freeform is not None}


def _tool(endpoint: Endpoint, tool: ToolSpec) -> dict[str, Any]:
    if tool.freeform is not None and endpoint.freeform_tools:
        grammar = {
            "type": "grammar",
            "syntax": tool.freeform.syntax,
            "definition": tool.freeform.definition,
        }
        return {
            "type": "custom",
            "name": tool.name,
            "description": tool.description,
            "format": grammar,
        }
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": emit_schema(tool.input_schema, endpoint.schema_mode),
        "strict": endpoint.schema_mode is SchemaMode.STRICT,
    }
