"""Memory search and the episode ledger: derived, disposable, never the source of truth.

Contract of MemoryIndex:
- an index can be built again from durable rows. A file that is missing, cut short, damaged, foreign
  or of another version is discarded: `IndexLostError` says that the index is empty now and has to
  be fed from the beginning;
- `apply` is atomic, together with the position it stores, so that feeding the same changes twice
  does no harm;
- queries are words: no text in one is a command to the index;
- no call blocks the event loop on the disk.
Errors: IndexLostError (empty now; feed it and ask again), MemoryIndexError (cannot be used now).

Contract of EpisodeLedger:
- episodes are only appended, each as one whole line of JSON;
- `last_id` reads back the newest whole line, so that an interrupted writer can continue where the
  file stands; a partial last line is removed before the next is appended;
- no link is followed on the way to the file. An agent without a home has no ledger;
- no call blocks the event loop on the disk.
Errors: LedgerError, when the file cannot be read or written.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from holon.model.errors import HolonError
from holon.model.memory.index import (
    FoundMemory,
    IndexFacts,
    MemoryDocument,
    MemoryScope,
    MemoryStatus,
    MemoryText,
)
from holon.model.memory.records import EpisodeRecord, MemoryHit
from holon.model.record import Record
from holon.model.values import AgentId, EpisodeId


class MemoryIndexError(HolonError):
    """The index cannot be used now."""

    code = "memory_index_unavailable"
    hint = "go on without memory, or look at the files under the agent's home and try again"


class IndexLostError(MemoryIndexError):
    """The index was lost; it is empty now and can be fed again."""

    code = "memory_index_lost"


class NoMemoryIndexError(MemoryIndexError):
    """The host keeps no index."""

    code = "unsupported_runtime_capability"
    hint = "go on without memory"


class IndexUpdate(Record, frozen=True, kw_only=True):
    """Everything that was made of `source_keys` is replaced by `documents`."""

    source_keys: tuple[str, ...] = ()
    documents: tuple[MemoryDocument, ...] = ()
    through_seq: int | None = None
    floor_seq: int = 0  # the oldest position from which removals were known when this was read


class MemoryIndex(Protocol):
    """The index of one agent."""

    async def search(self, query: str, scope: MemoryScope, *, limit: int) -> Sequence[MemoryHit]:
        """Return the documents that match the words of a query, best first."""
        ...

    async def get(self, source_ref: str, *, chars_max: int) -> MemoryText | None:
        """Return the exact text behind a reference, or None when no such document exists."""
        ...

    async def digests(self, source_refs: Collection[str]) -> Mapping[str, str]:
        """Return the sha256 of the bodies that are held under these references."""
        ...

    async def facts(self) -> IndexFacts:
        """Return how far the index has come."""
        ...

    async def apply(self, update: IndexUpdate) -> None:
        """Replace documents, and remember how far the feeding has come."""
        ...

    async def clear_for_rebuild(self, reason: str) -> None:
        """Discard everything; the index is marked until it is whole."""
        ...

    async def mark_whole(self) -> None:
        """Everything was fed: the mark is taken away."""
        ...


class MemoryIndexes(Protocol):
    """The indexes of a host's agents."""

    @property
    def is_kept(self) -> bool:
        """Whether memory can be indexed at all."""
        ...

    def of(self, agent_home: str) -> MemoryIndex:
        """Return the index that lies in an agent's home."""
        ...


class NoMemoryIndexes:
    """A host that keeps no index."""

    is_kept = False

    def of(self, agent_home: str) -> MemoryIndex:
        """Refuse."""
        raise NoMemoryIndexError(f"this host keeps no memory index for {agent_home}")


class MemoryRecall(Protocol):
    """Searching an agent's memory, as tools and surfaces do it."""

    async def search(
        self, agent_id: AgentId, query: str, *, limit: int, include_all_workspaces: bool = False
    ) -> FoundMemory:
        """Return what is found, of everything that was durable when the search began."""
        ...

    async def get(self, agent_id: AgentId, source_ref: str, *, chars_max: int) -> MemoryText | None:
        """Return the exact text behind a reference of this very agent's."""
        ...

    async def status(self, agent_id: AgentId) -> MemoryStatus:
        """Return the state of the agent's index."""
        ...

    def files_changed(self, agent_id: AgentId, root: str, paths: Collection[str]) -> None:
        """A controlled write changed these files below a root: memory files are checked soon."""
        ...


class NoRecall:
    """A host whose agents cannot search."""

    async def search(
        self, agent_id: AgentId, query: str, *, limit: int, include_all_workspaces: bool = False
    ) -> FoundMemory:
        """Refuse."""
        raise _no_recall()

    async def get(self, agent_id: AgentId, source_ref: str, *, chars_max: int) -> MemoryText | None:
        """Refuse."""
        raise _no_recall()

    async def status(self, agent_id: AgentId) -> MemoryStatus:
        """Refuse."""
        raise _no_recall()

    def files_changed(self, agent_id: AgentId, root: str, paths: Collection[str]) -> None:
        """Ignore the change."""


def _no_recall() -> MemoryIndexError:
    return NoMemoryIndexError("this host keeps no memory index")


class LedgerError(HolonError):
    """The ledger cannot be read or written."""

    code = "episode_ledger_unusable"
    hint = "look at .holon/ledger in the agent's home; the episodes themselves are safe"


class EpisodeLedger(Protocol):
    """The ledgers of a host's agents."""

    @property
    def is_kept(self) -> bool:
        """Whether ledgers exist at all."""
        ...

    async def last_id(self, agent_home: str) -> EpisodeId | None:
        """Return the id of the newest episode that stands in the ledger."""
        ...

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        """Add episodes at the end, in this order."""
        ...


class NoLedger:
    """A host that keeps no ledgers."""

    is_kept = False

    async def last_id(self, agent_home: str) -> EpisodeId | None:
        """No ledger exists."""
        del agent_home
        return None

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        """Nothing is kept."""
