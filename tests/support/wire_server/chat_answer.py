"""Answers on the Chat Completions wire: the whole completion, and the chunks it is streamed as.

Owns:  completions, chunks, and where usage and the finish reason go.
"""

from collections.abc import Iterator
from typing import Final

from holon.model.turns.turn import StopReason
from tests.support.wire_server.wire_answer import (
    CREATED_AT,
    DONE,
    StreamEvent,
    WireAnswer,
    pieces_of,
)
from tests.support.wire_server.wire_request import JsonObject, ParsedRequest

_FINISHES: Final = {
    StopReason.END_TURN: "stop",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.MAX_TOKENS: "length",
}


def completion_of(said: WireAnswer, heard: ParsedRequest) -> JsonObject:
    """Return a finished completion."""
    del heard
    message: JsonObject = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.thinking is not None:
        message["reasoning_content"] = said.thinking
    if said.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in said.calls
        ]
    choice: JsonObject = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _FINISHES[said.stop],
    }
    completion = {**_opening(said, "chat.completion"), "choices": [choice]}
    if said.reports_usage:
        completion["usage"] = _usage(said)
    return completion


def chunks_of(said: WireAnswer, heard: ParsedRequest) -> list[StreamEvent]:
    """Return a completion as the chunks of a stream."""
    events = [_chunk(said, delta) for delta in _deltas(said)]
    events.append(_chunk(said, {}, finish=_FINISHES[said.stop])._replace(terminal=True))
    if heard.usage_in_stream and said.reports_usage:
        opening = _opening(said, "chat.completion.chunk")
        usage = {**opening, "choices": [], "usage": _usage(said)}
        events.append(StreamEvent(None, usage, terminal=True))
    return [*events, DONE]


def failed_chunks(said: WireAnswer, heard: ParsedRequest, error: JsonObject) -> list[StreamEvent]:
    """Return a stream that begins well and breaks off with an error."""
    del heard
    begun = _chunk(said, {"role": "assistant", "content": ""})
    return [begun, StreamEvent(None, {"error": error}, terminal=True)]


def _opening(said: WireAnswer, kind: str) -> JsonObject:
    return {
        "id": said.id("chatcmpl-"),
        "object": kind,
        "created": CREATED_AT,
        "model": said.model,
        "system_fingerprint": "fp_script",
    }


def _usage(said: WireAnswer) -> JsonObject:
    return {
        "prompt_tokens": said.count.total,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.count.total + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.count.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": len(said.thinking or "") // 4},
    }


def _chunk(said: WireAnswer, delta: JsonObject, *, finish: str | None = None) -> StreamEvent:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    opening = _opening(said, "chat.completion.chunk")
    return StreamEvent(None, {**opening, "choices": [choice]})


def _deltas(said: WireAnswer) -> Iterator[JsonObject]:
    yield {"role": "assistant", "content": "" if said.text else None}
    for piece in pieces_of(said.thinking or ""):
        yield {"reasoning_content": piece}
    for piece in pieces_of(said.text):
        yield {"content": piece}
    for index, call in enumerate(said.calls):
        opened = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": call.id, "type": "function", "function": opened}
        yield {"tool_calls": [first]}
        for piece in pieces_of(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
