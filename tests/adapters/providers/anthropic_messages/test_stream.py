"""Streams, assembled to the answers they stand for."""

from typing import Any

import msgspec
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from holon.adapters.providers.anthropic_messages.answer import MessageAssembler, lift
from holon.adapters.providers.http.reply import events_in
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.turns.conversation import ToolUseBlock
from holon.model.turns.turn import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.wire.server_sent_events import SseParser
from tests.adapters.providers.anthropic_messages.sample_requests import ORIGIN
from tests.adapters.providers.anthropic_messages.sample_streams import (
    CALL,
    FOUND,
    REDACTED,
    SEARCH,
    TEXT,
    THINKING,
    answer,
    event,
    sse,
    streamed,
    wire_bytes,
)

WHOLE = answer(THINKING, REDACTED, TEXT, CALL, stop="tool_use")
STREAM = streamed(WHOLE)
EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


def _assemble(events: list[Any]) -> tuple[Any, list[AnswerProgress]]:
    assembler = MessageAssembler()
    heard = [progress for one in events if (progress := assembler.feed(sse(one))) is not None]
    return assembler.message(), heard


@pytest.mark.requirement("provider-anthropic:stream-is-the-answer")
@pytest.mark.parametrize("piece_chars", [1, 3, 1_000])
def test_a_stream_gives_the_answer_it_stands_for(piece_chars: int) -> None:
    message, _ = _assemble(streamed(WHOLE, piece_chars=piece_chars))
    assert message == WHOLE
    assert lift(message, origin=ORIGIN) == lift(WHOLE, origin=ORIGIN)


def test_the_official_package_assembles_the_same_message() -> None:
    snapshot: Any = None
    unfinished: dict[int, bytes] = {}
    for one in STREAM:
        if one["type"] != "ping":
            snapshot = accumulate_event(
                event=EVENTS.validate_python(one), current_snapshot=snapshot, json_bufs=unfinished
            )
    theirs = snapshot.model_dump(mode="json", exclude_none=True)
    message, _ = _assemble(STREAM)
    assert [
        {key: block[key] for key in ours}
        for ours, block in zip(message["content"], theirs["content"], strict=True)
    ] == message["content"]
    assert theirs["stop_reason"] == message["stop_reason"]
    assert {key: theirs["usage"][key] for key in message["usage"]} == message["usage"]


@pytest.mark.requirement("provider-anthropic:stream-is-the-answer")
def test_a_watcher_hears_words_thoughts_and_calls_grow_in_order() -> None:
    _, heard = _assemble(STREAM)
    assert "".join(one.text for one in heard if isinstance(one, TextGrew)) == TEXT["text"]
    assert "".join(one.text for one in heard if isinstance(one, ThinkingGrew)) == "Let me see."
    calls = [one for one in heard if isinstance(one, CallGrew)]
    assert "".join(one.fragment for one in calls) == '{"reason":"r"}'
    assert {(one.call_id, one.name) for one in calls} == {("toolu_1", "Sleep")}
    assert [type(one) for one in heard] == sorted(
        (type(one) for one in heard), key=[ThinkingGrew, TextGrew, CallGrew].index
    )


@pytest.mark.requirement("provider-wire:hosted-items-are-kept")
@pytest.mark.parametrize("piece_chars", [1, 1_000])
def test_a_call_the_server_answers_by_itself_grows_unseen(piece_chars: int) -> None:
    whole = answer(SEARCH, FOUND, TEXT)
    message, heard = _assemble(streamed(whole, piece_chars=piece_chars))
    assert message == whole
    assert {type(one) for one in heard} == {TextGrew}


@given(st.lists(st.integers(1, 40), max_size=60))
def test_how_the_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    data = wire_bytes(STREAM)
    parser, assembler = SseParser(), MessageAssembler()
    position = 0
    for size in (*cuts, len(data)):
        for one in parser.feed(data[position : position + size]):
            assembler.feed(one)
        position += size
    assert assembler.message() == WHOLE


START = STREAM[0]
STOP = STREAM[-1]
ENDED = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})


def _opened(index: Any = 0, block: Any = TEXT) -> dict[str, Any]:
    return event("content_block_start", index=index, content_block=block)


def _grown(index: Any = 0, **delta: Any) -> dict[str, Any]:
    return event("content_block_delta", index=index, delta=delta)


