"""Texts of others, cut to size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.text.bounded import bounded
from holon.model.text_size import cut, one_line


@given(text=st.text(max_size=300), chars_max=st.integers(1, 60))
def test_a_line_is_printable_single_and_no_longer_than_asked(text: str, chars_max: int) -> None:
    line = one_line(text, chars_max=chars_max)
    assert len(line) <= chars_max
    assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n\n b\tc", "a b c"),
        ("\x1b[31mred", "[31mred"),
        ("0123456789", "0123456789"),
        ("0123456789a", "012345678…"),
    ],
)
def test_a_line_keeps_words_and_marks_a_cut(text: str, line: str) -> None:
    assert one_line(text, chars_max=10) == line


def test_a_command_is_one_bounded_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert len(one_line("x" * 10_000, chars_max=400)) == 400


def test_an_ellipsis_counts() -> None:
    assert [cut(text, chars_max=3) for text in ("", "abc", "abcd")] == ["", "abc", "ab…"]


def test_a_text_says_whether_there_was_more() -> None:
    assert bounded("abc", chars_max=3).truncated is False
    assert (bounded("abcd", chars_max=3).text, bounded("abcd", chars_max=3).truncated) == (
        "abc",
        True,
    )
