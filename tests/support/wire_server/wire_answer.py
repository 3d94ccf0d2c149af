"""Answers of the wire server: a line of the script in the form every wire can render.

Owns:  the answer, the events it is streamed as, and the corruptions of both.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import msgspec

from holon.adapters.providers.scripted.script import ScriptedCall, ScriptedRound
from holon.model.limits import MIB, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.turns.turn import StopReason
from holon.model.values import JsonValue
from tests.support.wire_server.faults import AnswerFault
from tests.support.wire_server.prompt_cache import PromptCount
from tests.support.wire_server.wire_request import ParsedRequest

CREATED_AT: Final = 1_767_225_600  # the first of January 2026: answers are the same on every run
HUGE_TEXT_BYTES: Final = 10 * MIB
_PIECES_COUNT: Final = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class WireCall:
    """A tool call with its arguments as the model wrote them."""

    id: str
    name: str
    arguments: str
    freeform: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WireAnswer:
    """One answer. `number` is unique on the server and makes its ids so."""

    number: int
    model: str
    thinking: str | None
    text: str
    calls: tuple[WireCall, ...]
    stop: StopReason
    count: PromptCount
    output_tokens: int
    reports_usage: bool = True

    def id(self, prefix: str, index: int = 0) -> str:
        """Return an id of this answer or of a part of it."""
        return f"{prefix}{self.number:06d}" + (f"_{index}" if index else "")


class StreamEvent(NamedTuple):
    """One event of a stream. Terminal ones say that the answer is whole."""

    name: str | None
    data: JsonValue
    terminal: bool = False


DONE: Final = StreamEvent(None, "[DONE]", terminal=True)


def said_of(
    line: ScriptedRound, heard: ParsedRequest, *, count: PromptCount, number: int
) -> WireAnswer:
    """Return a line of the script as an answer to what was heard."""
    calls = tuple(_call(call, heard, f"{number:06d}_{i}") for i, call in enumerate(line.calls))
    written = [line.thinking or "", line.text, *(call.arguments for call in calls)]
    count = count if line.usage is None else PromptCount.of_usage(line.usage)
    estimate = max(1, math.ceil(sum(map(len, written)) / 4))
    return WireAnswer(
        number=number,
        model=heard.model,
        thinking=line.thinking,
        text=line.text,
        calls=calls,
        stop=line.stop_reason or (StopReason.TOOL_USE if calls else StopReason.END_TURN),
        count=count,
        output_tokens=estimate if line.usage is None else line.usage.output_tokens,
    )


def _call(call: ScriptedCall, heard: ParsedRequest, place: str) -> WireCall:
    freeform = call.name in heard.freeform_tools
    if freeform:
        values = list(call.input.values()) if isinstance(call.input, dict) else [call.input]
        arguments = str(values[0]) if values else ""
    elif isinstance(call.input, str):
        arguments = call.input  # a script may have the model write broken arguments
    else:
        arguments = msgspec.json.encode(call.input).decode()
    return WireCall(
        id=call.id or f"call_{place}", name=call.name, arguments=arguments, freeform=freeform
    )


def twisted(said: WireAnswer, twists: Sequence[AnswerFault]) -> WireAnswer:
    """Return the answer with what is wrong with it."""
    for twist in twists:
        said = _twisted_once(said, twist)
    return said


def _twisted_once(said: WireAnswer, twist: AnswerFault) -> WireAnswer:
    match twist:
        case AnswerFault.EMPTY_CONTENT:
            return replace(said, thinking=None, text="", calls=())
        case AnswerFault.HUGE_TEXT:
            return replace(said, text="x" * HUGE_TEXT_BYTES)
        case AnswerFault.HUGE_ARGUMENTS:
            return _with_arguments(said, f'{{"text":"{"x" * TOOL_ARGUMENTS_BYTES_MAX}"}}')
        case AnswerFault.BROKEN_ARGUMENTS:
            return _with_arguments(said, '{"text": "never clos')
        case AnswerFault.DUPLICATE_CALL_IDS:
            calls = said.calls or (WireCall(id="call_same", name="Sleep", arguments="{}"),)
            return replace(said, calls=(*calls, *calls), stop=StopReason.TOOL_USE)
        case AnswerFault.UNKNOWN_TOOL:
            calls = (WireCall(id=said.id("call_"), name="NoSuchTool", arguments="{}"),)
            return replace(said, calls=calls, stop=StopReason.TOOL_USE)
        case AnswerFault.STOP_FOR_NO_CALL:
            return replace(said, calls=(), stop=StopReason.TOOL_USE)
        case AnswerFault.NO_USAGE:
            return replace(said, reports_usage=False)
        case _:
            return said


def _with_arguments(said: WireAnswer, arguments: str) -> WireAnswer:
    calls = said.calls or (WireCall(id=said.id("call_"), name="Sleep", arguments=""),)
    first = replace(calls[0], arguments=arguments)
    return replace(said, calls=(first, *calls[1:]), stop=StopReason.TOOL_USE)


def pieces_of(text: str) -> list[str]:
    """Return a text in the pieces it is streamed in."""
    size = max(1, math.ceil(len(text) / _PIECES_COUNT))
    return [text[start : start + size] for start in range(0, len(text), size)]


def body_of(value: JsonValue, twists: Sequence[AnswerFault]) -> bytes:
    """Return a whole answer as its body."""
    body = msgspec.json.encode(value)
    return body[: len(body) // 2] if AnswerFault.MALFORMED_JSON in twists else body


def stream_of(events: Iterable[StreamEvent], twists: Sequence[AnswerFault]) -> bytes:
    """Return a streamed answer as its body."""
    found = list(_twisted_events(list(events), twists))
    encoded = [_encoded(event) for event in found]
    if AnswerFault.MALFORMED_JSON in twists:
        middle = len(encoded) // 2
        encoded[middle] = encoded[middle].rstrip(b"\n}") + b"\n\n"
    body = b"".join(encoded)
    return body.replace(b"\n", b"\r\n") if AnswerFault.CRLF_LINES in twists else body


def _twisted_events(
    events: list[StreamEvent], twists: Sequence[AnswerFault]
) -> Iterator[StreamEvent]:
    for event in events:
        if event.terminal and AnswerFault.DONE_EARLY in twists:
            yield DONE
            return
        if event.terminal and AnswerFault.MISSING_TERMINAL in twists:
            continue
        yield event
        if AnswerFault.DUPLICATE_EVENTS in twists:
            yield event
        if AnswerFault.UNKNOWN_EVENTS in twists and not event.terminal:
            yield StreamEvent("weather", {"type": "weather", "sky": "blue", "choices": []})


def _encoded(event: StreamEvent) -> bytes:
    is_text = isinstance(event.data, str)
    data = event.data.encode() if is_text else msgspec.json.encode(event.data)
    head = b"" if event.name is None else b"event: " + event.name.encode() + b"\n"
    return head + b"data: " + data + b"\n\n"
