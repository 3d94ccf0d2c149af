"""Tables: aligned, no wider than the screen, and harmless."""

import sys

import pytest

from holon.cli.console.output import (
    Column,
    fact_lines,
    indented,
    moment,
    record_lines,
    screen_cells,
    span,
    table_lines,
)

COLUMNS = (Column("NAME"), Column("N", is_number=True), Column("WHAT", shrinks=True))
ROWS = [("a", 5, "short"), ("longer", 120, "a text that goes on for a while")]


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert table_lines(COLUMNS, ROWS, empty="none") == [
        "NAME      N  WHAT",
        "a         5  short",
        "longer  120  a text that goes on for a while",
    ]


def test_a_column_finds_its_cell_in_a_record() -> None:
    columns = (
        Column("NAME", "name"),
        Column("N", lambda each: each["of"]["count"], is_number=True),
    )
    records = [{"name": "a", "of": {"count": 5}}, {"of": {"count": 120}}]
    assert record_lines(columns, records, empty="none") == ["NAME    N", "a       5", "      120"]
    assert record_lines(columns, [], empty="none") == ["none"]


def test_no_rows_are_one_sentence() -> None:
    assert table_lines(COLUMNS, [], empty="none") == ["none"]


@pytest.mark.parametrize("cells_max", [1, 10, 20, 30, 40, 80])
def test_a_line_is_never_wider_than_the_screen(cells_max: int) -> None:
    lines = table_lines(COLUMNS, ROWS, empty="none", cells_max=cells_max)
    assert max(map(len, lines)) <= cells_max


def test_columns_that_may_shrink_do_so_before_others_are_cut() -> None:
    *_, last = table_lines(COLUMNS, ROWS, empty="none", cells_max=30)
    assert last == "longer  120  a text that goes…"


def test_wide_characters_take_two_cells() -> None:
    lines = table_lines((Column("A"), Column("B")), [("漢字", "x"), ("abcd", "y")], empty="")
    assert lines == ["A     B", "漢字  x", "abcd  y"]


def test_what_others_wrote_cannot_leave_its_cell() -> None:
    evil = "a\x1b[31mb\nc\x07\u202ed"
    assert table_lines((Column("A"),), [(evil,)], empty="") == ["A", "ab cd"]
    assert fact_lines([("x", evil), ("none", None), ("empty", ""), ("yes", True)]) == [
        "x    ab cd",
        "yes  yes",
    ]
    assert indented("one\x1b[2J\ntwo") == ["  one", "  two"]


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1_500, "1.5 s"), (90_000, "1.5 min"), (5_400_000, "1.5 h")],
)
def test_spans_are_told_in_a_fitting_unit(value_ms: int, text: str) -> None:
    assert span(value_ms) == text


def test_what_is_not_known_is_left_empty() -> None:
    assert (span(None), moment(None)) == ("", "")
    assert moment("2026-01-02T03:04:05.678Z") == "2026-01-02 03:04:05"


def test_a_pipe_has_no_width() -> None:
    assert sys.stdout.isatty() or screen_cells() is None
