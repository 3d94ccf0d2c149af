"""A streamed answer is the same answer."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_chat.answer import ChatStream, lift
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import (
    ProviderError,
    ProviderOverloadedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.turns.conversation import TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.turns.turn import AnswerProgress, CallGrew, StopReason, TextGrew, ThinkingGrew
from holon.model.values import CallId, JsonValue
from holon.wire.server_sent_events import SseEvent
from tests.adapters.providers.openai_chat.chat_samples import ORIGIN
from tests.adapters.providers.openai_chat.test_lift import ANY_JSON

DONE = "[DONE]"


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def call(arguments: str = "", **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments}
    if "name" in fields:
        function["name"] = fields.pop("name")
    return delta(tool_calls=[{**fields, "function": function}])


def fed(*chunks: JsonValue) -> tuple[ChatStream, list[AnswerProgress]]:
    stream = ChatStream()
    grew: list[AnswerProgress] = []
    for chunk in chunks:
        data = chunk if isinstance(chunk, str) else msgspec.json.encode(chunk).decode()
        grew += stream.feed(SseEvent(data=data))
    return stream, grew


def test_words_reasoning_and_usage_are_put_together() -> None:
    stream, grew = fed(
        delta(role="assistant", content=""),
        delta(reasoning_content="h", reasoning="h"),
        delta(reasoning_content="m"),
        delta(content="he"),
        delta(content="llo"),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        DONE,
    )
    assert stream.is_done
    answer = lift(stream.whole(), thinking_origin=ORIGIN)
    assert answer.blocks == (
        ThinkingBlock(text="hm", signature="reasoning_content", origin=ORIGIN),
        TextBlock(text="hello"),
    )
    assert answer.usage == TokenUsage(input_tokens=5, output_tokens=2)
    assert grew == [
        ThinkingGrew(text="h"),
        ThinkingGrew(text="m"),
        TextGrew(text="he"),
        TextGrew(text="llo"),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        [  # as the format has it
            call(index=0, id="c1", name="A"),
            call('{"x"', index=0),
            call(index=1, id="c2", name="B"),
            call(":1}", index=0),
            call("{}", index=1),
        ],
        [  # every call numbered 0
            call('{"x":', index=0, id="c1", name="A"),
            call("1}", index=0),
            call("{}", index=0, id="c2", name="B"),
        ],
        [  # no numbers at all
            call('{"x":1}', id="c1", name="A"),
            call("{}", id="c2", name="B"),
        ],
        [  # the id and name on every piece
            call('{"x":', index=0, id="c1", name="A"),
            call("1}", index=0, id="c1", name="A"),
            call("{}", index=1, id="c2", name="B"),
        ],
    ],
)
def test_pieces_of_calls_find_their_call(pieces: list[JsonValue]) -> None:
    stream, grew = fed(*pieces, delta("tool_calls"))
    answer = lift(stream.whole(), thinking_origin=ORIGIN)
    assert answer.stop_reason is StopReason.TOOL_USE
    assert answer.blocks == (
        ToolUseBlock(call_id=CallId("c1"), name="A", input={"x": 1}),
        ToolUseBlock(call_id=CallId("c2"), name="B", input={}),
    )
    first = [each.fragment for each in grew if isinstance(each, CallGrew) and each.call_id == "c1"]
    assert "".join(first) == '{"x":1}'


@pytest.mark.requirement("provider-http:unreadable-answers-fail-fast")
@pytest.mark.parametrize("chunks", [[], [DONE], [delta(content="hel")], [delta(content="h"), DONE]])
def test_a_stream_that_ends_before_its_answer_is_unreadable(chunks: list[JsonValue]) -> None:
    stream, _ = fed(*chunks)
    with pytest.raises(UnreadableResponseError, match="ended before the answer was complete"):
        stream.whole()


def test_a_stream_that_forgets_to_say_done_is_fine() -> None:
    stream, _ = fed(delta(content="hi"), delta("stop"))
    assert lift(stream.whole(), thinking_origin=ORIGIN).blocks == (TextBlock(text="hi"),)


def test_what_comes_after_the_end_is_not_read() -> None:
    stream, grew = fed(delta("stop", content="hi"), DONE, "not json", delta(content="more"))
    assert grew == [TextGrew(text="hi")]
    assert lift(stream.whole(), thinking_origin=ORIGIN).blocks == (TextBlock(text="hi"),)


def test_an_error_in_the_stream_is_that_error() -> None:
    with pytest.raises(ProviderOverloadedError, match="busy"):
        fed(delta(content="h"), {"error": {"type": "server_error", "message": "busy"}})


@pytest.mark.parametrize(
    "chunks",
    [
        ["not json"],
        ["[]"],
        [{"choices": 3}],
        [delta(content=3)],
        [call(index="0")],
        [call("x" * TOOL_ARGUMENTS_BYTES_MAX, index=0), call("x", index=0)],
        [call(index=n, id=f"c{n}") for n in range(PROVIDER_OUTPUT_ITEMS_COUNT_MAX + 1)],
    ],
)
def test_a_chunk_of_the_wrong_shape_is_unreadable(chunks: list[JsonValue]) -> None:
    with pytest.raises(UnreadableResponseError):
        fed(*chunks)


@given(chunks=st.lists(ANY_JSON | st.builds(lambda d: {"choices": [{"delta": d}]}, ANY_JSON)))
def test_any_chunks_are_an_answer_or_a_provider_error(chunks: list[JsonValue]) -> None:
    try:
        stream, _ = fed(*(msgspec.json.encode(chunk).decode() for chunk in chunks))
        lift(stream.whole(), thinking_origin=ORIGIN)
    except ProviderError:
        pass
