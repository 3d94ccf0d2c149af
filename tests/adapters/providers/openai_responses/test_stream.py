"""What an event feed is put together to."""

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_responses.answer import ResponseStream
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX
from holon.model.providers.attempts import ProviderError, UnreadableResponseError
from holon.model.turns.turn import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.wire.server_sent_events import SseEvent, SseParser
from tests.adapters.providers.openai_responses.canned import (
    call_item,
    done,
    feed_of,
    message_item,
    response,
)

HI: Final = message_item("Hi")
CALL: Final = call_item("c")


def told(*events: Any) -> tuple[Any, list[AnswerProgress]]:
    stream = ResponseStream()
    events_read = SseParser().feed(feed_of(*events))
    heard = [progress for event in events_read for progress in stream.feed(event)]
    return stream.finish(), heard


def ended(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"id": "resp_1", "output": [], **fields}}


ENDS: Final[dict[str, tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "completed with its own output": (
        (done(0, CALL), ended(output=[HI])),
        {"status": "completed", "output": [HI]},
    ),
    "completed with an empty output": (
        (done(0, HI), done(1, CALL), ended()),
        {"status": "completed", "output": [HI, CALL]},
    ),
    "completed without an output": (
        (done(0, HI), ended(output=None)),
        {"status": "completed", "output": [HI]},
    ),
    "items told out of order": (
        (done(1, CALL), done(0, HI), ended()),
        {"status": "completed", "output": [HI, CALL]},
    ),
    "an item told twice": (
        (done(0, HI), done(0, HI), done(1, CALL), done(3, HI), ended()),
        {"status": "completed", "output": [HI, CALL]},
    ),
    "an item without an id told twice": (
        (done(0, {"type": "message"}), done(0, {"type": "message"}), ended()),
        {"status": "completed", "output": [{"type": "message"}]},
    ),
    "items that name no place": (
        (
            {"type": "response.output_item.done", "item": {"type": "a"}},
            {"type": "response.output_item.done", "item": {"type": "b"}},
            ended(),
        ),
        {"status": "completed", "output": [{"type": "a"}, {"type": "b"}]},
    ),
    "incomplete": (
        (done(0, HI), ended("incomplete", incomplete_details={"reason": "max_output_tokens"})),
        {"status": "incomplete", "output": [HI]},
    ),
    "failed": (
        (ended("failed", error={"code": "slow_down"}),),
        {"status": "failed", "error": {"code": "slow_down"}},
    ),
    "an error event": (
        ({"type": "error", "code": "server_error", "message": "m"},),
        {
            "status": "failed",
            "error": {"type": "error", "code": "server_error", "message": "m"},
        },
    ),
    "an error event around an error": (
        ({"type": "error", "error": {"type": "usage_limit_reached"}},),
        {"status": "failed", "error": {"type": "usage_limit_reached"}},
    ),
    "a second terminal event": (
        (ended(output=[HI]), ended("failed", error={"code": "slow_down"})),
        {"status": "completed", "output": [HI]},
    ),
    "[DONE] after the end": ((ended(output=[HI]), "[DONE]"), {"status": "completed"}),
    "events nobody knows": (({"type": "response.new_thing"}, ended(output=[HI])), {}),
}


@pytest.mark.requirement("provider-openai:output-rebuilt-from-items")
@pytest.mark.parametrize("name", ENDS)
def test_a_feed_ends_as_its_terminal_event_says(name: str) -> None:
    events, expected = ENDS[name]
    final, _ = told(*events)
    assert expected.items() <= final.items()


BROKEN: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "nothing": ((), "ended before its terminal event"),
    "items and no end": ((done(0, HI),), "ended before its terminal event"),
    "[DONE] too early": ((done(0, HI), "[DONE]"), r"\[DONE\] before its terminal event"),
    "no JSON": (("{",), "not JSON"),
    "no object": (("[]",), "an object"),
    "an end without a response": (({"type": "response.completed"},), "`response`"),
    "a finished item that is none": ((done(0, "x"),), "an object"),  # type: ignore[arg-type]
    "too many items": (
        tuple(
            done(index, message_item("x", f"m{index}"))
            for index in range(PROVIDER_OUTPUT_ITEMS_COUNT_MAX + 1)
        ),
        "more than",
    ),
}


