"""Anthropic's answer, as the runtime reads it.

Owns:  reading a whole message: its blocks, why it ended, and what it used.
Rule 1: a stream is assembled to the same JSON and read here too; there is no second reading.
Rule 2: a kind of block we did not ask for is refused: it could not be sent back as it came.
Rule 3: a refusal is the model's word when it has any; its calls are not acted on.
Rule 4: what the provider did by itself is kept as a pair of call and result, or left out as one.
Rule 5: usage is a courtesy. What is missing or odd in it counts as zero and fails nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holon.adapters.providers.finished_answer import finished_answer, opaque_block
from holon.adapters.providers.inline_thinking import split_thoughts
from holon.adapters.providers.json_reading import (
    as_list,
    as_object,
    bounded_arguments,
    name_at,
    optional_text,
    text_at,
)
from holon.model.answer import ModelAnswer
from holon.model.conversation import (
    AssistantBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    text_of,
    tool_uses_of,
)
from holon.model.ids import CallId
from holon.model.json_value import JsonValue
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX
from holon.model.provider_attempt import TokenUsage
from holon.model.provider_errors import (
    ContextTooLongError,
    RequestRejectedError,
    UnreadableResponseError,
)
from holon.model.turn import StopReason

_STOPS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "pause_turn": StopReason.MAX_TOKENS,  # a long round that wants to be asked to go on
}
_TOKENS_MAX: Final = 2**53


def lift(message: JsonValue, *, origin: str, silence_counts: bool = False) -> ModelAnswer:
    """Return the answer in a message; `origin` is put on thinking, for the way back."""
    told = as_object(message, "the answer")
    usage = usage_in(told.get("usage"))
    try:
        return _answer(told, origin, usage, silence_counts=silence_counts)
    except UnreadableResponseError as error:
        error.usage = usage
        raise


def _answer(
    told: dict[str, Any], origin: str, usage: TokenUsage | None, *, silence_counts: bool
) -> ModelAnswer:
    blocks = _blocks(as_list(told.get("content"), "`content` in the answer"), origin)
    stop = text_at(told, "stop_reason")
    if stop == "model_context_window_exceeded":
        raise ContextTooLongError("the conversation has filled the model's context", usage=usage)
    if stop == "refusal":
        return _declined(blocks, usage)
    reason = _STOPS.get(stop)
    if reason is None:
        raise UnreadableResponseError("`stop_reason` in the answer is one Holon does not know")
    if reason is StopReason.END_TURN and tool_uses_of(blocks):
        reason = StopReason.TOOL_USE  # some services end the turn and call a tool all the same
    return finished_answer(blocks, reason, usage, silence_counts=silence_counts)


def _declined(blocks: tuple[AssistantBlock, ...], usage: TokenUsage | None) -> ModelAnswer:
    if not text_of(blocks).strip():
        raise RequestRejectedError(
            "the model declined to answer this request",
            hint="rephrase the request, or choose another model for it",
            usage=usage,
        )
    said = [block for block in blocks if not isinstance(block, ToolUseBlock)]
    return finished_answer(said, StopReason.END_TURN, usage)


def _blocks(content: Sequence[JsonValue], origin: str) -> tuple[AssistantBlock, ...]:
    if len(content) > PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
        raise UnreadableResponseError(
            f"the answer has more than {PROVIDER_OUTPUT_ITEMS_COUNT_MAX} content blocks"
        )
    read = list[tuple[dict[str, Any], AssistantBlock | None]]()
    for where, item in ((f"content block {n}", item) for n, item in enumerate(content)):
        value = as_object(item, where)
        read.append((value, _block(value, where, origin)))
    # The wire takes a hosted call and its result only together.
    incomplete = {_hosted_call_id(value) for value, block in read if block is None} - {None}
    blocks = list[AssistantBlock]()
    for value, block in read:
        if block is None or _hosted_call_id(value) in incomplete:
            continue
        if isinstance(block, TextBlock):
            thoughts, words = split_thoughts(block.text)
            # Unsigned, and so of no origin: this wire takes no thought back that it did not seal.
            blocks += [ThinkingBlock(text=thoughts)] if thoughts else []
            blocks.append(TextBlock(text=words))
        else:
            blocks.append(block)
    return tuple(blocks)


def _hosted_call_id(value: dict[str, Any]) -> str | None:
    """The id that a call of the provider's own and its result have in common."""
    if value.get("type") == "tool_use":
        return None
    call_id = value.get("tool_use_id") or value.get("id")
    return call_id if isinstance(call_id, str) else None


def _block(value: dict[str, Any], where: str, origin: str) -> AssistantBlock | None:
    match text_at(value, "type", where):
        case "text":
            return TextBlock(text=text_at(value, "text", where))
        case "thinking":
            return ThinkingBlock(
                text=text_at(value, "thinking", where),
                signature=optional_text(value, "signature", where),
                origin=origin,
            )
        case "redacted_thinking":
            sealed = text_at(value, "data", where)
            return ThinkingBlock(text="", signature=sealed, redacted=True, origin=origin)
        case "tool_use":
            return _tool_use(value, where)
        case kind if kind == "server_tool_use" or kind.endswith("_tool_result"):
            return opaque_block(value, origin)
        case _:
            raise UnreadableResponseError(f"{where} is of a kind Holon did not ask for")


def _tool_use(value: dict[str, Any], where: str) -> ToolUseBlock:
    if "input" not in value:
        raise UnreadableResponseError(f"{where} calls a tool without `input`")
    return ToolUseBlock(
        call_id=CallId(name_at(value, "id", where)),
        name=name_at(value, "name", where),
        input=bounded_arguments(value["input"], where),
    )


def usage_in(value: JsonValue) -> TokenUsage | None:
    """Return the usage a message reports: what was read counts whether it was cached or not."""
    if not isinstance(value, dict):
        return None
    read = _tokens(value.get("cache_read_input_tokens"))
    created = _tokens(value.get("cache_creation_input_tokens"))
    return TokenUsage(
        input_tokens=_tokens(value.get("input_tokens")) + read + created,
        output_tokens=_tokens(value.get("output_tokens")),
        cache_read_tokens=read,
        cache_creation_tokens=created,
    )


def _tokens(value: JsonValue) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= _TOKENS_MAX else 0
