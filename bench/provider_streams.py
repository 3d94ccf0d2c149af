"""What a model of each wire streams in a bench: a few words whose beginning can be told apart.

Owns:  the streams, cut behind the event that holds the first words.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from bench.provider_answers import event
from holon.model.providers.models import TransportKind

# The bytes up to the first words, which are given, and the bytes behind them.
Stream: TypeAlias = Callable[[str], tuple[bytes, bytes]]


def _chat(words: str) -> tuple[bytes, bytes]:
    said = {"index": 0, "delta": {"role": "assistant", "content": words}, "finish_reason": None}
    over = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return _unnamed(said), _unnamed(over) + b"data: [DONE]\n\n"


def _unnamed(choice: Mapping[str, Any]) -> bytes:
    chunk = {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def _responses(words: str) -> tuple[bytes, bytes]:
    begun = {"type": "response.created", "response": {"id": "resp_1"}}
    grown = {"type": "response.output_text.delta", "item_id": "msg_1", "delta": words}
    part = {"type": "output_text", "text": words, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}
    over = {"type": "response.completed", "response": whole}
    return event(begun) + event(grown), event(done) + event(over)


def _messages(words: str) -> tuple[bytes, bytes]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    begun = {"type": "message_start", "message": {**message, "usage": usage}}
    block = {"type": "content_block_start", "index": 0}
    opened = {**block, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "text_delta", "text": words}
    grown = {"type": "content_block_delta", "index": 0, "delta": delta}
    over: tuple[Mapping[str, Any], ...] = (
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    )
    return event(begun) + event(opened) + event(grown), b"".join(map(event, over))


STREAMS: Final[Mapping[TransportKind, Stream]] = {
    TransportKind.OPENAI_RESPONSES: _responses,
    TransportKind.OPENAI_CODEX_RESPONSES: _responses,
    TransportKind.OPENAI_CHAT_COMPLETIONS: _chat,
    TransportKind.ANTHROPIC_MESSAGES: _messages,
}
