"""A Responses API answer as the one answer form of the runtime.

Owns:  reading a response that has ended, streamed or not, for both OpenAI wires.
Rule 1: a response that failed, or ended early for anything but its length, is an error of its own
        class; what was said until the length ran out is an answer.
Rule 2: a call that waits for a result and was not offered is refused: without the result the
        provider takes no further request. What the provider did by itself is kept as it is; other
        kinds of items that are new to us are left out.
Rule 3: usage that cannot be read is no usage. It never costs the answer.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holon.adapters.providers.finished_answer import finished_answer, opaque_block
from holon.adapters.providers.inline_thinking import split_thoughts
from holon.adapters.providers.json_reading import (
    arguments_in,
    as_list,
    as_object,
    count_at,
    name_at,
    optional_list,
    optional_object,
    text_at,
)
from holon.adapters.providers.openai_responses.items import is_hosted, is_sealed, type_first
from holon.adapters.providers.refusals import keyless_line, refusal_of
from holon.adapters.providers.reset_times import wait_of
from holon.model.answer import ModelAnswer
from holon.model.conversation import AssistantBlock, TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.errors import NotJsonError
from holon.model.ids import CallId
from holon.model.json_value import JsonValue
from holon.model.limits import (
    LABEL_CHARS_MAX,
    PROVIDER_OUTPUT_ITEMS_COUNT_MAX,
    TOOL_ARGUMENTS_BYTES_MAX,
)
from holon.model.provider_attempt import TokenUsage
from holon.model.provider_errors import (
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    RequestRejectedError,
    UnreadableResponseError,
)
from holon.model.record import Record
from holon.model.turn import StopReason

_AGAIN_IN: Final = re.compile(r"try again in (\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m)(?![a-z])")
_AGAIN_IN_SECONDS: Final = re.compile(r"try again in (\d{1,9}(?:\.\d{1,9})?) seconds?\b")


class LiftStyle(Record, frozen=True, kw_only=True):
    """What reading an answer depends on besides the answer."""

    thinking_origin: str
    freeform: Mapping[str, str] = {}
    now: datetime | None = None  # what a named reset moment counts from
    silence_counts: bool = False  # an answer without words may be the end of the turn


def lift(value: JsonValue, style: LiftStyle) -> ModelAnswer:
    """Return the answer in a decoded response, or raise the ProviderError it stands for."""
    response = as_object(value, "the response")
    usage = usage_in(response)
    is_cut = _is_cut_short(response, usage, style.now)
    try:
        blocks = _blocks_in(response, style)
    except NotJsonError as error:
        raise UnreadableResponseError(f"the response is not sound: {error}", usage=usage) from None
    has_calls = any(isinstance(block, ToolUseBlock) for block in blocks)
    stop_reason = StopReason.TOOL_USE if has_calls else StopReason.END_TURN
    ended = StopReason.MAX_TOKENS if is_cut else stop_reason
    return finished_answer(blocks, ended, usage, silence_counts=style.silence_counts)


def usage_in(response: dict[str, Any]) -> TokenUsage | None:
    """Return the tokens a response says it used."""
    try:
        told = optional_object(response, "usage", "the response")
        if told is None:
            return None
        details = optional_object(told, "input_tokens_details", "the usage") or {}
        return TokenUsage(
            input_tokens=count_at(told, "input_tokens"),
            output_tokens=count_at(told, "output_tokens"),
            cache_read_tokens=count_at(details, "cached_tokens"),
            cache_creation_tokens=count_at(details, "cache_write_tokens"),
        )
    except UnreadableResponseError:
        return None


def _is_cut_short(response: dict[str, Any], usage: TokenUsage | None, now: datetime | None) -> bool:
    """Whether the length ran out; raise for every other end that is not a good one."""
    status = response.get("status")
    if status == "failed" or response.get("error"):
        raise _failure(response.get("error"), usage, now)
    if status == "incomplete":
        reason = _reason_in(response)
        if reason == "max_output_tokens":
            return True
        raise RequestRejectedError(
            f"the provider ended the response early: {keyless_line(reason)}", usage=usage
        )
    if status not in (None, "completed"):
        told = keyless_line(status) if isinstance(status, str) else type(status).__name__
        raise UnreadableResponseError(f"the response has not ended: {told}", usage=usage)
    return False


def _reason_in(response: dict[str, Any]) -> str:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason if isinstance(reason, str) else "no reason given"


def _failure(error: JsonValue, usage: TokenUsage | None, now: datetime | None) -> ProviderError:
    if not error:
        return ProviderOverloadedError("the response failed and no reason was given", usage=usage)
    failure = refusal_of(error, now=now)
    failure.usage = usage
    if isinstance(failure, RateLimitedError) and failure.retry_after_ms is None:
        failure.retry_after_ms = _asked_wait_ms(error)
    return failure


def _asked_wait_ms(error: JsonValue) -> int | None:
    """Rate limits inside a stream name their wait only in words."""
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, str):
        return None
    words = message[:1_000].lower()
    found = _AGAIN_IN.search(words)
    if found is not None:
        return wait_of(f"{found[1]}{found[2]}", now=None)
    found = _AGAIN_IN_SECONDS.search(words)
    return None if found is None else wait_of(f"{found[1]}s", now=None)


def _blocks_in(response: dict[str, Any], style: LiftStyle) -> list[AssistantBlock]:
    output = as_list(response.get("output"), "`output` in the response")
    if len(output) > PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
        raise UnreadableResponseError(
            f"the response has more than {PROVIDER_OUTPUT_ITEMS_COUNT_MAX} items"
        )
    return [
        block for item in output for block in _blocks_of(as_object(item, "an output item"), style)
    ]


def _blocks_of(item: dict[str, Any], style: LiftStyle) -> list[AssistantBlock]:
    if item.get("type") == "message":
        return _message_blocks(item, style.thinking_origin)
    block = _block(item, style)
    return [] if block is None else [block]


def _message_blocks(item: dict[str, Any], origin: str) -> list[AssistantBlock]:
    thoughts, words = split_thoughts(_words_in(item))
    phase = item.get("phase")
    if isinstance(phase, str) and 0 < len(phase) <= LABEL_CHARS_MAX:
        said = TextBlock(text=words, phase=phase, origin=origin)
    else:
        said = TextBlock(text=words)
    return [ThinkingBlock(text=thoughts), said] if thoughts else [said]


def _block(item: dict[str, Any], style: LiftStyle) -> AssistantBlock | None:
    kind = text_at(item, "type", "an output item")
    match kind:
        case "reasoning":
            return _thinking(item, style.thinking_origin)
        case "function_call":
            arguments = arguments_in(text_at(item, "arguments", "a call"), "a call")
            return _tool_use(item, arguments)
        case "custom_tool_call":
            return _tool_use(item, _freeform_input(item, style.freeform))
        case _ if is_hosted(item):
            return opaque_block(type_first(item), style.thinking_origin)
        case _ if kind.endswith("_call"):
            told = keyless_line(kind)
            raise UnreadableResponseError(f"the model made a call nobody offered: {told}")
        case _:
            return None


def _words_in(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    words = []
    for each in as_list(content, "`content` of a message"):
        part = as_object(each, "a part of a message")
        if part.get("type") == "output_text":
            words.append(text_at(part, "text", "a part of a message"))
        elif part.get("type") == "refusal":
            words.append(text_at(part, "refusal", "a part of a message"))
    return "".join(words)


def _thinking(item: dict[str, Any], origin: str) -> ThinkingBlock:
    """Return reasoning: its words for people, the whole item for a provider that sealed it."""
    pieces = optional_list(item, "summary", "reasoning") or optional_list(
        item, "content", "reasoning"
    )
    told = (as_object(piece, "a piece of reasoning").get("text") for piece in pieces)
    # An item without a seal is never sent back, and would hold the words a second time.
    sealed = msgspec.json.encode(type_first(item)).decode() if is_sealed(item) else None
    return ThinkingBlock(
        text="\n\n".join(text for text in told if isinstance(text, str)),
        signature=sealed,
        origin=origin,
    )


def _tool_use(item: dict[str, Any], arguments: JsonValue) -> ToolUseBlock:
    return ToolUseBlock(
        call_id=CallId(name_at(item, "call_id", "a call")),
        name=name_at(item, "name", "a call"),
        input=arguments,
    )


def _freeform_input(item: dict[str, Any], freeform: Mapping[str, str]) -> JsonValue:
    text = text_at(item, "input", "a call")
    if len(text.encode()) > TOOL_ARGUMENTS_BYTES_MAX:
        raise UnreadableResponseError(
            f"a call has more than {TOOL_ARGUMENTS_BYTES_MAX} bytes of arguments"
        )
    argument = freeform.get(name_at(item, "name", "a call"))
    # A freeform call of a tool that was not offered as one: the tool layer refuses the bare text.
    return text if argument is None else {argument: text}
