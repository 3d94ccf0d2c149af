"""Events come out the same however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.wire.server_sent_events import SseEvent, SseParser, UnreadableStreamError


def parsed(*pieces: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [SseEvent(data="a")]),
        (b"data: a\r\n\r\n", [SseEvent(data="a")]),
        (b"data: a\r\r", [SseEvent(data="a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(data="a")]),
        (b"data:a\ndata: b\ndata:\n\n", [SseEvent(data="a\nb\n")]),
        (b"data:  two spaces\n\n", [SseEvent(data=" two spaces")]),
        (b": a comment\n\nevent: x\ndata: 1\n\n", [SseEvent(event="x", data="1")]),
        (b"event: lost\n\ndata: 1\n\n", [SseEvent(data="1")]),
        (
            b"id: 7\ndata: a\n\ndata: b\n\n",
            [SseEvent(data="a", id="7"), SseEvent(data="b", id="7")],
        ),
        (b"data\n\n", [SseEvent(data="")]),
        (b"retry: 10\nunknown: x\ndata: a\n\n", [SseEvent(data="a")]),
        (b"id: a\0b\ndata: a\n\n", [SseEvent(data="a")]),
        (b"data: cut off", []),
        (b"data: no blank line\n", []),
        ("data: ä€😀\n\n".encode(), [SseEvent(data="ä€😀")]),
        (b"", []),
    ],
)
def test_a_stream_gives_its_events_whole_or_byte_by_byte(
    stream: bytes, events: list[SseEvent]
) -> None:
    assert parsed(stream) == events
    assert parsed(*(stream[index : index + 1] for index in range(len(stream)))) == events


SSE_LIKE = st.lists(
    st.sampled_from(
        b"data|event|id|:| |\r|\n|\r\n|\n\n|x|\0|\xef\xbb\xbf|\xc3\xa4|\xff|[DONE]|{}".split(b"|")
    ),
    max_size=40,
).map(b"".join)


def outcome(pieces: list[bytes]) -> list[SseEvent] | str:
    try:
        return parsed(*pieces)
    except UnreadableStreamError as error:
        return str(error)


@given(stream=SSE_LIKE | st.binary(max_size=200), cuts=st.lists(st.integers(0, 300), max_size=12))
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(places)]
    assert outcome(pieces) == outcome([stream])


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        (b"data: " + b"x" * 20, "a line of more than 16 bytes"),
        (b"data: 12345678\n" * 3, "an event of more than 32 bytes"),
        (b"data: \xff\n\n", "not UTF-8"),
    ],
)
def test_a_stream_beyond_its_caps_is_unreadable(stream: bytes, says: str) -> None:
    parser = SseParser(line_bytes_max=16, event_bytes_max=32)
    with pytest.raises(UnreadableStreamError, match=says):
        parser.feed(stream)


def test_comments_that_keep_a_stream_alive_do_not_add_up_to_an_event() -> None:
    parser = SseParser(line_bytes_max=16, event_bytes_max=32)
    for _ in range(100):
        assert parser.feed(b": still here\n") == []
    assert parser.feed(b"data: a\n\n") == [SseEvent(data="a")]


def test_an_id_without_data_is_an_event_to_a_reader_that_asks_for_them() -> None:
    stream = b"id: 7\n\nevent: lost\n\n: still here\n\ndata: a\n\nid: 9\n\n"
    events = [SseEvent(id="7"), SseEvent(data="a", id="7"), SseEvent(id="9")]
    assert SseParser(bare_ids=True).feed(stream) == events
    assert SseParser().feed(stream) == [SseEvent(data="a", id="7")]
