"""Formats tables and facts for people.

Owns:  the layout of rows on a terminal or in a pipe, and the format of times and durations.
Rule 1: on a terminal a line never wraps: shrinkable columns shrink first, then the line is cut. In
        a pipe nothing is cut. There are no colours.
Rule 2: every cell passes through the terminal sanitizer here, so that no command can omit it.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from holon.cli.console.terminal_text import cells_of, fitted, one_line, plain

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_GAP: Final = "  "
_SHRUNK_CELLS_MIN: Final = 12
_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)")


class Column(NamedTuple):
    """A column. A shrinkable one gives up width on a narrow terminal."""

    title: str
    source: "str | Callable[[JsonValue], object]" = ""  # of its cell in a record: a field, or more
    is_number: bool = False
    shrinks: bool = False


def screen_cells() -> int | None:
    """Return the width of the terminal, or None if stdout is not one."""
    if not sys.stdout.isatty():
        return None
    try:
        cells = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None
    return cells or None


def table_lines(
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    cells_max: int | None = None,
) -> list[str]:
    """Format rows under their titles, or the text for no rows."""
    texts = [[cell_text(cell) for cell in row] for row in rows]
    if not texts:
        return [empty]
    titles = [column.title for column in columns]
    widths = [max(map(cells_of, each)) for each in zip(titles, *texts, strict=True)]
    if cells_max is not None:
        widths = _narrowed(columns, widths, cells_max)
    head = _line(columns, titles, widths, cells_max)
    return [head, *(_line(columns, row, widths, cells_max) for row in texts)]


def record_lines(
    columns: Sequence[Column], records: "Iterable[JsonValue]", *, empty: str
) -> list[str]:
    """Format records as a table for this terminal."""
    rows = [[_cell(column, each) for column in columns] for each in records]
    return table_lines(columns, rows, empty=empty, cells_max=screen_cells())


def _cell(column: Column, record: "JsonValue") -> object:
    source = column.source
    return record.get(source) if isinstance(source, str) else source(record)


def fact_lines(facts: Iterable[tuple[str, object]]) -> list[str]:
    """Format names and values, one per line; missing values are omitted."""
    known = [(name, cell_text(value)) for name, value in facts if value not in (None, "")]
    width = max((len(name) for name, _ in known), default=0)
    return [f"{name:<{width}}  {value}" for name, value in known]


def indented(text: str, *, by: str = "  ") -> list[str]:
    """Sanitize and indent a text of several lines."""
    return [f"{by}{line}" for line in plain(text).splitlines()]


def cell_text(value: object) -> str:
    """Format a value on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(str(value))


def moment(text: "JsonValue") -> str:
    """Format a time for a table: to the second, in UTC."""
    return "" if text is None else str(text)[:19].replace("T", " ")


def moment_utc(text: "JsonValue") -> str:
    """Format a time for a sentence: to the second, with its zone."""
    return "" if text is None else f"{moment(text)} UTC"


def with_moments(text: "JsonValue") -> str:
    """Reformat the times in a sentence of the runtime."""
    return "" if text is None else _MOMENT.sub(r"\1 \2 UTC", str(text))


def counted(count: "JsonValue", things: str) -> str:
    """Format a count with its noun in singular or plural."""
    one = f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")
    return f"{count} {one if count == 1 else things}"


def span(value_ms: "JsonValue") -> str:
    """Format a duration in a suitable unit."""
    if not isinstance(value_ms, int):
        return ""
    if value_ms < _SECOND_MS:
        return f"{value_ms} ms"
    if value_ms < _MINUTE_MS:
        return f"{value_ms / _SECOND_MS:.1f} s"
    if value_ms < _HOUR_MS:
        return f"{value_ms / _MINUTE_MS:.1f} min"
    return f"{value_ms / _HOUR_MS:.1f} h"


def _narrowed(columns: Sequence[Column], widths: list[int], cells_max: int) -> list[int]:
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - cells_max
    narrowed = list(widths)
    for number in reversed(range(len(columns))):
        if over > 0 and columns[number].shrinks:
            given = min(over, max(0, narrowed[number] - _SHRUNK_CELLS_MIN))
            narrowed[number] -= given
            over -= given
    return narrowed


def _line(
    columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], cells_max: int | None
) -> str:
    parts: list[str] = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        shown = fitted(cell, cells_max=width)
        blanks = " " * (width - cells_of(shown))
        parts.append(blanks + shown if column.is_number else shown + blanks)
    line = _GAP.join(parts).rstrip()
    return line if cells_max is None else fitted(line, cells_max=cells_max)
