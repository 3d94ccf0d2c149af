"""Output of any size and any bytes becomes text within its budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.text.bounded import (
    OutputBudget,
    beginning_of,
    preview_of,
    previews_of,
    transcript_of,
)
from holon.model.tasks import OutputSpan, OutputStream

MARK_CHARS_MAX = 60


def look(
    data: bytes,
    *,
    head: int = 1_000,
    tail: int = 1_000,
    stream: OutputStream = OutputStream.STDOUT,
) -> OutputSpan:
    """What a look at this output shows."""
    return OutputSpan(
        stream=stream,
        path="/out",
        head=data[:head],
        tail=data[max(head, len(data) - tail) :],
        total_bytes=len(data),
    )


@pytest.mark.parametrize(
    ("asked", "budget"),
    [(None, 32_000), (1, 4), (8_000, 32_000), (64_000, 256_000), (64_001, 256_000)],
)
@pytest.mark.requirement("command-tools:output-is-bounded")
def test_a_budget_has_a_default_and_a_cap(asked: int | None, budget: int) -> None:
    assert OutputBudget().bytes_for(asked) == budget


def test_default_and_cap_can_be_set() -> None:
    small = OutputBudget(default_tokens=10, tokens_max=20)
    assert [small.bytes_for(asked) for asked in (None, 15, 99)] == [40, 60, 80]


@pytest.mark.parametrize(
    ("data", "budget", "text"),
    [
        (b"", 10, ""),
        (b"short", 10, "short"),
        (b"0123456789", 10, "0123456789"),
        (b"0123456789A", 10, "01234\n[… 1 bytes left out …]\n6789A"),
        (b"abcdefgh", 1, "a\n[… 7 bytes left out …]\n"),
        (b"abcdefgh", 0, "\n[… 8 bytes left out …]\n"),
        ("ää…öö".encode(), 6, "ä\n[… 7 bytes left out …]\nö"),
        (b"\xff\xfe", 10, "��"),
        (b"a\x00b", 10, "a\x00b"),
    ],
)
def test_what_fits_is_whole_and_what_does_not_keeps_its_ends(
    data: bytes, budget: int, text: str
) -> None:
    shown = preview_of(look(data), bytes_max=budget)
    assert shown.text == text
    assert shown.truncated is (len(data) > budget)


@pytest.mark.requirement("command-tools:output-is-bounded")
@given(
    data=st.binary(max_size=400) | st.text(max_size=200).map(str.encode),
    head=st.integers(0, 300),
    tail=st.integers(0, 300),
    budget=st.integers(0, 300),
)
def test_whatever_the_bytes_the_text_is_bounded_and_says_what_is_missing(
    data: bytes, head: int, tail: int, budget: int
) -> None:
    shown = preview_of(look(data, head=head, tail=tail), bytes_max=budget)
    shown.text.encode()  # it is Unicode throughout
    assert len(shown.text) <= budget + MARK_CHARS_MAX
    if not shown.truncated:
        assert shown.text == data.decode(errors="replace")


@given(st.text(min_size=1, max_size=200), st.integers(0, 100))
def test_a_cut_never_splits_a_character(text: str, budget: int) -> None:
    shown = preview_of(look(text.encode()), bytes_max=budget)
    if "�" not in text:
        assert "�" not in shown.text


def test_looks_that_overlap_are_joined_once() -> None:
    span = OutputSpan(
        stream=OutputStream.STDOUT, path="/out", head=b"abcdef", tail=b"defgh", total_bytes=8
    )
    assert preview_of(span, bytes_max=100).text == "abcdefgh"


def test_only_streams_that_speak_share_the_budget() -> None:
    out, quiet = look(b"x" * 100), look(b"", stream=OutputStream.STDERR)
    loud = look(b"y" * 100, stream=OutputStream.STDERR)
    assert not previews_of((out, quiet), bytes_max=100)[0].truncated
    assert all(shown.truncated for shown in previews_of((out, loud), bytes_max=100))


@pytest.mark.parametrize(
    ("out", "err", "text"),
    [
        (b"", b"", ""),
        (b"a", b"", "a"),
        (b"", b"b", "[stderr]\nb"),
        (b"a", b"b", "[stdout]\na\n[stderr]\nb"),
    ],
)
def test_streams_become_one_text_that_names_them_where_needed(
    out: bytes, err: bytes, text: str
) -> None:
    spans = (look(out), look(err, stream=OutputStream.STDERR))
    assert transcript_of(spans, bytes_max=1_000).text == text


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("as it is", 8, "as it is"),
        ("one two three", 9, "one two …"),
        ("one two three", 8, "one two…"),
        ("one two three", 7, "one …"),
        ('{"key":"sk-0123456789"}', 15, '{"key":"…'),
        ("sk-0123456789", 5, "…"),
    ],
)
def test_a_line_is_cut_between_words(text: str, room: int, shown: str) -> None:
    assert beginning_of(text, chars_max=room) == shown


@given(text=st.text(), room=st.integers(1, 50))
def test_a_cut_line_keeps_to_its_room(text: str, room: int) -> None:
    assert len(beginning_of(text, chars_max=room)) <= room
