"""Responses API answers, for both OpenAI transports: assemble a stream, read the response.

Owns:  which events end a response and what the others add to it; choosing between stream and JSON;
       reading a finished response.
Rule 1: a stream is assembled to the JSON of an unstreamed response, which is then read by the same
        code. The terminal event counts; where its output is empty, the finished items sent before
        it are the output, in their order.
Rule 2: an item sent twice counts once.
Rule 3: a stream that stops before its terminal event is a protocol error, however much it carried.
Rule 4: a stream is recognized as one even when its content type was lost on the way.
Rule 5: a response that failed, or ended early for anything but its length, is an error of its own
        class; text up to the length limit is an answer.
Rule 6: a call that needs a result and was not offered is refused: without the result the provider
        accepts no further request. Server-side tool items are kept verbatim; other unknown items
        are left out.
Rule 7: unreadable usage counts as absent and never fails an answer.
"""

import re
from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

import msgspec

from holon.adapters.providers.http.exchange import HttpReply
from holon.adapters.providers.http.reply import events_in, events_of
from holon.adapters.providers.openai_responses.request import (
    LoweredRequest,
    is_hosted,
    is_sealed,
    type_first,
)
from holon.adapters.providers.refusals import not_json, redacted_line, refusal_of
from holon.adapters.providers.reset_times import wait_of
from holon.adapters.providers.wire_answer import (
    AnswerSizeLimit,
    ThinkingSplitter,
    arguments_in,
    as_list,
    as_object,
    count_at,
    decode_json,
    finished_answer,
    name_at,
    opaque_block,
    optional_list,
    optional_object,
    split_thoughts,
    text_at,
)
from holon.model.errors import NotJsonError
from holon.model.limits import (
    LABEL_CHARS_MAX,
    PROVIDER_OUTPUT_ITEMS_COUNT_MAX,
    TOOL_ARGUMENTS_BYTES_MAX,
)
from holon.model.providers.attempts import (
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.record import Record
from holon.model.turns.conversation import AssistantBlock, TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.turns.turn import (
    AnswerProgress,
    CallGrew,
    ModelAnswer,
    StopReason,
    TextGrew,
    ThinkingGrew,
)
from holon.model.values import CallId, JsonValue
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress
from holon.wire.server_sent_events import SseEvent, SseParser

_AGAIN_IN: Final = re.compile(r"try again in (\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m)(?![a-z])")
_AGAIN_IN_SECONDS: Final = re.compile(r"try again in (\d{1,9}(?:\.\d{1,9})?) seconds?\b")
_STATUS_OF: Final[Mapping[str, str]] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
_WORDS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHTS: Final = frozenset(
    {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)
_ARGUMENTS: Final = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
)
_DONE: Final = "[DONE]"
_FEED_HEADS: Final = (b"event:", b"data:", b":")


class LiftStyle(Record, frozen=True, kw_only=True):
    """What reading an answer depends on besides the answer."""

    thinking_origin: str
    freeform: Mapping[str, str] = {}
    now: datetime | None = None  # what a named reset moment counts from
    allow_empty: bool = False  # an answer without words may be the end of the turn


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
    return finished_answer(blocks, ended, usage, allow_empty=style.allow_empty)


def usage_in(response: dict[str, Any]) -> TokenUsage | None:
    """Return the tokens a response says it used."""
    try:
        usage = optional_object(response, "usage", "the response")
        if usage is None:
            return None
        details = optional_object(usage, "input_tokens_details", "the usage") or {}
        return TokenUsage(
            input_tokens=count_at(usage, "input_tokens"),
            output_tokens=count_at(usage, "output_tokens"),
            cache_read_tokens=count_at(details, "cached_tokens"),
            cache_creation_tokens=count_at(details, "cache_write_tokens"),
        )
    except UnreadableResponseError:
        return None


def _is_cut_short(response: dict[str, Any], usage: TokenUsage | None, now: datetime | None) -> bool:
    """Whether the output limit was reached; raise for every other unsuccessful end."""
    status = response.get("status")
    if status == "failed" or response.get("error"):
        raise _failure(response.get("error"), usage, now)
    if status == "incomplete":
        reason = _reason_in(response)
        if reason == "max_output_tokens":
            return True
        raise RequestRejectedError(
            f"the provider ended the response early: {redacted_line(reason)}", usage=usage
        )
    if status not in (None, "completed"):
        shown = redacted_line(status) if isinstance(status, str) else type(status).__name__
        raise UnreadableResponseError(f"the response has not ended: {shown}", usage=usage)
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
        failure.retry_after_ms = _requested_wait_ms(error)
    return failure


def _requested_wait_ms(error: JsonValue) -> int | None:
    """Rate limits inside a stream state their wait only in the message text."""
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, str):
        return None
    words = message[:1_000].lower()
    match = _AGAIN_IN.search(words)
    if match is not None:
        return wait_of(f"{match[1]}{match[2]}", now=None)
    match = _AGAIN_IN_SECONDS.search(words)
    return None if match is None else wait_of(f"{match[1]}s", now=None)


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
        text_block = TextBlock(text=words, phase=phase, origin=origin)
    else:
        text_block = TextBlock(text=words)
    return [ThinkingBlock(text=thoughts), text_block] if thoughts else [text_block]


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
            shown = redacted_line(kind)
            raise UnreadableResponseError(f"the model called a tool that was not offered: {shown}")
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
    texts = (as_object(piece, "a piece of reasoning").get("text") for piece in pieces)
    # An item without encrypted content is never sent back, and would store the text twice.
    sealed = msgspec.json.encode(type_first(item)).decode() if is_sealed(item) else None
    return ThinkingBlock(
        text="\n\n".join(text for text in texts if isinstance(text, str)),
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


class ResponseStream:
    """The assembler of one streamed response."""

    def __init__(self) -> None:
        self._done: dict[str, tuple[int, dict[str, Any]]] = {}
        self._calls: dict[str, tuple[str, str]] = {}
        self._response: dict[str, Any] | None = None
        self._size = AnswerSizeLimit()
        self._texts: dict[str, ThinkingSplitter] = {}  # of each message

    @property
    def is_finished(self) -> bool:
        """Whether the terminal event has come."""
        return self._response is not None

    def feed(self, event: SseEvent) -> list[AnswerProgress]:
        """Take one event in; return what it lets a watcher see."""
        if self._response is not None or not event.data:
            return []
        if event.data.strip() == _DONE:
            raise UnreadableResponseError("the stream said [DONE] before its terminal event")
        data = as_object(decode_json(event.data, "a stream event"), "a stream event")
        kind = data.get("type")
        if not isinstance(kind, str):
            kind = event.event or ""
        if kind in _STATUS_OF:
            self._end(as_object(data.get("response"), f"`response` of {kind}"), _STATUS_OF[kind])
        elif kind == "error":
            self._response = {"status": "failed", "error": data.get("error") or data}
        elif kind == "response.output_item.done":
            self._size.grow(len(event.data))
            self._take(data)
        else:
            return self._progress(kind, data)
        return []

    def finish(self) -> JsonValue:
        """Return the response; call it when it is finished or when the feed has run dry."""
        if self._response is None:
            raise UnreadableResponseError("the stream ended before its terminal event")
        return self._response

    def _end(self, response: dict[str, Any], status: str) -> None:
        output = response.get("output")
        if not output:
            in_order = sorted(self._done.values(), key=lambda entry: entry[0])
            output = [item for _, item in in_order]
        self._response = {**response, "status": status, "output": output}

    def _take(self, data: dict[str, Any]) -> None:
        item = as_object(data.get("item"), "`item` of a finished item")
        index = _index_in(data)
        place = len(self._done) if index is None else index
        self._done.setdefault(_identity(item, index, fallback=place), (place, item))
        if len(self._done) > PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            raise UnreadableResponseError(
                f"the stream has more than {PROVIDER_OUTPUT_ITEMS_COUNT_MAX} items"
            )

    def _progress(self, kind: str, data: dict[str, Any]) -> list[AnswerProgress]:
        """A preview: an event that cannot be read shows nothing and costs nothing."""
        if kind == "response.output_item.added":
            self._note_call(data)
            return []
        delta = data.get("delta")
        if not isinstance(delta, str) or not delta:
            return []
        if kind in _WORDS:
            return self._grown(data, delta)
        if kind in _THOUGHTS:
            return [ThinkingGrew(text=delta)]
        call = self._calls.get(_call_key(data.get("item_id"), data)) if kind in _ARGUMENTS else None
        return [] if call is None else [CallGrew(call_id=call[0], name=call[1], fragment=delta)]

    def _grown(self, data: dict[str, Any], delta: str) -> list[AnswerProgress]:
        """Add to a message; each may begin with reasoning of its own."""
        index = _index_in(data)  # before the id, which some gateways make up anew for each event
        key = f"{data.get('item_id')}" if index is None else f"index {index}"
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) >= PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
                return [TextGrew(text=delta)]
            text = self._texts[key] = ThinkingSplitter()
        return text.feed(delta)

    def _note_call(self, data: dict[str, Any]) -> None:
        item = data.get("item")
        if not isinstance(item, dict) or len(self._calls) >= PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            return
        call_id, name = item.get("call_id"), item.get("name")
        if isinstance(call_id, str) and isinstance(name, str):
            self._calls[_call_key(item.get("id"), data)] = (call_id, name)