def _closed(index: Any = 0) -> dict[str, Any]:
    return event("content_block_stop", index=index)


SAID = [_opened(), _closed()]
BROKEN: list[tuple[str, list[Any]]] = [
    ("nothing", []),
    ("only pings", [event("ping")]),
    ("no stop", STREAM[:-1]),
    ("cut in a block", STREAM[:5]),
    ("no start", STREAM[1:]),
    ("two starts", [START, START, *STREAM[1:]]),
    ("two stops of a block", [START, _opened(), _closed(), _closed(), ENDED, STOP]),
    ("two starts of a block", [START, _opened(), _opened(), _closed(), ENDED, STOP]),
    ("a block started again", [START, *SAID, _opened(), _closed(), ENDED, STOP]),
    ("a skipped index", [START, _opened(1), _closed(1), ENDED, STOP]),
    ("a negative index", [START, _opened(-1), _closed(-1), ENDED, STOP]),
    ("an index that is none", [START, _opened("0"), _closed("0"), ENDED, STOP]),
    ("an index that is a truth", [START, _opened(False), _closed(False), ENDED, STOP]),
    (
        "a piece for a closed block",
        [START, *SAID, _grown(type="text_delta", text="x"), ENDED, STOP],
    ),
    ("a piece for no block", [START, _grown(type="text_delta", text="x"), ENDED, STOP]),
    (
        "a piece of another kind",
        [START, _opened(), _grown(type="thinking_delta", thinking="x"), _closed(), ENDED, STOP],
    ),
    (
        "a piece without its text",
        [START, _opened(), _grown(type="text_delta"), _closed(), ENDED, STOP],
    ),
    ("a piece without a kind", [START, _opened(), _grown(text="x"), _closed(), ENDED, STOP]),
    ("a stop inside a block", [START, _opened(), ENDED, STOP]),
    ("a block after the stop", [START, *SAID, ENDED, STOP, _opened(1)]),
    ("two ends", [START, *SAID, ENDED, STOP, STOP]),
    ("a block without a kind", [START, _opened(block={}), _closed(), ENDED, STOP]),
    ("a call without an id", [START, _opened(block={**CALL, "id": ""}), _closed(), ENDED, STOP]),
    ("a start without a message", [event("message_start"), *SAID, ENDED, STOP]),
    ("a change without a delta", [START, *SAID, event("message_delta"), STOP]),
    ("an event that is no JSON", [START, "{"]),
    ("an event that is no object", [START, "[1]"]),
    ("an event without a kind", [START, {"x": 1}]),
    ("a foreign ending", [START, "[DONE]"]),
    (
        "too many blocks",
        [
            START,
            *(
                one
                for n in range(PROVIDER_OUTPUT_ITEMS_COUNT_MAX + 1)
                for one in (_opened(n), _closed(n))
            ),
        ],
    ),
    (
        "huge arguments",
        [
            START,
            _opened(block=CALL),
            *[_grown(type="input_json_delta", partial_json="y" * 65_536)] * 17,
        ],
    ),
]


@pytest.mark.requirement("provider-anthropic:stream-order")
@pytest.mark.parametrize("events", [row[1] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_stream_that_breaks_its_order_or_ends_early_is_unreadable(events: list[Any]) -> None:
    with pytest.raises(UnreadableResponseError):
        _assemble(events)


def test_a_stream_without_a_stop_reason_is_unreadable_as_an_answer_without_one_is() -> None:
    message, _ = _assemble([START, *SAID, STOP])
    with pytest.raises(UnreadableResponseError, match="stop_reason"):
        lift(message, origin=ORIGIN)


def test_pings_and_unknown_events_and_pieces_are_passed_over() -> None:
    noisy: list[Any] = [event("ping")]
    for one in STREAM:
        noisy += [one, event("ping"), event("from_the_future", index=99)]
        if one["type"] == "content_block_start":
            noisy.append(_grown(one["index"], type="citations_delta", citation={}))
    assert _assemble(noisy[:-2])[0] == WHOLE


@pytest.mark.parametrize(
    ("begun", "pieces", "arguments"),
    [
        ({}, [], {}),
        ({}, [""], {}),
        ({}, ["{", '"a"', ":1}"], {"a": 1}),
        ({}, ['{"a":'], '{"a":'),
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1}, ['{"b":2}'], {"b": 2}),
        (None, ["[1]"], [1]),
    ],
)
def test_arguments_come_in_fragments_whole_or_not_at_all(
    begun: Any, pieces: list[str], arguments: Any
) -> None:
    events = [START, _opened(block={**CALL, "input": begun})]
    events += [_grown(type="input_json_delta", partial_json=piece) for piece in pieces]
    events += [_closed(), event("message_delta", delta={"stop_reason": "tool_use"}), STOP]
    (block,) = lift(_assemble(events)[0], origin=ORIGIN).blocks
    assert isinstance(block, ToolUseBlock)
    assert block.input == arguments


