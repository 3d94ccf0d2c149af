"""What a model of each wire answers in a bench: some words and one call.

Owns:  the wires that are measured, and their answers as the bytes of a body.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holon.adapters.providers.wire_request import ContextEditing
from holon.model.providers.models import TransportKind

_WORDS: Final = "I will look at the next folder and see what is in it."
_TOOL: Final = "ExecCommand"
_ARGUMENTS: Final[Mapping[str, Any]] = {"cmd": "ls -la src/holon/adapters", "timeout_ms": 10_000}
_TOKENS_COUNT: Final = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """One wire, and how its model answers in the n-th round."""

    name: str
    transport: TransportKind
    answer: Callable[[int], bytes]
    is_event_stream: bool = False
    incremental: bool = False
    context_editing: ContextEditing | None = None


def event(told: Mapping[str, Any]) -> bytes:
    """One event of a stream."""
    return f"event: {told['type']}\ndata: ".encode() + msgspec.json.encode(told) + b"\n\n"


def _chat(number: int) -> bytes:
    function = {"name": _TOOL, "arguments": _encoded_arguments()}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    message = {"role": "assistant", "content": _WORDS, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": _TOKENS_COUNT, "completion_tokens": _TOKENS_COUNT}
    return msgspec.json.encode({"id": "x", "choices": [choice], "usage": usage})


def _items(number: int) -> list[dict[str, Any]]:
    return [
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": _WORDS, "annotations": []}],
        },
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": _TOOL,
            "arguments": _encoded_arguments(),
            "status": "completed",
        },
    ]


def _response(number: int) -> dict[str, Any]:
    usage = {"input_tokens": _TOKENS_COUNT, "output_tokens": _TOKENS_COUNT}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "output": _items(number),
        "usage": usage,
    }


def _responses(number: int) -> bytes:
    return msgspec.json.encode(_response(number))


def _codex(number: int) -> bytes:
    """The same as events, which is how this backend tells everything."""
    finished = (
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(_items(number))
    )
    last = {"type": "response.completed", "response": {**_response(number), "output": []}}
    first: Mapping[str, Any] = {"type": "response.created", "response": {"id": f"resp_{number}"}}
    return b"".join(event(each) for each in (first, *finished, last))


def _messages(number: int) -> bytes:
    call = {"type": "tool_use", "id": f"call_{number}", "name": _TOOL, "input": _ARGUMENTS}
    return msgspec.json.encode(
        {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "m1",
            "content": [{"type": "text", "text": _WORDS}, call],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": _TOKENS_COUNT, "output_tokens": _TOKENS_COUNT},
        }
    )


def _encoded_arguments() -> str:
    return msgspec.json.encode(_ARGUMENTS).decode()


WIRES: Final = (
    Wire(name="openai_responses", transport=TransportKind.OPENAI_RESPONSES, answer=_responses),
    Wire(
        name="openai_responses, continued",
        transport=TransportKind.OPENAI_RESPONSES,
        answer=_responses,
        incremental=True,
    ),
    Wire(
        name="openai_codex_responses",
        transport=TransportKind.OPENAI_CODEX_RESPONSES,
        answer=_codex,
        is_event_stream=True,
    ),
    Wire(
        name="openai_chat_completions",
        transport=TransportKind.OPENAI_CHAT_COMPLETIONS,
        answer=_chat,
    ),
    Wire(
        name="anthropic_messages",
        transport=TransportKind.ANTHROPIC_MESSAGES,
        answer=_messages,
    ),
    Wire(
        name="anthropic_messages, context edited",
        transport=TransportKind.ANTHROPIC_MESSAGES,
        answer=_messages,
        context_editing=ContextEditing(),
    ),
)
