"""Anthropic Messages answers: assemble an event stream and read the message.

Owns:  the assembler (events in, progress out, at the end the JSON of the whole message) and the
       reading of a whole message: blocks, stop reason, usage.
Rule 1: a stream is assembled to the JSON of an unstreamed message, which is then read by the same
        code.
Rule 2: a message starts once; its blocks start in order, each once, and grow only while open; it
        stops once, with no block open. Anything else is refused.
Rule 3: unknown event and delta types are ignored, as the protocol requires.
Rule 4: an error event becomes that error, with the usage counted so far.
Rule 5: a block type that was not requested is refused: it could not be sent back unchanged.
Rule 6: a refusal is the model's answer when it has text; its calls are not executed.
Rule 7: server-side tools are kept as a pair of call and result, or left out as a pair.
Rule 8: usage counts are running totals, the last one counts. Missing or malformed usage counts as
        zero and never fails an answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holon.adapters.providers.refusals import refusal_of
from holon.adapters.providers.wire_answer import (
    AnswerSizeLimit,
    arguments_in,
    as_list,
    as_object,
    bounded_arguments,
    decode_json,
    finished_answer,
    name_at,
    opaque_block,
    optional_text,
    split_thoughts,
    text_at,
)
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import (
    ContextTooLongError,
    ProviderError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.turns.conversation import (
    AssistantBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    text_of,
    tool_uses_of,
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

_STOPS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "pause_turn": StopReason.MAX_TOKENS,  # a long round that wants to be asked to go on
}
_TOKENS_MAX: Final = 2**53
# Ours to answer, and the provider's own.
_CALLS: Final = ("tool_use", "server_tool_use")

# Which piece may be added to which blocks, and the field of both that it goes to.
_PIECES: Final = {
    "text_delta": (("text",), "text"),
    "thinking_delta": (("thinking",), "thinking"),
    "signature_delta": (("thinking",), "signature"),
    "input_json_delta": (_CALLS, "partial_json"),
}


def lift(message: JsonValue, *, origin: str, allow_empty: bool = False) -> ModelAnswer:
    """Return the answer in a message; `origin` is put on thinking, for the way back."""
    body = as_object(message, "the answer")
    usage = usage_in(body.get("usage"))
    try:
        return _answer(body, origin, usage, allow_empty=allow_empty)
    except UnreadableResponseError as error:
        error.usage = usage
        raise


def _answer(
    body: dict[str, Any], origin: str, usage: TokenUsage | None, *, allow_empty: bool
) -> ModelAnswer:
    blocks = _blocks(as_list(body.get("content"), "`content` in the answer"), origin)
    stop = text_at(body, "stop_reason")
    if stop == "model_context_window_exceeded":
        raise ContextTooLongError("the conversation has filled the model's context", usage=usage)
    if stop == "refusal":
        return _declined(blocks, usage)
    reason = _STOPS.get(stop)
    if reason is None:
        raise UnreadableResponseError("`stop_reason` in the answer is one Holon does not know")
    if reason is StopReason.END_TURN and tool_uses_of(blocks):
        reason = StopReason.TOOL_USE  # some services report end_turn together with a tool call
    return finished_answer(blocks, reason, usage, allow_empty=allow_empty)


def _declined(blocks: tuple[AssistantBlock, ...], usage: TokenUsage | None) -> ModelAnswer:
    if not text_of(blocks).strip():
        raise RequestRejectedError(
            "the model declined to answer this request",
            hint="rephrase the request, or choose another model for it",
            usage=usage,
        )
    text_blocks = [block for block in blocks if not isinstance(block, ToolUseBlock)]
    return finished_answer(text_blocks, StopReason.END_TURN, usage)


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


class _OpenBlock:
    """A block whose end has not come."""

    def __init__(self, begun: dict[str, Any], where: str, size: AnswerSizeLimit) -> None:
        self.kind = text_at(begun, "type", where)
        self.where = where
        self._begun = begun
        self._size = size
        self._pieces: dict[str, list[str]] = {}
        self._arguments_chars = 0
        if self.kind == "tool_use":
            self.call_id, self.name = name_at(begun, "id", where), name_at(begun, "name", where)

    def grow(self, delta: dict[str, Any]) -> AnswerProgress | None:
        """Add a piece, and return what a watcher sees of it."""
        fits = _PIECES.get(text_at(delta, "type", self.where))
        if fits is None:
            return None
        kinds, field = fits
        if self.kind not in kinds:
            raise UnreadableResponseError(f"a piece for {self.where} is of another kind than it")
        piece = text_at(delta, field, self.where)
        self._size.grow(len(piece))
        self._pieces.setdefault(field, []).append(piece)
        return self._seen(field, piece)

    def _seen(self, field: str, piece: str) -> AnswerProgress | None:
        if not piece or field == "signature":
            return None
        if field == "text":
            return TextGrew(text=piece)
        if field == "thinking":
            return ThinkingGrew(text=piece)
        self._arguments_chars += len(piece)
        if self._arguments_chars > TOOL_ARGUMENTS_BYTES_MAX:
            raise UnreadableResponseError(f"{self.where} has too many bytes of arguments")
        if self.kind != "tool_use":
            return None  # the provider's own call: there is no tool of ours to show
        return CallGrew(call_id=self.call_id, name=self.name, fragment=piece)

    def whole(self) -> JsonValue:
        """Return the block as an answer that is not streamed would hold it."""
        block = dict(self._begun)
        for field, pieces in self._pieces.items():
            added = "".join(pieces)
            if field != "partial_json":
                begun = block.get(field)
                block[field] = (begun if isinstance(begun, str) else "") + added
            elif added:
                block["input"] = arguments_in(added, self.where)
        if self.kind in _CALLS:
            block.setdefault("input", {})
        return block


class MessageAssembler:
    """Takes the events of one stream."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: list[JsonValue] = []
        self._open: dict[int, _OpenBlock] = {}
        self._stopped = False
        self._size = AnswerSizeLimit()

    @property
    def is_complete(self) -> bool:
        """Whether the message has ended."""
        return self._stopped

    def message(self) -> JsonValue:
        """Return the message, or raise when the stream ended before it did."""
        if self._message is None or not self._stopped:
            raise self._with_usage(
                UnreadableResponseError("the stream ended before the message did")
            )
        return {**self._message, "content": self._blocks, "usage": self._usage or None}

    def feed(self, event: SseEvent) -> AnswerProgress | None:
        """Take one event, and return what a watcher sees of it."""
        try:
            return self._take(as_object(decode_json(event.data, "an event"), "an event"))
        except UnreadableResponseError as error:
            raise self._with_usage(error) from None

    def _take(self, event: dict[str, Any]) -> AnswerProgress | None:
        if event.get("error") or event.get("type") == "error":
            raise self._with_usage(refusal_of(event.get("error")))
        match text_at(event, "type", "an event"):
            case "message_start":
                self._start(event)
            case "content_block_start":
                return self._start_block(event)
            case "content_block_delta":
                return self._grow_block(event)
            case "content_block_stop":
                self._stop_block(event)
            case "message_delta":
                self._change(event)
            case "message_stop":
                self._stop()
            case _:
                pass  # `ping`, and event types added in the future
        return None

    def _start(self, event: dict[str, Any]) -> None:
        if self._message is not None:
            raise UnreadableResponseError("the stream starts a second message")
        message = as_object(event.get("message"), "`message` in message_start")
        self._message = {**message, "stop_reason": None}
        self._learn_usage(message.get("usage"))

    def _start_block(self, event: dict[str, Any]) -> AnswerProgress | None:
        self._require_running("content_block_start")
        index = _index(event)
        if index != len(self._blocks):
            raise UnreadableResponseError("the stream starts its blocks out of order or twice")
        if index >= PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            raise UnreadableResponseError(f"the stream has more than {index} content blocks")
        where = f"content block {index}"
        start = as_object(event.get("content_block"), where)
        self._open[index] = _OpenBlock(start, where, self._size)
        self._blocks.append(None)
        text = start.get("text")
        return TextGrew(text=text) if isinstance(text, str) and text else None

    def _grow_block(self, event: dict[str, Any]) -> AnswerProgress | None:
        block = self._open_block(event, "content_block_delta")
        return block.grow(as_object(event.get("delta"), f"`delta` for {block.where}"))

    def _stop_block(self, event: dict[str, Any]) -> None:
        self._blocks[_index(event)] = self._open_block(event, "content_block_stop").whole()
        del self._open[_index(event)]

    def _change(self, event: dict[str, Any]) -> None:
        message = self._require_running("message_delta")
        delta = as_object(event.get("delta"), "`delta` in message_delta")
        message["stop_reason"] = delta.get("stop_reason") or message["stop_reason"]
        self._learn_usage(event.get("usage"))

    def _stop(self) -> None:
        self._require_running("message_stop")
        if self._open:
            raise UnreadableResponseError("the stream ends its message inside a content block")
        self._stopped = True

    def _open_block(self, event: dict[str, Any], kind: str) -> _OpenBlock:
        self._require_running(kind)
        block = self._open.get(_index(event))
        if block is None:
            raise UnreadableResponseError(f"{kind} names a block that is not open")
        return block

    def _require_running(self, kind: str) -> dict[str, Any]:
        if self._message is None or self._stopped:
            raise UnreadableResponseError(f"{kind} comes outside of a message")
        return self._message

    def _learn_usage(self, usage: JsonValue) -> None:
        counts = usage if isinstance(usage, dict) else {}
        self._usage.update({key: value for key, value in counts.items() if value is not None})

    def _with_usage(self, error: ProviderError) -> ProviderError:
        error.usage = usage_in(self._usage) if self._usage else None
        return error


def _index(event: dict[str, Any]) -> int:
    index = event.get("index")
    if isinstance(index, bool) or not isinstance(index, int):
        raise UnreadableResponseError("an event names no block by its index")
    return index