ERRORS: list[tuple[str, str, type[ProviderError]]] = [
    ("overloaded_error", "Overloaded", ProviderOverloadedError),
    ("api_error", "Internal server error", ProviderOverloadedError),
    ("timeout_error", "Timed out", ProviderTimeoutError),
    ("rate_limit_error", "Slow down", RateLimitedError),
    ("authentication_error", "Who?", AuthRejectedError),
    ("permission_error", "No.", AuthRejectedError),
    ("invalid_request_error", "messages: bad", RequestRejectedError),
    ("invalid_request_error", "prompt is too long: 9 > 8", ContextTooLongError),
    ("invalid_request_error", "Your credit balance is too low", UsageLimitedError),
    ("billing_error", "Pay.", UsageLimitedError),
    ("not_found_error", "model: claude-y", RequestRejectedError),
]


@pytest.mark.requirement("provider-anthropic:error-events")
@pytest.mark.parametrize(("kind", "message", "error"), ERRORS)
def test_an_error_event_is_that_error_with_what_was_used(
    kind: str, message: str, error: type[ProviderError]
) -> None:
    failed = event("error", error={"type": kind, "message": message})
    with pytest.raises(ProviderError) as caught:
        _assemble([START, *SAID, failed])
    assert type(caught.value) is error
    assert caught.value.usage == TokenUsage(
        input_tokens=240, output_tokens=1, cache_read_tokens=200, cache_creation_tokens=30
    )
    with pytest.raises(error) as at_once:
        _assemble([{"error": failed["error"]}])
    assert at_once.value.usage is None


@pytest.mark.requirement("provider-anthropic:usage")
@pytest.mark.parametrize("odd", [3, [], "none", None])
def test_odd_usage_never_costs_a_streamed_answer(odd: Any) -> None:
    begun = event("message_start", message=answer(stop=None, usage=odd))
    ended = event("message_delta", delta={"stop_reason": "end_turn"}, usage=odd)
    message, _ = _assemble([begun, *SAID, ended, STOP])
    assert (message["content"], message["usage"]) == ([TEXT], None)


def test_the_last_usage_told_holds() -> None:
    later = event("message_delta", delta={}, usage={"output_tokens": 9, "input_tokens": None})
    message, _ = _assemble([START, *SAID, ENDED, later, STOP])
    assert (message["usage"]["output_tokens"], message["usage"]["input_tokens"]) == (9, 10)
    assert message["stop_reason"] == "end_turn"


@given(
    st.lists(st.sampled_from([*STREAM, ENDED, *SAID, event("ping"), {"type": 1}, 7]), max_size=24)
)
def test_any_order_of_events_is_a_message_or_a_provider_error(events: list[Any]) -> None:
    problem = _problem(b"".join(b"data: %s\n\n" % msgspec.json.encode(one) for one in events))
    assert problem is None or not problem.retryable


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_damaged_bytes_are_a_message_or_a_provider_error(at: int, damage: bytes) -> None:
    data = wire_bytes(STREAM)
    place = at % len(data)
    problem = _problem(data[:place] + damage + data[place + len(damage) :])
    assert problem is None or not problem.retryable


def _problem(data: bytes) -> ProviderError | None:
    parser, assembler = SseParser(), MessageAssembler()
    try:
        for one in events_in(data, parser):
            assembler.feed(one)
        lift(assembler.message(), origin=ORIGIN)
    except ProviderError as error:
        return error
    return None


def test_arguments_beyond_their_cap_are_refused_before_they_are_whole() -> None:
    assembler = MessageAssembler()
    for one in (START, _opened(block=CALL)):
        assembler.feed(sse(one))
    piece = _grown(type="input_json_delta", partial_json="y" * (TOOL_ARGUMENTS_BYTES_MAX + 1))
    with pytest.raises(UnreadableResponseError, match="arguments"):
        assembler.feed(sse(piece))
