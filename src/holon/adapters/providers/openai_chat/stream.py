"""A streamed Chat Completions answer, put together.

Owns:  folding chunks into the JSON a whole answer would have been, with progress on the way.
Rule 1: the answer is complete once a finish reason came. A stream that ends before is a protocol
        error, `[DONE]` or not; one that ends after it without `[DONE]` is fine.
Rule 2: pieces of a call belong together by their index. A new id under an index already in use is
        a new call, because some servers number every call 0; a server that gives no index at all
        tells calls apart by id.
"""

from typing import Any

import msgspec

from holon.adapters.providers.inline_thinking import GrowingText
from holon.adapters.providers.json_reading import (
    as_object,
    decode_json,
    optional_list,
    optional_object,
    optional_text,
)
from holon.adapters.providers.kept_size import KeptSize
from holon.adapters.providers.refusals import refusal_inside_200
from holon.model.answer import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.model.conversation import REASONING_FIELDS
from holon.model.json_value import JsonValue
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.provider_errors import UnreadableResponseError
from holon.wire.server_sent_events import SseEvent


class _GrowingCall(msgspec.Struct, kw_only=True):
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
        self._content = GrowingText()
        self._calls: list[_GrowingCall] = []
        self._at_index: dict[int, _GrowingCall] = {}
        self._finish_reason: str | None = None
        self._usage: JsonValue = None
        self._size = KeptSize()

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

    def _call_for(self, index: JsonValue, call_id: str) -> _GrowingCall:
        if index is None:
            same = (call for call in reversed(self._calls) if call_id in ("", call.call_id))
            found = next(same, None)
        elif isinstance(index, int):
            found = self._at_index.get(index)
        else:
            raise UnreadableResponseError("`index` in a tool call is not a number")
        if found is None or (call_id and found.call_id and found.call_id != call_id):
            found = _GrowingCall()
            self._calls.append(found)
        if len(self._calls) > PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            raise UnreadableResponseError(
                f"the answer has more than {PROVIDER_OUTPUT_ITEMS_COUNT_MAX} tool calls"
            )
        if isinstance(index, int):
            self._at_index[index] = found
        return found
