"""A request as the Responses API takes it.

Owns:  the body of the full request, its shape (all but the input), and what is remembered to make
       the next body cheaply.
Rule 1: `input` comes last, so a longer conversation has the shorter one's bytes as its prefix.
Rule 2: lowering is pure; the memo saves encoding and never changes a byte.
Rule 3: a response is stored by the provider only where the endpoint continues from stored ones.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holon.adapters.providers.endpoint import Endpoint
from holon.adapters.providers.openai_responses.conversation_memo import (
    ConversationMemo,
    EncodedConversation,
)
from holon.adapters.providers.openai_responses.items import Item, ItemStyle, items_of, wire_key
from holon.decide.prompt_layout import PromptLayout, layout_of
from holon.decide.schema_emission import SchemaMode, emit_schema
from holon.model.conversation import AssistantMessage, ConversationMessage
from holon.model.prompt_frame import ProviderRequest
from holon.model.record import Record
from holon.model.tool import ToolSpec

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
_TOOL_SETS_COUNT_MAX: Final = 32
_FREEFORM_SETS_COUNT_MAX: Final = 8

Replay = Callable[[Sequence[Item]], Sequence[Item]]


class LoweredRequest(Record, frozen=True, kw_only=True):
    """A full request: everything but the input as one JSON object, and the input."""

    shape: bytes
    input: EncodedConversation
    style: ItemStyle


class RequestMemo:
    """Remembers encoded messages and tool catalogs of one endpoint."""

    def __init__(self) -> None:
        self._catalogs: OrderedDict[tuple[int, ...], tuple[tuple[ToolSpec, ...], msgspec.Raw]]
        self._catalogs = OrderedDict()
        self._inputs: OrderedDict[tuple[tuple[str, str], ...], ConversationMemo] = OrderedDict()

    def catalog(self, endpoint: Endpoint, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """Return the encoded tools, emitting their schemas only the first time they are seen."""
        key = tuple(map(id, tools))
        found = self._catalogs.get(key)
        if found is None:
            found = (tools, msgspec.Raw(msgspec.json.encode(tools_of(endpoint, tools))))
            self._catalogs[key] = found
            if len(self._catalogs) > _TOOL_SETS_COUNT_MAX:
                self._catalogs.popitem(last=False)
        self._catalogs.move_to_end(key)
        return found[1]

    def input_of(
        self,
        request: ProviderRequest,
        layout: PromptLayout,
        style: ItemStyle,
        *,
        replay: Replay | None = None,
    ) -> EncodedConversation:
        """Return the encoded conversation; `replay` may put known originals of answers in place."""

        def lowered(
            message: ConversationMessage, before: ConversationMessage | None
        ) -> Sequence[Item]:
            items = items_of(message, style, before=before)
            is_answer = isinstance(message, AssistantMessage)
            return replay(items) if replay is not None and is_answer else items

        memo = self._conversations(style.freeform)
        return memo.encoded(request.agent_id, layout.conversation, lowered)

    def _conversations(self, freeform: Mapping[str, str]) -> ConversationMemo:
        """Return the memo to use: a call looks different where its tool is freeform."""
        key = tuple(freeform.items())
        memo = self._inputs.setdefault(key, ConversationMemo())
        self._inputs.move_to_end(key)
        if len(self._inputs) > _FREEFORM_SETS_COUNT_MAX:
            self._inputs.popitem(last=False)
        return memo


def lower(endpoint: Endpoint, request: ProviderRequest, memo: RequestMemo) -> LoweredRequest:
    """Return the full request for an endpoint."""
    layout = layout_of(request)
    shape: dict[str, Any] = {"model": endpoint.model}
    instructions = instructions_of(layout)
    if instructions:
        shape["instructions"] = instructions
    if request.tools:
        shape["tools"] = memo.catalog(endpoint, request.tools)
        shape["tool_choice"] = "auto"
        shape["parallel_tool_calls"] = False
    shape["store"] = endpoint.incremental
    if request.frame.cache is not None:
        shape["prompt_cache_key"] = wire_key(request.frame.cache.prompt_cache_key)
    if endpoint.output_tokens_max is not None:
        shape["max_output_tokens"] = endpoint.output_tokens_max
    if endpoint.reasoning_effort is not None:
        shape["reasoning"] = {"effort": endpoint.reasoning_effort}
        shape["include"] = [ENCRYPTED_REASONING]
    if endpoint.stream:
        shape["stream"] = True
    style = ItemStyle(
        thinking_origin=endpoint.thinking_origin, freeform=freeform_of(endpoint, request.tools)
    )
    return LoweredRequest(
        shape=msgspec.json.encode(shape),
        input=memo.input_of(request, layout, style),
        style=style,
    )


def body_of(
    shape: bytes, items: Sequence[msgspec.Raw], *, previous_response_id: str | None = None
) -> bytes:
    """Return the body: the shape, where to continue from, and the input last."""
    previous = b""
    if previous_response_id is not None:
        previous = b',"previous_response_id":' + msgspec.json.encode(previous_response_id)
    head = b"".join((shape[:-1], previous, b',"input":['))
    if not items:
        return head + b"]}"
    # The ends are glued to the outer items, so that a long conversation is copied only once.
    if len(items) == 1:
        return b"".join((head, items[0], b"]}"))
    first, last = b"".join((head, items[0])), b"".join((items[-1], b"]}"))
    return b",".join((first, *items[1:-1], last))


def instructions_of(layout: PromptLayout) -> str:
    """Return the system pieces as one text."""
    return "\n\n".join(piece.text for piece in layout.system)


def freeform_of(endpoint: Endpoint, tools: tuple[ToolSpec, ...]) -> Mapping[str, str]:
    """Return the tools that take plain text here, with the argument the text stands for."""
    if not endpoint.freeform_tools:
        return {}
    return {tool.name: tool.freeform.argument for tool in tools if tool.freeform is not None}


def tools_of(endpoint: Endpoint, tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """Return the catalog as the API takes it."""
    return [_tool(endpoint, tool) for tool in tools]


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
