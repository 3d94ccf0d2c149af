"""A Chat Completions answer in the runtime's form.

Owns:  reading the decoded JSON. Pure; a stream is assembled to the same JSON first.
Rule 1: calls are what `tool_calls` says. A call some server let slip into the text stays text.
Rule 2: calls present mean the model stopped for tools, whatever the server calls it, unless the
        answer was cut off.
Rule 3: an answer the server broke off is its failure, which may pass, and not what it had said.
Rule 4: usage that cannot be read is no usage. It never costs the answer.
"""

from typing import Any, Final

from holon.adapters.providers.finished_answer import finished_answer
from holon.adapters.providers.inline_thinking import OPENING, split_thoughts
from holon.adapters.providers.json_reading import (
    arguments_in,
    as_list,
    as_object,
    bounded_arguments,
    count_at,
    name_at,
    optional_list,
    optional_object,
    optional_text,
    text_at,
)
from holon.model.answer import ModelAnswer
from holon.model.conversation import (
    REASONING_FIELDS,
    AssistantBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from holon.model.ids import CallId
from holon.model.json_value import JsonValue
from holon.model.provider_attempt import TokenUsage
from holon.model.provider_errors import (
    ProviderOverloadedError,
    RequestRejectedError,
    UnreadableResponseError,
)
from holon.model.turn import StopReason

_CUT_OFF: Final = ("length", "max_tokens", "model_length")
_FOR_TOOLS: Final = ("tool_calls", "function_call")
_FILTERED: Final = ("content_filter", "sensitive")
# What compatible servers say when they failed in the middle: what they had said is no answer.
_BROKEN_OFF: Final = ("error", "abort", "insufficient_system_resource", "network_error")


def lift(value: JsonValue, *, thinking_origin: str, silence_counts: bool = False) -> ModelAnswer:
    """Return the answer a response holds, or raise a ProviderError."""
    whole = as_object(value, "the answer")
    usage = _usage(whole)
    choices = as_list(whole.get("choices"), "`choices`")
    if not choices:
        raise UnreadableResponseError("the answer holds no choice", usage=usage)
    choice = as_object(choices[0], "the first choice")
    message = as_object(choice.get("message"), "`message` in the first choice")
    reason = text_at(choice, "finish_reason", "the first choice")
    if reason in _FILTERED:
        raise RequestRejectedError("the provider's content filter stopped the answer", usage=usage)
    if reason in _BROKEN_OFF:
        raise ProviderOverloadedError(f"the provider broke the answer off: {reason}", usage=usage)
    calls = _calls(message)
    blocks: list[AssistantBlock] = [
        *_thinking(message, thinking_origin),
        *_words(message, thinking_origin),
        *calls,
    ]
    stop_reason = _stop_reason(reason, has_calls=bool(calls))
    return finished_answer(blocks, stop_reason, usage, silence_counts=silence_counts)


def _stop_reason(reason: str, *, has_calls: bool) -> StopReason:
    if reason in _CUT_OFF:
        return StopReason.MAX_TOKENS
    return StopReason.TOOL_USE if has_calls or reason in _FOR_TOOLS else StopReason.END_TURN


def _thinking(message: dict[str, Any], origin: str) -> list[ThinkingBlock]:
    for field in REASONING_FIELDS:
        text = optional_text(message, field, "the message")
        if text:
            return [ThinkingBlock(text=text, signature=field, origin=origin)]
    return []


def _words(message: dict[str, Any], origin: str) -> list[AssistantBlock]:
    content = message.get("content")
    if isinstance(content, list):
        text = "".join(_part(part) for part in content)
    else:
        text = optional_text(message, "content", "the message") or ""
    refusal = optional_text(message, "refusal", "the message")
    thoughts, words = split_thoughts(text)
    said: list[AssistantBlock] = [TextBlock(text=each) for each in (words, refusal) if each]
    if not thoughts:
        return said
    return [ThinkingBlock(text=thoughts, signature=OPENING, origin=origin), *said]


def _part(part: JsonValue) -> str:
    return optional_text(as_object(part, "a part of `content`"), "text", "`content`") or ""


def _calls(message: dict[str, Any]) -> list[ToolUseBlock]:
    return [
        _call(as_object(call, f"tool call {index}"), f"tool call {index}")
        for index, call in enumerate(optional_list(message, "tool_calls", "the message"))
    ]


def _call(call: dict[str, Any], where: str) -> ToolUseBlock:
    function = as_object(call.get("function"), f"`function` in {where}")
    return ToolUseBlock(
        call_id=CallId(name_at(call, "id", where)),
        name=name_at(function, "name", where),
        input=_arguments(function.get("arguments"), where),
    )


def _arguments(told: JsonValue, where: str) -> JsonValue:
    match told:
        case None:
            return {}
        case str():
            return arguments_in(told, where)
        case dict():  # some servers send the object itself
            return bounded_arguments(told, where)
        case _:
            raise UnreadableResponseError(f"`arguments` in {where} is neither text nor an object")


def _usage(whole: dict[str, Any]) -> TokenUsage | None:
    try:
        usage = optional_object(whole, "usage", "the answer")
        if usage is None:
            return None
        details = optional_object(usage, "prompt_tokens_details", "`usage`") or {}
        cached = count_at(details, "cached_tokens", "`usage`")
        return TokenUsage(
            input_tokens=count_at(usage, "prompt_tokens", "`usage`"),
            output_tokens=count_at(usage, "completion_tokens", "`usage`"),
            cache_read_tokens=cached or count_at(usage, "prompt_cache_hit_tokens", "`usage`"),
        )
    except UnreadableResponseError:
        return None
