"""Anthropic's event stream, put together to the message it stands for.

Owns:  the assembly: events in, progress out, and at the end the JSON that `lift` reads.
Rule 1: a message starts once; its blocks start in order, each once, and grow only while open; it
        stops once, with no block left open. Anything else is refused, never guessed at.
Rule 2: kinds of events and pieces we do not know are passed over, as the wire asks its readers to.
Rule 3: usage counts are running totals: the last one told holds. What cannot be read is none.
Rule 4: an error event is that error, with what had been used until then.
"""

from typing import Any, Final

from holon.adapters.providers.anthropic_messages.lift import usage_in
from holon.adapters.providers.json_reading import (
    arguments_in,
    as_object,
    decode_json,
    name_at,
    text_at,
)
from holon.adapters.providers.kept_size import KeptSize
from holon.adapters.providers.refusals import refusal_of
from holon.model.answer import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.model.json_value import JsonValue
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.provider_errors import ProviderError, UnreadableResponseError
from holon.wire.server_sent_events import SseEvent

# Ours to answer, and the provider's own.
_CALLS: Final = ("tool_use", "server_tool_use")
# Which piece may be added to which blocks, and the field of both that it goes to.
_PIECES: Final = {
    "text_delta": (("text",), "text"),
    "thinking_delta": (("thinking",), "thinking"),
    "signature_delta": (("thinking",), "signature"),
    "input_json_delta": (_CALLS, "partial_json"),
}


class _OpenBlock:
    """A block whose end has not come."""

    def __init__(self, begun: dict[str, Any], where: str, size: KeptSize) -> None:
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
        self._size = KeptSize()

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

    def _take(self, told: dict[str, Any]) -> AnswerProgress | None:
        if told.get("error") or told.get("type") == "error":
            raise self._with_usage(refusal_of(told.get("error")))
        match text_at(told, "type", "an event"):
            case "message_start":
                self._start(told)
            case "content_block_start":
                return self._start_block(told)
            case "content_block_delta":
                return self._grow_block(told)
            case "content_block_stop":
                self._stop_block(told)
            case "message_delta":
                self._change(told)
            case "message_stop":
                self._stop()
            case _:
                pass  # `ping`, and what may be added to the wire one day
        return None

    def _start(self, told: dict[str, Any]) -> None:
        if self._message is not None:
            raise UnreadableResponseError("the stream starts a second message")
        message = as_object(told.get("message"), "`message` in message_start")
        self._message = {**message, "stop_reason": None}
        self._learn_usage(message.get("usage"))

    def _start_block(self, told: dict[str, Any]) -> AnswerProgress | None:
        self._require_running("content_block_start")
        index = _index(told)
        if index != len(self._blocks):
            raise UnreadableResponseError("the stream starts its blocks out of order or twice")
        if index >= PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            raise UnreadableResponseError(f"the stream has more than {index} content blocks")
        where = f"content block {index}"
        begun = as_object(told.get("content_block"), where)
        self._open[index] = _OpenBlock(begun, where, self._size)
        self._blocks.append(None)
        text = begun.get("text")
        return TextGrew(text=text) if isinstance(text, str) and text else None

    def _grow_block(self, told: dict[str, Any]) -> AnswerProgress | None:
        block = self._open_block(told, "content_block_delta")
        return block.grow(as_object(told.get("delta"), f"`delta` for {block.where}"))

    def _stop_block(self, told: dict[str, Any]) -> None:
        self._blocks[_index(told)] = self._open_block(told, "content_block_stop").whole()
        del self._open[_index(told)]

    def _change(self, told: dict[str, Any]) -> None:
        message = self._require_running("message_delta")
        delta = as_object(told.get("delta"), "`delta` in message_delta")
        message["stop_reason"] = delta.get("stop_reason") or message["stop_reason"]
        self._learn_usage(told.get("usage"))

    def _stop(self) -> None:
        self._require_running("message_stop")
        if self._open:
            raise UnreadableResponseError("the stream ends its message inside a content block")
        self._stopped = True

    def _open_block(self, told: dict[str, Any], kind: str) -> _OpenBlock:
        self._require_running(kind)
        block = self._open.get(_index(told))
        if block is None:
            raise UnreadableResponseError(f"{kind} names a block that is not open")
        return block

    def _require_running(self, kind: str) -> dict[str, Any]:
        if self._message is None or self._stopped:
            raise UnreadableResponseError(f"{kind} comes outside of a message")
        return self._message

    def _learn_usage(self, usage: JsonValue) -> None:
        told = usage if isinstance(usage, dict) else {}
        self._usage.update({key: value for key, value in told.items() if value is not None})

    def _with_usage(self, error: ProviderError) -> ProviderError:
        error.usage = usage_in(self._usage) if self._usage else None
        return error


def _index(told: dict[str, Any]) -> int:
    index = told.get("index")
    if isinstance(index, bool) or not isinstance(index, int):
        raise UnreadableResponseError("an event names no block by its index")
    return index
