"""Reasoning that a server leaves in the text of an answer, between `<think>` and `</think>`.

Owns:  telling it from the words of the answer, of a whole text and of a stream.
Rule 1: only what an answer begins with counts, as servers' own parsers have it: further behind, the
        marks are words like any others. Without an end, all of it is reasoning.
Rule 2: every character is looked at a fixed number of times, however the stream is cut.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from holon.model.answer import AnswerProgress, TextGrew, ThinkingGrew
from holon.model.conversation import THINK_OPENING

OPENING: Final = THINK_OPENING
CLOSING: Final = "</think>"
_BLANK: Final = re.compile(r"\s*")


class Split(NamedTuple):
    """A text's reasoning, and its words."""

    thoughts: str
    words: str


def split_thoughts(text: str) -> Split:
    """Return what an answer thought before its words, and the words."""
    thoughts, at = list[str](), 0
    while text.startswith(OPENING, start := _first_letter(text, at)):
        begin = start + len(OPENING)
        end = text.find(CLOSING, begin)
        if end < 0:
            thoughts.append(text[begin:])
            at = len(text)
            break
        thoughts.append(text[begin:end])
        at = end + len(CLOSING)
    if not thoughts:
        return Split("", text)
    return Split("\n\n".join(filter(None, map(str.strip, thoughts))), text[at:].lstrip())


def _first_letter(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


class GrowingText:
    """The text of one streamed answer, told as words and reasoning while it grows."""

    def __init__(self) -> None:
        self._is_words = False
        self._is_thought = False
        self._had_thought = False
        self._kept = ""  # what may be the beginning of a mark
        self._blank: list[str] = []

    def feed(self, piece: str) -> list[AnswerProgress]:
        """Take a piece in; return what it lets a watcher see."""
        return list(self._told(piece))

    def _told(self, piece: str) -> Iterator[AnswerProgress]:
        text, at = self._kept + piece, 0
        self._kept = ""
        while at < len(text) and not self._is_words:
            if self._is_thought:
                end = text.find(CLOSING, at)
                self._is_thought = end < 0
                upto = end if end >= 0 else self._held_back(text, at)
                if upto > at:
                    yield ThinkingGrew(text=text[at:upto])
                at = len(text) if end < 0 else end + len(CLOSING)
                continue
            start = _first_letter(text, at)
            self._blank.append(text[at:start])
            at = start
            if text.startswith(OPENING, at):
                self._is_thought, self._had_thought = True, True
                at += len(OPENING)
            elif len(text) - at < len(OPENING) and OPENING.startswith(text[at:]):
                self._kept, at = text[at:], len(text)
            else:
                self._is_words = True
                if not self._had_thought:
                    yield TextGrew(text="".join(self._blank) + text[at:])
                    return
        if at < len(text):
            yield TextGrew(text=text[at:])

    def _held_back(self, text: str, at: int) -> int:
        """Keep back what may be the beginning of the closing mark; return where it begins."""
        longest = min(len(CLOSING) - 1, len(text) - at)
        kept = next((n for n in range(longest, 0, -1) if CLOSING.startswith(text[-n:])), 0)
        self._kept = text[len(text) - kept :]
        return len(text) - kept
