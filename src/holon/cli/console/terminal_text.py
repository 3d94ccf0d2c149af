"""Sanitizes external text for a terminal.

Owns:  which characters of a model's or a command's text reach a terminal, and how much fits a line.
Rule 1: output cannot move the cursor, set a title, write the clipboard or change the text
        direction: escape sequences and every control and format character are removed.
Rule 2: combining marks per character are limited, so that a line keeps its height.
Rule 3: width is counted in cells: a wide character takes two, a combining mark none.
"""

import re
import unicodedata
from typing import Final

# A string sequence (OSC, DCS, SOS, PM, APC) runs to its terminator, or to the end of the line when
# it has none; then CSI; then any other escape with its final byte.
_SEQUENCE: Final = re.compile(
    "(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\n\x07\x1b\x9c]*(?:\x1b\\\\|\x9c|\x07)?"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|\x1b[ -/]*[0-~]?"
)
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MARKS: Final = frozenset({"Mn", "Me"})
_MARKS_COUNT_MAX: Final = 4
_WIDE: Final = frozenset({"W", "F"})


def plain(text: str) -> str:
    """Remove everything a terminal would interpret, except line breaks and tabs."""
    kept: list[str] = []
    marks_count = 0
    for char in _SEQUENCE.sub("", text.replace("\r\n", "\n")):
        category = unicodedata.category(char)
        marks_count = marks_count + 1 if category in _MARKS else 0
        if char in "\n\t" or (category not in _HIDDEN and marks_count <= _MARKS_COUNT_MAX):
            kept.append(char)
    return "".join(kept)


def is_hidden(char: str) -> bool:
    """Whether a terminal would interpret this character instead of showing it."""
    return unicodedata.category(char) in _HIDDEN


def one_line(text: str) -> str:
    """Sanitize a text to a single line."""
    return " ".join(plain(text).split())


def fitted(text: str, *, cells_max: int) -> str:
    """Truncate a line to a number of cells, with an ellipsis."""
    if cells_of(text) <= cells_max:
        return text
    kept, used = "", 0
    for char in text:
        used += _cells(char)
        if used > cells_max - 1:
            break
        kept += char
    return kept + "…" if cells_max > 0 else ""


def cells_of(text: str) -> int:
    """Return the width of a line in cells."""
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.category(char) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
