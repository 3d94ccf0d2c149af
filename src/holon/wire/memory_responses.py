"""Memory over HTTP.

Owns:  the shapes of what a search and a rebuild answer with.
"""

from typing import Literal

from holon.model.memory import MemoryHit
from holon.model.memory_index import MemoryStatus
from holon.model.record import Record


class MemoryHits(Record, frozen=True, kw_only=True):
    """What was found, best first, and how the index stood."""

    results: tuple[MemoryHit, ...]
    index: MemoryStatus
    notes: tuple[str, ...] = ()


class RebuildAnswer(Record, frozen=True, kw_only=True):
    """How the index stands after it was begun anew."""

    ok: Literal[True]
    index: MemoryStatus
