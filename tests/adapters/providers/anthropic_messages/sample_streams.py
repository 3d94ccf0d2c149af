"""Answers, and the streams that stand for them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from holon.wire.server_sent_events import SseEvent

USAGE: Final = {
    "input_tokens": 10,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 30,
    "output_tokens": 7,
}
TEXT: Final = {"type": "text", "text": "Hello, wörld."}
THINKING: Final = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
REDACTED: Final = {"type": "redacted_thinking", "data": "c2VhbGVk"}
CALL: Final = {"type": "tool_use", "id": "toolu_1", "name": "Sleep", "input": {"reason": "r"}}
SEARCH: Final = {
    "type": "server_tool_use",
    "id": "srv_1",
    "name": "web_search",
    "input": {"query": "holons"},
}
FOUND: Final = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def answer(*content: Any, stop: str | None = "end_turn", usage: Any = USAGE) -> dict[str, Any]:
    """A whole answer."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """One event's data."""
    return {"type": kind, **fields}


def sse(data: Any, kind: str = "") -> SseEvent:
    """An event as the parser hands it out."""
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    named = kind or (data["type"] if isinstance(data, dict) and "type" in data else "message")
    return SseEvent(event=named, data=text)


def wire_bytes(events: list[dict[str, Any]]) -> bytes:
    """The events as a server writes them."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (one["type"].encode(), msgspec.json.encode(one))
        for one in events
    )


def streamed(whole: dict[str, Any], *, piece_chars: int = 4) -> list[dict[str, Any]]:
    """The events that stand for an answer."""
    usage = whole["usage"]
    begun = {**whole, "content": [], "stop_reason": None}
    if usage is not None:
        begun["usage"] = {**usage, "output_tokens": 1}
    events = [event("message_start", message=begun), event("ping")]
    for index, block in enumerate(whole["content"]):
        events.extend(_block_events(index, block, piece_chars))
    changed = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    told = {} if usage is None else {"output_tokens": usage["output_tokens"]}
    events.append(event("message_delta", delta=changed, usage=told))
    events.append(event("message_stop"))
    return events


def _block_events(index: int, block: dict[str, Any], piece_chars: int) -> Iterator[dict[str, Any]]:
    fields: dict[str, Any] = {}
    deltas: list[tuple[str, str, str]] = []
    match block["type"]:
        case "text":
            fields, deltas = {"text": ""}, [("text_delta", "text", block["text"])]
        case "thinking":
            fields = {"thinking": "", "signature": ""}
            deltas = [
                ("thinking_delta", "thinking", block["thinking"]),
                ("signature_delta", "signature", block["signature"]),
            ]
        case "tool_use" | "server_tool_use":
            written = msgspec.json.encode(block["input"]).decode()
            fields, deltas = {"input": {}}, [("input_json_delta", "partial_json", written)]
        case _:
            pass  # sealed thinking comes in one piece
    yield event("content_block_start", index=index, content_block={**block, **fields})
    for kind, field, text in deltas:
        for start in range(0, len(text), piece_chars):
            piece = {"type": kind, field: text[start : start + piece_chars]}
            yield event("content_block_delta", index=index, delta=piece)
    yield event("content_block_stop", index=index)
