"""Texts that others wrote, cut to a size a surface can carry.

Owns:  the bounds of texts from models, commands and the outside wherever a view shows them.
Rule 1: a cut text says so: a line for people ends in an ellipsis, a view has a flag beside it.
Rule 2: a line for people has no line breaks and no control characters. What a terminal must not
        see besides is the terminal's to remove.
"""

from typing import Final

from holon.decide.bounded_text import BoundedText
from holon.model.limits import SUMMARY_CHARS_MAX, SURFACE_TEXT_CHARS_MAX

_ELLIPSIS: Final = "…"


def one_line(text: str, *, chars_max: int = SUMMARY_CHARS_MAX) -> str:
    """Return the text as words on one line, no longer than asked."""
    # Words beyond the bound are never looked at, so a huge text costs no more than a small one.
    head = text[: 4 * chars_max]
    words = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    if len(words) <= chars_max and len(head) == len(text):
        return words
    return words[: chars_max - 1] + _ELLIPSIS


def bounded(text: str, *, chars_max: int = SURFACE_TEXT_CHARS_MAX) -> BoundedText:
    """Return the beginning of a text, and whether there was more."""
    return BoundedText(text=text[:chars_max], truncated=len(text) > chars_max)
