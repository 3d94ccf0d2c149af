"""What of other people's text may reach a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.cli.console.terminal_text import cells_of, fitted, one_line, plain


@pytest.mark.requirement("run-once:plain-lines")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words\nand\tmore", "plain words\nand\tmore"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1b]52;c;aGk=\x07b", "ab"),
        ("a\x1bPdcs\x1b\\b\x1b_apc\x9cc", "abc"),
        ("a\x9b2Jb\x9d0;t\x9cc", "abc"),
        ("a\x1bcb", "ab"),
        ("a\x1b]0;never ends\nnext line", "a\nnext line"),
        ("a\x1b", "a"),
        ("a\rb\x08c\x00d\x7f", "abcd"),
        ("one\r\ntwo", "one\ntwo"),
        ("\u202eevil\u2066\u200b", "evil"),
        ("line\u2028sep", "linesep"),
        ("e" + "\u0301" * 1_000, "e" + "\u0301" * 4),
        ("naïve 漢字 😀", "naïve 漢字 😀"),
    ],
)
def test_nothing_a_terminal_would_obey_comes_out(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text(alphabet=st.one_of(st.sampled_from("\x1b[]P_^X\\;0m\x07\x9b\x9c"), st.characters())))
def test_no_control_character_survives_whatever_comes_in(text: str) -> None:
    shown = plain(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in shown)
    assert plain(shown) == shown
    assert "\n" not in one_line(text)


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_a_fitted_line_takes_no_more_cells_than_it_may(text: str, cells_max: int) -> None:
    line = one_line(text)
    shown = fitted(line, cells_max=cells_max)
    assert cells_of(shown) <= cells_max
    assert shown == line or shown.endswith("…") or cells_max == 0
