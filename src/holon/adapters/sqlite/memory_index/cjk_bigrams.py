"""CJK bigrams for full-text search.

Owns:  the projection of indexed text, and the words of a query.
Rule 1: a run of CJK characters has no spaces to split at, so it becomes bigrams in text and query
        alike; its last character follows alone, so that a single character matches it too.
Rule 2: a query is built from quoted words. Nothing a caller writes acts as an operator.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from holon.model.limits import MEMORY_QUERY_WORDS_COUNT_MAX

_CJK: Final = (
    "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)


class _Patterns(NamedTuple):
    run: re.Pattern[str]
    word: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    # Not made by merely loading this: it takes as long as many a command of the whole program.
    return _Patterns(re.compile(f"[{_CJK}]+"), re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+"))


class QueryWords(NamedTuple):
    """The words of a query, as the index is asked for them and as they stand in a text."""

    quoted: tuple[str, ...]
    shown: tuple[str, ...]

    def every(self) -> str:
        """An expression that all of them must meet."""
        return " AND ".join(self.quoted)


def projected(text: str) -> str:
    """Return a text as it is indexed."""
    return text if text.isascii() else _patterns().run.sub(_pairs, text)


def query_words(text: str) -> QueryWords | None:
    """Return the words of a query, or nothing when it has none."""
    words: dict[str, None] = {}
    for word in _patterns().word.findall(text):
        for part in _parts(word):
            if len(words) < MEMORY_QUERY_WORDS_COUNT_MAX:
                words[part] = None
    if not words:
        return None
    return QueryWords(tuple(_quoted(part) for part in words), tuple(words))


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return f" {' '.join(pairs)} {run[-1]} "


def _parts(word: str) -> list[str]:
    if _patterns().run.match(word) is None or len(word) == 1:
        return [word.lower()]
    return [word[at : at + 2] for at in range(len(word) - 1)]


def _quoted(part: str) -> str:
    """One word in quotes; words hold letters and digits only, so there is nothing to escape."""
    is_single = len(part) == 1 and _patterns().run.match(part) is not None
    return f'"{part}"*' if is_single else f'"{part}"'
