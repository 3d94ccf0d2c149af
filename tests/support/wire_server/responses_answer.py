"""Answers on the Responses wire: the whole response, and the events it is streamed as.

Owns:  response objects, their output items, and the order of the events.
"""

from collections.abc import Iterator

from holon.model.turns.turn import StopReason
from tests.support.wire_server.wire_answer import (
    CREATED_AT,
    StreamEvent,
    WireAnswer,
    WireCall,
    pieces_of,
)
from tests.support.wire_server.wire_request import JsonObject, ParsedRequest


def response_of(said: WireAnswer, heard: ParsedRequest) -> JsonObject:
    """Return a finished response."""
    cut = said.stop is StopReason.MAX_TOKENS
    return _response(
        said,
        heard,
        status="incomplete" if cut else "completed",
        output=output_of(said, heard),
        incomplete_details={"reason": "max_output_tokens"} if cut else None,
        usage=_usage(said) if said.reports_usage else None,
    )


def output_of(said: WireAnswer, heard: ParsedRequest) -> list[JsonObject]:
    """Return the output items of a response."""
    items: list[JsonObject] = []
    if said.thinking is not None:
        items.append(_reasoning_item(said, heard))
    if said.text:
        items.append(_message_item(said))
    items.extend(_call_item(said, call, index) for index, call in enumerate(said.calls))
    return items


def events_of(said: WireAnswer, heard: ParsedRequest) -> list[StreamEvent]:
    """Return a response as the events of a stream."""
    return _numbered(_events(said, heard))


def failed_events(said: WireAnswer, heard: ParsedRequest, error: JsonObject) -> list[StreamEvent]:
    """Return a stream that begins well and ends in a failure."""
    return _numbered(_failed_events(said, heard, error))


def _response(said: WireAnswer, heard: ParsedRequest, **parts: object) -> JsonObject:
    return {
        "id": said.id("resp_"),
        "object": "response",
        "created_at": CREATED_AT,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": said.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
        **heard.echoed,
        **parts,
    }


def _usage(said: WireAnswer) -> JsonObject:
    return {
        "input_tokens": said.count.total,
        "input_tokens_details": {
            "cached_tokens": said.count.read,
            "cache_write_tokens": said.count.written,
        },
        "output_tokens": said.output_tokens,
        "output_tokens_details": {"reasoning_tokens": len(said.thinking or "") // 4},
        "total_tokens": said.count.total + said.output_tokens,
    }


def _reasoning_item(said: WireAnswer, heard: ParsedRequest) -> JsonObject:
    summary = [{"type": "summary_text", "text": said.thinking}] if said.thinking else []
    item: JsonObject = {"type": "reasoning", "id": said.id("rs_"), "summary": summary}
    if heard.seals_thinking:
        item["encrypted_content"] = f"sealed:{said.number}"
    return item


def _message_item(said: WireAnswer) -> JsonObject:
    return {
        "type": "message",
        "id": said.id("msg_"),
        "role": "assistant",
        "status": "incomplete" if said.stop is StopReason.MAX_TOKENS else "completed",
        "content": [_text_part(said.text)],
    }


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(said: WireAnswer, call: WireCall, index: int) -> JsonObject:
    if call.freeform:
        return {
            "type": "custom_tool_call",
            "id": said.id("ctc_", index),
            "call_id": call.id,
            "name": call.name,
            "input": call.arguments,
        }
    return {
        "type": "function_call",
        "id": said.id("fc_", index),
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _numbered(events: Iterator[StreamEvent]) -> list[StreamEvent]:
    return [
        event._replace(data={**event.data, "type": event.name, "sequence_number": number})
        for number, event in enumerate(events)
    ]


def _begun(said: WireAnswer, heard: ParsedRequest) -> Iterator[StreamEvent]:
    for name in ("response.created", "response.in_progress"):
        yield StreamEvent(name, {"response": _response(said, heard, status="in_progress")})


def _events(said: WireAnswer, heard: ParsedRequest) -> Iterator[StreamEvent]:
    yield from _begun(said, heard)
    for index, item in enumerate(output_of(said, heard)):
        yield StreamEvent(
            "response.output_item.added", {"output_index": index, "item": _opened(item)}
        )
        for name, data in _item_events(item):
            place: JsonObject = {"item_id": item["id"], "output_index": index}
            yield StreamEvent(name, {**place, **data})
        yield StreamEvent("response.output_item.done", {"output_index": index, "item": item})
    response = response_of(said, heard)
    if heard.empty_output_at_end:
        response["output"] = []
    yield StreamEvent(f"response.{response['status']}", {"response": response}, terminal=True)


def _failed_events(
    said: WireAnswer, heard: ParsedRequest, error: JsonObject
) -> Iterator[StreamEvent]:
    yield from _begun(said, heard)
    response = _response(said, heard, status="failed", error=error)
    yield StreamEvent("response.failed", {"response": response}, terminal=True)


def _opened(item: JsonObject) -> JsonObject:
    """An item as it is announced: nothing in it yet."""
    empty: JsonObject = {"arguments": "", "input": "", "content": [], "summary": []}
    opened = {name: empty.get(name, value) for name, value in item.items()}
    if "status" in opened:
        opened["status"] = "in_progress"
    return opened


def _item_events(item: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    match item["type"]:
        case "message":
            yield from _message_events(item["content"][0]["text"])
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                yield from _summary_events(part["text"], index)
        case "custom_tool_call":
            yield from _written_events("response.custom_tool_call_input", "input", item["input"])
        case _:
            name = "response.function_call_arguments"
            yield from _written_events(name, "arguments", item["arguments"])


def _message_events(text: str) -> Iterator[tuple[str, JsonObject]]:
    place: JsonObject = {"content_index": 0}
    yield "response.content_part.added", {**place, "part": _text_part("")}
    for piece in pieces_of(text):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": text, "logprobs": []}
    yield "response.content_part.done", {**place, "part": _text_part(text)}


def _summary_events(text: str, index: int) -> Iterator[tuple[str, JsonObject]]:
    name, place = "response.reasoning_summary", {"summary_index": index}
    yield f"{name}_part.added", {**place, "part": {"type": "summary_text", "text": ""}}
    for piece in pieces_of(text):
        yield f"{name}_text.delta", {**place, "delta": piece}
    yield f"{name}_text.done", {**place, "text": text}
    yield f"{name}_part.done", {**place, "part": {"type": "summary_text", "text": text}}


def _written_events(name: str, field: str, text: str) -> Iterator[tuple[str, JsonObject]]:
    for piece in pieces_of(text):
        yield f"{name}.delta", {"delta": piece}
    yield f"{name}.done", {field: text}
