"""Answers on the Anthropic Messages wire: the whole message, and the events it is streamed as.

Owns:  messages, their content blocks, and the order of the events.
"""

from collections.abc import Iterator
from typing import Final

from holon.model.turns.turn import StopReason
from tests.support.wire_server.wire_answer import StreamEvent, WireAnswer, WireCall, pieces_of
from tests.support.wire_server.wire_request import JsonObject, ParsedRequest, decoded

_STOPS: Final = {
    StopReason.END_TURN: "end_turn",
    StopReason.TOOL_USE: "tool_use",
    StopReason.MAX_TOKENS: "max_tokens",
}


def message_of(said: WireAnswer, heard: ParsedRequest) -> JsonObject:
    """Return a finished message."""
    del heard
    message = {**_opening(said), "content": _content(said), "stop_reason": _STOPS[said.stop]}
    if said.reports_usage:
        message["usage"] = {**_usage(said), "output_tokens": said.output_tokens}
    else:
        del message["usage"]
    return message


def events_of(said: WireAnswer, heard: ParsedRequest) -> list[StreamEvent]:
    """Return a message as the events of a stream."""
    del heard
    return [_typed(event) for event in _events(said)]


def failed_events(said: WireAnswer, heard: ParsedRequest, error: JsonObject) -> list[StreamEvent]:
    """Return a stream that begins well and breaks off with an error."""
    del heard
    begun = StreamEvent("message_start", {"message": _opening(said)})
    failed = StreamEvent("error", {"error": error}, terminal=True)
    return [_typed(begun), _typed(failed)]


def _typed(event: StreamEvent) -> StreamEvent:
    return event._replace(data={"type": event.name, **event.data})


def _opening(said: WireAnswer) -> JsonObject:
    return {
        "id": said.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_usage(said), "output_tokens": 1},
    }


def _usage(said: WireAnswer) -> JsonObject:
    """This wire counts what was neither read from the cache nor written to it by itself."""
    return {
        "input_tokens": said.count.total - said.count.read - said.count.written,
        "cache_read_input_tokens": said.count.read,
        "cache_creation_input_tokens": said.count.written,
    }


def _content(said: WireAnswer) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    if said.thinking is not None:
        blocks.append(
            {"type": "thinking", "thinking": said.thinking, "signature": f"sealed:{said.number}"}
        )
    if said.text:
        blocks.append({"type": "text", "text": said.text, "citations": None})
    blocks.extend(_tool_use(call, decoded(call.arguments)) for call in said.calls)
    return blocks


def _tool_use(call: WireCall, written: object) -> JsonObject:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": written}


def _events(said: WireAnswer) -> Iterator[StreamEvent]:
    yield StreamEvent("message_start", {"message": _opening(said)})
    yield StreamEvent("ping", {})
    for index, block in enumerate(_content(said)):
        opened, deltas = _streamed(block, said, index)
        yield StreamEvent("content_block_start", {"index": index, "content_block": opened})
        for delta in deltas:
            yield StreamEvent("content_block_delta", {"index": index, "delta": delta})
        yield StreamEvent("content_block_stop", {"index": index})
    delta = {"stop_reason": _STOPS[said.stop], "stop_sequence": None}
    ending: JsonObject = {"delta": delta}
    if said.reports_usage:
        ending["usage"] = {**_usage(said), "output_tokens": said.output_tokens}
    yield StreamEvent("message_delta", ending, terminal=True)
    yield StreamEvent("message_stop", {}, terminal=True)


def _streamed(
    block: JsonObject, said: WireAnswer, index: int
) -> tuple[JsonObject, list[JsonObject]]:
    """A block as it is announced, and the deltas that fill it."""
    match block["type"]:
        case "text":
            pieces = pieces_of(block["text"])
            return {**block, "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
        case "thinking":
            thoughts = [
                {"type": "thinking_delta", "thinking": piece}
                for piece in pieces_of(block["thinking"])
            ]
            seal = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*thoughts, seal]
        case _:
            first = sum(1 for text in (said.thinking is not None, bool(said.text)) if text)
            written = said.calls[index - first].arguments
            pieces = ["", *pieces_of(written)]
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces]
            return {**block, "input": {}}, deltas
