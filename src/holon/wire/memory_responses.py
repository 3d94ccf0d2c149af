"""Memory over HTTP.

Owns:  the shapes of what a search, a look at a text or an index, and a rebuild answer with.
Rule 1: a hit and a text have every field: what a document does not have is null, as tools show it.
"""

from typing import Literal

from holon.model.memory import MemoryHit
from holon.model.memory_index import MemoryStatus, MemoryText
from holon.model.record import Record


class ShownHit(MemoryHit, frozen=True, kw_only=True, omit_defaults=False):
    """One search result, with every field."""


class ShownText(MemoryText, frozen=True, kw_only=True, omit_defaults=False):
    """The exact text behind a hit, with every field."""


class ShownIndex(MemoryStatus, frozen=True, kw_only=True, omit_defaults=False):
    """How an agent's index stands, and what it cannot hold."""

    notes: tuple[str, ...] = ()


class MemoryHits(Record, frozen=True, kw_only=True):
    """What was found, best first, and how the index stood."""

    results: tuple[ShownHit, ...]
    index: MemoryStatus
    notes: tuple[str, ...] = ()


class RebuildAnswer(Record, frozen=True, kw_only=True):
    """How the index stands after it was begun anew."""

    ok: Literal[True]
    index: MemoryStatus
