"""What searching a long memory costs.

Owns:  an index of 100,000 documents in two languages: feeding it from nothing, adding one document
       to it, and searching it, each with words as common and as rare as words are.
"""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Final

from bench.measure import Measurement, median
from holon.adapters.sqlite.memory_index.index import SqliteMemoryIndex
from holon.model.limits import MEMORY_FEED_COUNT
from holon.model.memory.index import MemoryDocument, MemoryKind, MemoryScope
from holon.model.queue import AuthorityClass
from holon.model.values import AgentId, WorkspaceId
from holon.ports.memory import IndexUpdate

DOCUMENTS_COUNT: Final = 100_000
SEARCHES_COUNT: Final = 300
ADDED_COUNT: Final = 200
SEARCH_MS_MAX: Final = 20.0
ADD_MS_MAX: Final = 5.0
FEED_PER_S_MIN: Final = 5_000.0
_WORDS_COUNT: Final = 20_000
_SIGNS_COUNT: Final = 2_500
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SCOPE: Final = MemoryScope(workspace_id=WorkspaceId("ws_3"))


class _Tongue:
    """Makes texts whose words are as unevenly used as words are."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._chance.choices(letters, k=self._chance.randint(3, 10)))
            for _ in range(_WORDS_COUNT)
        ]
        self._signs = [chr(0x4E00 + at) for at in range(_SIGNS_COUNT)]
        self._word_weights = list(accumulate(1 / (at + 3) for at in range(_WORDS_COUNT)))
        self._sign_weights = list(accumulate(1 / (at + 8) for at in range(_SIGNS_COUNT)))

    def text(self, *, words_count: int, signs_count: int) -> str:
        """Return some words and some Chinese."""
        words = self._chance.choices(self._words, cum_weights=self._word_weights, k=words_count)
        signs = self._chance.choices(self._signs, cum_weights=self._sign_weights, k=signs_count)
        return f"{' '.join(words)} {''.join(signs)}".strip()


def _documents(tongue: _Tongue, count: int, *, first: int = 0) -> Iterator[MemoryDocument]:
    for at in range(first, first + count):
        is_chinese = at % 4 == 0
        yield MemoryDocument(
            kind=MemoryKind.BRIEF,
            source_ref=f"brief:{at}",
            source_key=f"brief:{at}",
            agent_id=AgentId("main"),
            title=tongue.text(words_count=4, signs_count=0),
            body=tongue.text(
                words_count=8 if is_chinese else 40, signs_count=40 if is_chinese else 0
            ),
            updated_at=_AT,
            authority_class=AuthorityClass.RUNTIME_INSTRUCTION,
            workspace_id=WorkspaceId(f"ws_{at % 5}") if at % 2 else None,
        )


async def run() -> list[Measurement]:
    """Feed, add, search."""
    tongue = _Tongue(7)
    with tempfile.TemporaryDirectory() as home:
        index = SqliteMemoryIndex(str(Path(home) / "main"))
        await index.clear_for_rebuild("a bench")
        fed = await _feed(index, list(_documents(tongue, DOCUMENTS_COUNT)))
        added_ms = await _add(index, tongue)
        searched_ms = await _search(index, tongue)
        await index.close()
    return [
        Measurement(
            name=f"memory search over {DOCUMENTS_COUNT:,} documents, median",
            measured=median(searched_ms),
            target=SEARCH_MS_MAX,
            unit=" ms",
            detail=f"p95 {sorted(searched_ms)[len(searched_ms) * 95 // 100]:.1f} ms",
        ),
        Measurement(
            name="memory index, adding one document, median",
            measured=median(added_ms),
            target=ADD_MS_MAX,
            unit=" ms",
        ),
        Measurement(
            name=f"memory index, feeding {DOCUMENTS_COUNT:,} documents, ms for a thousand",
            measured=1e6 / fed,
            target=1e6 / FEED_PER_S_MIN,
            unit=" ms",
            detail=f"{fed:,.0f} documents/s",
        ),
    ]


async def _feed(index: SqliteMemoryIndex, documents: Sequence[MemoryDocument]) -> float:
    began = time.perf_counter()
    for at, some in enumerate(_lots(documents)):
        keys = tuple(each.source_key for each in some)
        await index.apply(IndexUpdate(source_keys=keys, documents=some, through_seq=at))
    await index.mark_whole()
    return len(documents) / (time.perf_counter() - began)


def _lots(documents: Sequence[MemoryDocument]) -> Iterator[tuple[MemoryDocument, ...]]:
    for start in range(0, len(documents), MEMORY_FEED_COUNT):
        yield tuple(documents[start : start + MEMORY_FEED_COUNT])


async def _add(index: SqliteMemoryIndex, tongue: _Tongue) -> list[float]:
    spent: list[float] = []
    for document in _documents(tongue, ADDED_COUNT, first=DOCUMENTS_COUNT):
        began = time.perf_counter()
        await index.apply(IndexUpdate(source_keys=(document.source_key,), documents=(document,)))
        spent.append(1_000 * (time.perf_counter() - began))
    return spent


async def _search(index: SqliteMemoryIndex, tongue: _Tongue) -> list[float]:
    spent: list[float] = []
    for at in range(SEARCHES_COUNT):
        is_chinese = at % 3 == 0
        query = tongue.text(words_count=0 if is_chinese else 3, signs_count=4 if is_chinese else 0)
        began = time.perf_counter()
        await index.search(query, _SCOPE, limit=10)
        spent.append(1_000 * (time.perf_counter() - began))
    return spent
