"""The event feed of a streamed response, put together into the response it tells.

Owns:  which events end a response, and what the others add to it. Shared by both OpenAI wires.
Rule 1: the result is the same JSON that an answer without streaming has, so there is one lifting.
Rule 2: what the terminal event says stands; where its output is empty, the finished items told
        before it are the output, in their own order.
Rule 3: an item told twice counts once.
Rule 4: a feed that stops before its terminal event breaks the contract, however much it said.
"""

from collections.abc import Mapping
from typing import Any, Final

from holon.adapters.providers.inline_thinking import GrowingText
from holon.adapters.providers.json_reading import as_object, decode_json
from holon.adapters.providers.kept_size import KeptSize
from holon.model.answer import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.model.json_value import JsonValue
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX
from holon.model.provider_errors import UnreadableResponseError
from holon.wire.server_sent_events import SseEvent

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


class ResponseStream:
    """One response, being told."""

    def __init__(self) -> None:
        self._done: dict[str, tuple[int, dict[str, Any]]] = {}
        self._calls: dict[str, tuple[str, str]] = {}
        self._response: dict[str, Any] | None = None
        self._size = KeptSize()
        self._texts: dict[str, GrowingText] = {}  # of each message

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
            in_order = sorted(self._done.values(), key=lambda told: told[0])
            output = [item for _, item in in_order]
        self._response = {**response, "status": status, "output": output}

    def _take(self, data: dict[str, Any]) -> None:
        item = as_object(data.get("item"), "`item` of a finished item")
        index = _index_in(data)
        place = len(self._done) if index is None else index
        self._done.setdefault(_identity(item, index, fallback=place), (place, item))
        if len(self._done) > PROVIDER_OUTPUT_ITEMS_COUNT_MAX:
            raise UnreadableResponseError(
                f"the stream told more than {PROVIDER_OUTPUT_ITEMS_COUNT_MAX} items"
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
            text = self._texts[key] = GrowingText()
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
    return f"told {fallback}" if index is None else f"index {index}"


def _call_key(item_id: JsonValue, data: dict[str, Any]) -> str:
    return f"id {item_id}" if isinstance(item_id, str) else f"index {_index_in(data)}"
