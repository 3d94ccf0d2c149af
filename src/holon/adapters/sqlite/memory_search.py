"""Searching a memory index.

Owns:  the two looks of a search, and the snippet of a hit.
Rule 1: texts with every word come first. Only when those are few is it looked for texts with some
        of the words: the rare ones, or all of them when all are common.
Rule 2: of what matches, the newest are ranked, up to a number: a word that is everywhere costs no
        more than one that is not. The second look is given up when it has worked for a while.
Rule 3: a snippet is cut out of the original text.
"""

import re
import time
from typing import Final

import apsw

from holon.adapters.sqlite.cjk_bigrams import QueryWords, query_words
from holon.adapters.sqlite.memory_rows import FoundRow, hit_of
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Row
from holon.model.limits import (
    MEMORY_RANKED_COUNT_MAX,
    MEMORY_SEARCH_MS_MAX,
    MEMORY_SNIPPET_CHARS_MAX,
)
from holon.model.memory import MemoryHit
from holon.model.memory_index import MemoryScope

_STEPS_BETWEEN_LOOKS: Final = 2_000  # of SQLite's machine, before the clock is looked at again
_LEAD_CHARS: Final = MEMORY_SNIPPET_CHARS_MAX // 4
_SPACE: Final = re.compile(r"\s+")


def search(
    connection: apsw.Connection, query: str, scope: MemoryScope, *, limit: int
) -> list[MemoryHit]:
    """Return what the words of a query are found in, best first."""
    words = query_words(query)
    if words is None:
        return []
    found = _look(connection, words.every(), scope, limit=limit)
    if len(found) < limit and len(words.quoted) > 1:
        known = {row[1] for row in found}
        more = _look_a_while(connection, words, scope, limit=limit)
        found = [*found, *(row for row in more if row[1] not in known)][:limit]
    shown = _shown_pattern(words)
    return [hit_of(row, snippet=_snippet(FoundRow._make(row).body, shown)) for row in found]


def _look(
    connection: apsw.Connection, expression: str, scope: MemoryScope, *, limit: int
) -> list[Row]:
    sql = named_queries("memory_index")["search"]
    whole, workspace_id = int(scope.all_workspaces), scope.workspace_id
    parameters = (expression, whole, workspace_id, limit, MEMORY_RANKED_COUNT_MAX)
    return connection.execute(sql, parameters).fetchall()


def _look_a_while(
    connection: apsw.Connection, words: QueryWords, scope: MemoryScope, *, limit: int
) -> list[Row]:
    # The time this thread has worked, not the time that has passed: a busy machine finds as much.
    until_ns = time.thread_time_ns() + MEMORY_SEARCH_MS_MAX * 1_000_000
    connection.set_progress_handler(lambda: time.thread_time_ns() > until_ns, _STEPS_BETWEEN_LOOKS)
    try:
        rare = [word for word in words.quoted if _is_rare(connection, word)]
        return _look(connection, " OR ".join(rare or words.quoted), scope, limit=limit)
    except apsw.InterruptError:
        return []  # what has every word was found before
    finally:
        connection.set_progress_handler(None)


def _is_rare(connection: apsw.Connection, quoted: str) -> bool:
    sql = named_queries("memory_index")["count_matches"]
    rows = connection.execute(sql, (quoted, MEMORY_RANKED_COUNT_MAX)).fetchall()
    return rows[0][0] != MEMORY_RANKED_COUNT_MAX


def _shown_pattern(words: QueryWords) -> re.Pattern[str]:
    longest_first = sorted(words.shown, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)


def _snippet(body: str, shown: re.Pattern[str]) -> str:
    """Some of the text around the first word that is found in it."""
    match = shown.search(body)
    start = 0 if match is None else max(0, match.start() - _LEAD_CHARS)
    cut = body[start : start + MEMORY_SNIPPET_CHARS_MAX]
    before = "…" if start else ""
    after = "…" if start + MEMORY_SNIPPET_CHARS_MAX < len(body) else ""
    return before + _SPACE.sub(" ", cut).strip() + after
