"""Whatever an endpoint answers, each wire gives an answer or a ProviderError, and nothing else.

The search begins at good answers: one place in them is changed, or the bytes are.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import TextBlock, tool_uses_of
from holon.model.turns.turn import ModelAnswer
from tests.adapters.providers.answer_samples import stream_of, streamed_events, whole_answer
from tests.adapters.providers.canned_exchange import WIRES, CannedReply, answer_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([[], {}, [None], [{}], "c1", "error", "[DONE]", -1, 2**70, {"type": "text"}])
)


def outcome(wire: TransportKind, body: bytes, *, is_event_stream: bool) -> ModelAnswer | None:
    try:
        return answer_of(wire, CannedReply([body], is_event_stream=is_event_stream))
    except ProviderError:
        return None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from places(child, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("is_event_stream", [False, True])
def test_the_good_answers_are_good(wire: TransportKind, is_event_stream: bool) -> None:
    body = msgspec.json.encode(whole_answer(wire))
    if is_event_stream:
        body = stream_of(streamed_events(wire))
    answer = outcome(wire, body, is_event_stream=is_event_stream)
    if answer is None and wire is TransportKind.OPENAI_CODEX_RESPONSES and not is_event_stream:
        return  # this wire only streams
    assert answer is not None
    assert TextBlock(text="hi") in answer.blocks
    (call,) = tool_uses_of(answer.blocks)
    assert call.input == {"cmd": "ls"}


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_an_answer_with_any_place_changed_is_one_or_an_error(
    wire: TransportKind, data: st.DataObject
) -> None:
    whole = whole_answer(wire)
    path = data.draw(st.sampled_from(list(places(whole))))
    body = msgspec.json.encode(changed(whole, path, data.draw(SCALARS)))
    outcome(wire, body, is_event_stream=False)


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_a_stream_with_events_changed_dropped_or_repeated_is_an_answer_or_an_error(
    wire: TransportKind, data: st.DataObject
) -> None:
    events = data.draw(st.lists(st.sampled_from(streamed_events(wire)), max_size=12))
    if data.draw(st.booleans()):
        events = list(streamed_events(wire))
    if events:
        path = data.draw(st.sampled_from(list(places(events))))
        events = changed(events, path or (0,), data.draw(SCALARS))
    outcome(wire, stream_of(events), is_event_stream=True)


@pytest.mark.parametrize("wire", WIRES)
@given(body=st.binary(max_size=100), is_event_stream=st.booleans())
def test_any_bytes_are_an_answer_or_an_error(
    wire: TransportKind, body: bytes, is_event_stream: bool
) -> None:
    outcome(wire, body, is_event_stream=is_event_stream)
    outcome(wire, b"data: " + body + b"\n\n", is_event_stream=True)