def _index_in(data: dict[str, Any]) -> int | None:
    index = data.get("output_index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _identity(item: dict[str, Any], index: int | None, *, fallback: int) -> str:
    item_id = item.get("id")
    if isinstance(item_id, str) and item_id:
        return f"id {item_id}"
    return f"position {fallback}" if index is None else f"index {index}"


def _call_key(item_id: JsonValue, data: dict[str, Any]) -> str:
    return f"id {item_id}" if isinstance(item_id, str) else f"index {_index_in(data)}"


async def response_in(reply: HttpReply, on_progress: OnProgress) -> JsonValue:
    """Return the ended response of a reply; progress is reported meanwhile."""
    if reply.is_event_stream:
        return await _told_live(reply, on_progress)
    body = await reply.read()
    if body.lstrip().startswith(_FEED_HEADS):
        return _told_at_once(body, on_progress)
    try:
        return decode_json(body, "the response")
    except UnreadableResponseError:
        raise not_json(body, reply.diagnostics()) from None


def lift_style(lowered: LoweredRequest, clock: Clock | None) -> LiftStyle:
    """Return how the answer to a request is read; the clock is for resets given as a moment."""
    return LiftStyle(
        thinking_origin=lowered.style.thinking_origin,
        freeform=lowered.style.freeform,
        now=None if clock is None else clock.now(),
        allow_empty=lowered.allow_empty,
    )


async def _told_live(reply: HttpReply, on_progress: OnProgress) -> JsonValue:
    stream = ResponseStream()
    async with aclosing(events_of(reply)) as events:
        async for event in events:
            for progress in stream.feed(event):
                on_progress(progress)
            if stream.is_finished:
                break
    return stream.finish()


def _told_at_once(body: bytes, on_progress: OnProgress) -> JsonValue:
    stream = ResponseStream()
    for event in events_in(body, SseParser()):
        for progress in stream.feed(event):
            on_progress(progress)
    return stream.finish()
