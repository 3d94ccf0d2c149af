"""Chat Completions answers: assemble a stream and read the answer.

Owns:  folding chunks into the JSON of a whole answer, with progress on the way, and reading that
       JSON.
Rule 1: calls are what `tool_calls` holds. A call that a server leaked into the text stays text.
Rule 2: when calls are present the model stopped for tools, whatever `finish_reason` says, unless
        the answer was cut off.
Rule 3: an answer the server broke off is a transient server failure, and its partial text is
        dropped.
Rule 4: unreadable usage counts as absent and never fails an answer.
Rule 5: an answer is complete once a finish reason arrived. A stream that ends before is a protocol
        error, with or without `[DONE]`; one that ends after it without `[DONE]` is fine.
Rule 6: fragments of a call belong together by index. A new id under an index in use is a new call,
        because some servers number every call 0; without any index, calls are told apart by id.
"""

from typing import Any, Final

import msgspec

from holon.adapters.providers.refusals import refusal_inside_200
from holon.adapters.providers.wire_answer import (
    THINK_OPEN,
    AnswerSizeLimit,
    ThinkingSplitter,
    arguments_in,
    as_list,
    as_object,
    bounded_arguments,
    count_at,
    decode_json,
    finished_answer,
    name_at,
    optional_list,
    optional_object,
    optional_text,
    split_thoughts,
    text_at,
)
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import (
    ProviderOverloadedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.turns.conversation import (
    REASONING_FIELDS,
    AssistantBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from holon.model.turns.turn import (
    AnswerProgress,
    CallGrew,
    ModelAnswer,
    StopReason,
    TextGrew,
    ThinkingGrew,
)
from holon.model.values import CallId, JsonValue
from holon.wire.server_sent_events import SseEvent

_CUT_OFF: Final = ("length", "max_tokens", "model_length")
_FOR_TOOLS: Final = ("tool_calls", "function_call")
_FILTERED: Final = ("content_filter", "sensitive")
# What compatible servers say when they failed in the middle: what they had said is no answer.
_BROKEN_OFF: Final = ("error", "abort", "insufficient_system_resource", "network_error")


def lift(value: JsonValue, *, thinking_origin: str, allow_empty: bool = False) -> ModelAnswer:
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
    return finished_answer(blocks, stop_reason, usage, allow_empty=allow_empty)


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
    blocks: list[AssistantBlock] = [TextBlock(text=each) for each in (words, refusal) if each]
    if not thoughts:
        return blocks
    return [ThinkingBlock(text=thoughts, signature=THINK_OPEN, origin=origin), *blocks]


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


def _arguments(value: JsonValue, where: str) -> JsonValue:
    match value:
        case None:
            return {}
        case str():
            return arguments_in(value, where)
        case dict():  # some servers send the object itself
            return bounded_arguments(value, where)
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


class _PartialCall(msgspec.Struct, kw_only=True):
    call_id: str = ""
    name: str = ""
    fragments: list[str] = msgspec.field(default_factory=list)
    chars: int = 0

    def whole(self) -> JsonValue:
        function = {"name": self.name, "arguments": "".join(self.fragments)}
        return {"id": self.call_id, "type": "function", "function": function}


class ChatStream:
    """Takes events, gives progress, and in the end the whole answer as JSON."""

    def __init__(self) -> None:
        self.is_done = False  # nothing of interest comes after this
        self._texts: dict[str, list[str]] = {}
        self._content = ThinkingSplitter()
        self._calls: list[_PartialCall] = []
        self._at_index: dict[int, _PartialCall] = {}
        self._finish_reason: str | None = None
        self._usage: JsonValue = None
        self._size = AnswerSizeLimit()

    def feed(self, event: SseEvent) -> list[AnswerProgress]:
        """Take one event and return what grew."""
        if self.is_done:
            return []
        if event.data.strip() == "[DONE]":
            self.is_done = True
            return []
        chunk = as_object(decode_json(event.data, "an event of the stream"), "an event")
        error = refusal_inside_200(chunk)
        if error is not None:
            raise error
        self._usage = chunk.get("usage") or self._usage
        choices = [as_object(each, "a choice") for each in optional_list(chunk, "choices", "event")]
        first = next((each for each in choices if each.get("index", 0) == 0), None)
        return [] if first is None else self._take(first)

    def whole(self) -> JsonValue:
        """Return the answer as JSON, or raise when the stream ended before it did."""
        if self._finish_reason is None:
            raise UnreadableResponseError("the stream ended before the answer was complete")
        message: dict[str, JsonValue] = {"role": "assistant", "content": None}
        message |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        message["tool_calls"] = [call.whole() for call in self._calls]
        choice = {"index": 0, "finish_reason": self._finish_reason, "message": message}
        return {"choices": [choice], "usage": self._usage}

    def _take(self, choice: dict[str, Any]) -> list[AnswerProgress]:
        delta = optional_object(choice, "delta", "a choice") or {}
        grew = self._take_texts(delta)
        pieces = optional_list(delta, "tool_calls", "a delta")
        grew += [self._take_call(as_object(piece, "a piece of a tool call")) for piece in pieces]
        reason = optional_text(choice, "finish_reason", "a choice")
        self._finish_reason = reason or self._finish_reason
        return grew

    def _take_texts(self, delta: dict[str, Any]) -> list[AnswerProgress]:
        grew: list[AnswerProgress] = []
        for name in (*REASONING_FIELDS, "content", "refusal"):
            text = optional_text(delta, name, "a delta")
            is_thinking = name in REASONING_FIELDS
            if not text or (is_thinking and grew):
                continue  # a server that gives both names for reasoning says it twice
            self._size.grow(len(text))
            self._texts.setdefault(name, []).append(text)
            if name == "content":
                grew += self._content.feed(text)
            else:
                grew.append(ThinkingGrew(text=text) if is_thinking else TextGrew(text=text))
        return grew

    def _take_call(self, piece: dict[str, Any]) -> CallGrew:
        call_id = optional_text(piece, "id", "a tool call") or ""
        call = self._call_for(piece.get("index"), call_id)
        function = optional_object(piece, "function", "a tool call") or {}
        call.call_id = call.call_id or call_id
        call.name = call.name or optional_text(function, "name", "a tool call") or ""
        fragment = optional_text(function, "arguments", "a tool call") or ""
        call.fragments.append(fragment)
        call.chars += len(fragment)
        if call.chars > TOOL_ARGUMENTS_BYTES_MAX:
            raise UnreadableResponseError(
                f"a tool call has more than {TOOL_ARGUMENTS_BYTES_MAX} bytes of arguments"
            )
        return CallGrew(call_id=call.call_id, name=call.name, fragment=fragment)

    def _call_for(self, index: JsonValue, call_id: str) -> _PartialCall:
        if index is None:
            same = (each for each in reversed(self._calls) if call_id in ("", each.call_id))
            call = next(same, None)
        elif isinstance(index, int):
            call = self._at_index.get(index)
        else:
            raise UnreadableResponseError("`index` in a tool call is not a number")
        if call is None or (call_id and call.call_id and call.call_id != call_id):
            call = _PartialCall()
            self._calls.append(call)
        if len(self._calls) > PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            raise UnreadableResponseError(
                f"the answer has more than {PROVIDER_OUTPUT_ITEMS_COUNT_MAX} tool calls"
            )
        if isinstance(index, int):
            self._at_index[index] = call
        return call
