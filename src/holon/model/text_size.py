"""Text sizes: counting bytes and cutting a line to a size.

Owns:  byte counts for prompt budgets, and the one function that cuts a line. Text for a model that
       may hide something is `quoted` first (decide/text/fencing), output keeps its end as well
       (decide/text/bounded), a terminal counts in cells.
Rule 1: a cut text ends in an ellipsis, which counts.
Rule 2: text far beyond the cut is not scanned: it may be a megabyte of blanks.
"""

from holon.model.limits import SUMMARY_CHARS_MAX

_LOOK_AHEAD: int = 8  # blanks between words are no part of a line
_ELLIPSIS = "…"


def utf8_bytes(text: str) -> int:
    """Return how many bytes a text has in UTF-8; of plain ASCII without making a copy of it."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, *, chars_max: int) -> str:
    """Return a text within so many characters."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + _ELLIPSIS


def one_line(text: str, *, chars_max: int = SUMMARY_CHARS_MAX) -> str:
    """Return the printable words of a text on one line for people, within so many characters."""
    head = readable_prefix(text, chars_max=chars_max)
    words = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    is_whole = len(words) <= chars_max and len(head) == len(text)
    return words if is_whole else words[: chars_max - 1] + _ELLIPSIS


def readable_prefix(text: str, *, chars_max: int) -> str:
    """Return as much of a text as can come into a line of so many characters."""
    return text[: _LOOK_AHEAD * chars_max]
