"""A request as the Responses API takes it.

Owns:  the body of the full request, its shape (all but the input), and what is remembered to make
       the next body cheaply.
Rule 1: `input` comes last, so a longer conversation has the shorter one's bytes as its prefix.
Rule 2: lowering is pure; the memo saves encoding and never changes a byte.
Rule 3: a response is stored by the provider only where the endpoint continues from stored ones.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from holon.adapters.providers.endpoint import Endpoint
from holon.adapters.providers.finished_answer import may_be_silent
from holon.adapters.providers.openai_responses.conversation_memo import (
    ConversationMemo,
    EncodedMessage,
)
from holon.adapters.providers.openai_responses.items import Item, ItemStyle, items_of, wire_key
from holon.adapters.providers.tool_catalogs import ToolCatalogs
from holon.decide.prompt_layout import PromptLayout, layout_of
from holon.decide.schema_emission import emit_schema
from holon.model.conversation import AssistantMessage, ConversationMessage
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_setting import SchemaMode
from holon.model.record import Record
from holon.model.tool import ToolSpec

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
OPTIONAL: Final = frozenset({
    "include", "max_output_tokens", "parallel_tool_calls", "prompt_cache_key", "reasoning",
    "tool_choice",
})  # fmt: skip

Replay = Callable[[Sequence[Item]], Sequence[Item]]


class LoweredRequest(Record, frozen=True, kw_only=True):
    """A full request: its body, and everything but the input as one JSON object."""

    body: bytes
    shape: bytes
    messages: tuple[EncodedMessage, ...]  # where the endpoint continues from stored responses
    style: ItemStyle
    optional: frozenset[str] = frozenset()  # what the provider may do without
    silence_counts: bool = False  # an answer without words may be the end of the turn


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
            silence_counts=may_be_silent(request.conversation),
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
