"""A good answer of every wire, whole and streamed: where a search for bad ones begins."""

from typing import Any, Final

import msgspec

from holon.model.providers.models import TransportKind

_CHAT_CALL: Final = {
    "index": 0,
    "id": "c1",
    "type": "function",
    "function": {"name": "ExecCommand", "arguments": '{"cmd":"ls"}'},
}
_CHAT: Final = {
    "id": "x",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "hi", "tool_calls": [_CHAT_CALL]},
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1},
}
_CHAT_CHUNKS: Final = (
    {"choices": [{"index": 0, "delta": {"content": "hi", "reasoning_content": "hm"}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [_CHAT_CALL]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 5}},
)
_ITEMS: Final = (
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "ExecCommand",
        "arguments": '{"cmd":"ls"}',
        "status": "completed",
    },
)
_RESPONSE: Final = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "output": list(_ITEMS),
    "usage": {"input_tokens": 5, "output_tokens": 1},
}
_RESPONSE_EVENTS: Final = (
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "hi"},
    *(
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(_ITEMS)
    ),
    {"type": "response.completed", "response": {**_RESPONSE, "output": []}},
)
_MESSAGE: Final = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m1",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "c1", "name": "ExecCommand", "input": {"cmd": "ls"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 1},
}
_MESSAGE_EVENTS: Final = (
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "c1", "name": "ExecCommand", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"cmd":"ls"}'},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)
_SAMPLES: Final[dict[TransportKind, tuple[Any, tuple[Any, ...]]]] = {
    TransportKind.OPENAI_CHAT_COMPLETIONS: (_CHAT, _CHAT_CHUNKS),
    TransportKind.OPENAI_RESPONSES: (_RESPONSE, _RESPONSE_EVENTS),
    TransportKind.OPENAI_CODEX_RESPONSES: (_RESPONSE, _RESPONSE_EVENTS),
    TransportKind.ANTHROPIC_MESSAGES: (_MESSAGE, _MESSAGE_EVENTS),
}


def whole_answer(wire: TransportKind) -> Any:
    """A good answer as JSON."""
    return _SAMPLES[wire][0]


def streamed_events(wire: TransportKind) -> tuple[Any, ...]:
    """The same as the events of a stream."""
    return _SAMPLES[wire][1]


def stream_of(events: tuple[Any, ...] | list[Any]) -> bytes:
    """Events as bytes, with the name each of them has on the wire."""
    return b"".join(_event(event) for event in events)


def _event(event: Any) -> bytes:
    name = event.get("type") if isinstance(event, dict) else None
    named = f"event: {name}\n".encode() if isinstance(name, str) and name.isidentifier() else b""
    return named + b"data: " + msgspec.json.encode(event) + b"\n\n"