@pytest.mark.requirement("provider-openai:streaming-contract")
@pytest.mark.parametrize("name", BROKEN)
def test_a_feed_that_breaks_the_contract_is_unreadable(name: str) -> None:
    events, words = BROKEN[name]
    with pytest.raises(UnreadableResponseError, match=words):
        told(*events)


def test_a_watcher_hears_the_answer_grow() -> None:
    added = {"type": "response.output_item.added", "output_index": 1, "item": {**CALL}}
    _, heard = told(
        {"type": "response.created", "response": response()},
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm"},
        {"type": "response.output_text.delta", "delta": "He"},
        {"type": "response.output_text.delta", "delta": ""},
        {"type": "response.output_text.delta", "delta": 7},
        added,
        {"type": "response.function_call_arguments.delta", "item_id": "fc_c", "delta": '{"c'},
        {"type": "response.function_call_arguments.delta", "item_id": "other", "delta": "x"},
        ended(output=[HI]),
        {"type": "response.output_text.delta", "delta": "too late"},
    )
    assert heard == [
        ThinkingGrew(text="Hm"),
        TextGrew(text="He"),
        CallGrew(call_id="c", name="ExecCommand", fragment='{"c'),
    ]


def words(delta: str, item_id: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": item_id, "delta": delta}


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
def test_a_watcher_hears_all_of_a_piece_that_ends_the_reasoning() -> None:
    _, heard = told(words("<think>let me see</think>Yes", "m1"), ended(output=[HI]))
    assert heard == [ThinkingGrew(text="let me see"), TextGrew(text="Yes")]


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
def test_each_message_of_a_response_may_begin_with_reasoning() -> None:
    feed = (words("One.", "m1"), words("<think>hm", "m2"), words("</think>Two.", "m2"))
    _, heard = told(*feed, words(" More.", "m1"), ended(output=[HI]))
    assert heard == [
        TextGrew(text="One."),
        ThinkingGrew(text="hm"),
        TextGrew(text="Two."),
        TextGrew(text=" More."),
    ]


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
def test_a_message_is_known_by_its_place_where_its_id_changes() -> None:
    pieces = enumerate(("<th", "ink>hm</th", "ink>", "Yes"))
    feed = [{**words(piece, f"random {n}"), "output_index": 0} for n, piece in pieces]
    _, heard = told(*feed, ended(output=[HI]))
    assert heard == [ThinkingGrew(text="hm"), TextGrew(text="Yes")]


@pytest.mark.requirement("provider-openai:streaming-contract")
def test_what_is_kept_of_the_messages_that_grow_is_bounded() -> None:
    stream = ResponseStream()
    for number in range(4 * PROVIDER_OUTPUT_ITEMS_COUNT_MAX):
        event = msgspec.json.encode(words("<think>a", f"m{number}")).decode()
        is_split = number < PROVIDER_OUTPUT_ITEMS_COUNT_MAX
        shown = [ThinkingGrew(text="a") if is_split else TextGrew(text="<think>a")]
        assert stream.feed(SseEvent(data=event)) == shown


def test_an_event_without_a_type_is_known_by_its_name() -> None:
    stream = ResponseStream()
    stream.feed(SseEvent(event="response.completed", data='{"response": {"output": []}}'))
    assert stream.is_finished


_TYPES = st.sampled_from(
    [
        "response.completed",
        "response.failed",
        "response.incomplete",
        "error",
        "odd",
        "response.output_item.done",
        "response.output_item.added",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "item", "output", "call_id", "name"]), inner)
    ),
    max_leaves=8,
)
_EVENTS = st.dictionaries(
    st.sampled_from(["response", "item", "delta", "output_index", "item_id", "error"]), _VALUES
)


@given(events=st.lists(st.tuples(_TYPES, _EVENTS), max_size=6))
def test_any_feed_is_a_response_or_a_provider_error(events: list[tuple[str, Any]]) -> None:
    stream = ResponseStream()
    try:
        for kind, fields in events:
            data = msgspec.json.encode({"type": kind, **fields}).decode()
            stream.feed(SseEvent(data=data))
        assert isinstance(stream.finish(), dict)
    except ProviderError:
        return
