"""Memory indexer: feed each agent's search index, and search it.

Owns:  how an index catches up with the rows and the two memory files, and when: before a search, as
       far as a caller may wait for it, and in the background after a change. Only agents that have
       searched are followed.
Rule 1: the rows are authoritative. An index stores the number of the last change it holds together
        with its contents, so feeding can be interrupted anywhere and continues from there.
Rule 2: the memory files are compared by hash before every search: any process may have written
        them.
Rule 3: the index only selects matching texts. Their content and trust are read from rows and files
        each time: the index lies where an agent's commands can write.
Rule 4: a lost index is fed from the beginning. A search does not wait for all of that; it reports
        how much is still missing.
Rule 5: a bug about one index is logged; it affects neither another agent's index nor the host.
"""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import msgspec

from holon.decide.memory.documents import (
    MEMORY_FILES,
    documents_of,
    file_document,
    is_visible,
    source_of,
    text_of,
    verified_hit,
)
from holon.decide.text.secrets import call_without_secrets, task_without_secrets
from holon.model.limits import (
    MEMORY_FEED_COUNT,
    MEMORY_FEED_PAUSE_MS,
    MEMORY_FEED_SEARCH_COUNT_MAX,
    MEMORY_FILE_BYTES_MAX,
)
from holon.model.memory.index import (
    FoundMemory,
    IndexFacts,
    IndexState,
    MemoryDocument,
    MemoryScope,
    MemorySource,
    MemoryStatus,
    MemoryText,
    SourcePage,
)
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolCallRecord
from holon.model.values import AgentId
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel, Redactor
from holon.ports.memory import (
    IndexLostError,
    IndexUpdate,
    MemoryIndex,
    MemoryIndexError,
    MemoryIndexes,
)
from holon.ports.reads import StoreReads
from holon.ports.workspaces import FileRefusedError, Files, PathEscapeError
from holon.runtime.background import Alarm, bug_noted
from holon.runtime.workspaces.place import AgentPlaces

T = TypeVar("T")
_TRIES_COUNT_MAX: Final = 3  # a command may damage an index again during a retry


class MemoryFeeder:
    """Feeds changed rows and files into the indexes of one host."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        agent_places: AgentPlaces,
        files: Files,
        memory_indexes: MemoryIndexes,
        redactor: Redactor,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._agent_places = agent_places
        self._files = files
        self._memory_indexes = memory_indexes
        self._redactor = redactor
        self.followed: dict[AgentId, anyio.Lock] = {}

    async def feed(self, agent_id: AgentId, *, count_max: int | None) -> tuple[str, ...]:
        """Feed all changes; returns a note on each file that could not be read."""
        async with self.lock(agent_id):
            index = self.index(agent_id)
            facts = await index.facts()
            notes = await self._mend_files(agent_id, index)
            if await self._feed_rows(agent_id, index, facts, count_max=count_max):
                await index.mark_whole()
        return notes

    async def _feed_rows(
        self, agent_id: AgentId, index: MemoryIndex, facts: IndexFacts, *, count_max: int | None
    ) -> bool:
        """Feed changed records; returns whether a dirty index is now complete."""
        reached, fed_count = facts.through_seq, 0
        while count_max is None or fed_count < count_max:
            page = await self.page(agent_id, reached, limit=MEMORY_FEED_COUNT)
            if reached > 0 and max(reached, facts.floor_seq) < page.floor_seq:
                await index.clear_for_rebuild("it missed what was pruned")
                raise IndexLostError("the memory index missed what was pruned")
            if not page.sources:
                return facts.dirty_reason is not None
            await index.apply(_update_of(page))
            reached, fed_count = page.sources[-1].change_seq, fed_count + len(page.sources)
            await anyio.lowlevel.checkpoint()
        return False

    async def page(self, agent_id: AgentId, after_seq: int, *, limit: int) -> SourcePage:
        """Return a page of the sources written after a change."""
        reads = self._reads
        page = await reads.memory.changed_sources(agent_id, after_seq=after_seq, limit=limit)
        sources = tuple(map(self._shown, page.sources))
        return msgspec.structs.replace(page, sources=sources)

    def _shown(self, source: MemorySource) -> MemorySource:
        redact = self._redactor.redact
        match source.record:
            case ToolCallRecord() as call:
                return msgspec.structs.replace(source, record=call_without_secrets(call, redact))
            case TaskRecord() as task:
                return msgspec.structs.replace(source, record=task_without_secrets(task, redact))
            case _:
                return source

    async def _mend_files(self, agent_id: AgentId, index: MemoryIndex) -> tuple[str, ...]:
        """Reindex memory files whose digest differs from the indexed one."""
        notes: list[str] = []
        indexed = await index.digests(MEMORY_FILES)
        for ref, path in MEMORY_FILES.items():
            body, problem = await self.read_file(agent_id, path)
            if problem is not None:
                notes.append(f"{path} is not searched: {problem}")
            digest = hashlib.sha256(body.encode()).hexdigest() if body.strip() else None
            if digest == indexed.get(ref):
                continue
            now = self._clock.now()
            document = file_document(agent_id, ref, body, updated_at=now)
            documents = () if digest is None else (document,)
            await index.apply(IndexUpdate(source_keys=(ref,), documents=documents))
        return tuple(notes)

    async def read_file(self, agent_id: AgentId, path: str) -> tuple[str, str | None]:
        """Return the text of a memory file, and the reason if it cannot be read."""
        try:
            files = self._files.under(self.home(agent_id))
            stored = await files.read(path, bytes_max=MEMORY_FILE_BYTES_MAX)
        except (FileRefusedError, PathEscapeError) as refused:
            return "", refused.message
        return ("" if stored is None else stored.content.decode(errors="replace")), None

    def index(self, agent_id: AgentId) -> MemoryIndex:
        """Return the index of an agent."""
        return self._memory_indexes.of(self.home(agent_id))

    def home(self, agent_id: AgentId) -> str:
        """Return the agent's directory."""
        return self._agent_places.home_of(agent_id)

    def lock(self, agent_id: AgentId) -> anyio.Lock:
        """Follow an agent from now on, and return the lock that serialises feeding its index."""
        return self.followed.setdefault(agent_id, anyio.Lock())


def _update_of(page: SourcePage) -> IndexUpdate:
    return IndexUpdate(
        source_keys=tuple(source.source_key for source in page.sources),
        documents=tuple(each for source in page.sources for each in documents_of(source)),
        through_seq=page.sources[-1].change_seq,
        floor_seq=page.floor_seq,
    )


class MemoryIndexer:
    """The memory indexes of one host."""

    def __init__(
        self,
        feeder: MemoryFeeder,
        *,
        reads: StoreReads,
        clock: Clock,
        agent_places: AgentPlaces,
        memory_indexes: MemoryIndexes,
        journal: Journal,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._agent_places = agent_places
        self._memory_indexes = memory_indexes
        self._journal = journal
        self._alarm = Alarm(self._clock)
        self._feeder = feeder
        self._due: set[AgentId] = set()
        self._is_awaited = False  # a caller waits for a rebuild: skip the pause

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Schedule feeding for those of these agents that are followed."""
        if followed := self._feeder.followed.keys() & touched:
            self._due |= followed
            self._alarm.nudge()

    def files_changed(self, agent_id: AgentId, root: str, paths: Collection[str]) -> None:
        """Schedule feeding when a tool's write changed a memory file below a root."""
        known = {f"{self._feeder.home(agent_id)}/{path}" for path in MEMORY_FILES.values()}
        if not known.isdisjoint(f"{root.rstrip('/')}/{path}" for path in paths):
            self.commit_applied((agent_id,))

    async def run(self) -> None:
        """Feed scheduled agents until cancelled."""
        if not self._memory_indexes.is_kept:
            return
        while True:
            await self._alarm.wait(until=None)
            if not self._is_awaited:
                await self._clock.sleep_for(MEMORY_FEED_PAUSE_MS)
            self._is_awaited = False
            while self._due:
                await self._feed_guarded(self._due.pop())

    async def search(
        self, agent_id: AgentId, query: str, *, limit: int, include_all_workspaces: bool = False
    ) -> FoundMemory:
        """Search everything that was durable when the search began."""
        place = await self._agent_places.current(agent_id)
        scope = MemoryScope(workspace_id=place.workspace_id, all_workspaces=include_all_workspaces)

        async def attempt() -> FoundMemory:
            notes = await self._feeder.feed(agent_id, count_max=MEMORY_FEED_SEARCH_COUNT_MAX)
            hits = await self._feeder.index(agent_id).search(query, scope, limit=limit)
            known = await self._known(agent_id, {hit.source_ref: hit.updated_at for hit in hits})
            sources = ((hit, known.get(hit.source_ref)) for hit in hits)
            visible = (verified_hit(hit, of) for hit, of in sources if of and is_visible(of, scope))
            status = await self._status(agent_id)
            return FoundMemory(hits=tuple(visible), status=status, notes=notes)

        return await _persistently(attempt)

    async def get(self, agent_id: AgentId, source_ref: str, *, chars_max: int) -> MemoryText | None:
        """Return the exact text of one of this agent's references."""

        async def attempt() -> MemoryText | None:
            await self._feeder.feed(agent_id, count_max=MEMORY_FEED_SEARCH_COUNT_MAX)
            indexed = await self._feeder.index(agent_id).get(source_ref, chars_max=1)
            if indexed is None:
                return None
            known = await self._known(agent_id, {source_ref: indexed.updated_at})
            document = known.get(source_ref)
            return None if document is None else text_of(document, chars_max=chars_max)

        return await _persistently(attempt)

    async def _known(
        self, agent_id: AgentId, updated: Mapping[str, datetime]
    ) -> Mapping[str, MemoryDocument]:
        """Rebuild the documents of these references from their sources."""
        known: dict[str, MemoryDocument] = {}
        named = {place for ref in updated if (place := source_of(ref)) is not None}
        reads = self._reads
        for source in await reads.memory.named_sources(agent_id, sorted(named)):
            known |= {document.source_ref: document for document in documents_of(source)}
        for ref in MEMORY_FILES.keys() & updated.keys():
            body, _ = await self._feeder.read_file(agent_id, MEMORY_FILES[ref])
            if body:
                known[ref] = file_document(agent_id, ref, body, updated_at=updated[ref])
        return known

    async def status(self, agent_id: AgentId) -> MemoryStatus:
        """Return the state of the agent's index."""
        return await _persistently(lambda: self._status(agent_id))

    async def rebuild(self, agent_id: AgentId) -> MemoryStatus:
        """Discard the index and feed it from the beginning, in the background."""
        async with self._feeder.lock(agent_id):
            await self._feeder.index(agent_id).clear_for_rebuild("a rebuild was requested")
        self._is_awaited = True
        self.commit_applied((agent_id,))
        return await self.status(agent_id)

    async def _status(self, agent_id: AgentId) -> MemoryStatus:
        facts = await self._feeder.index(agent_id).facts()
        page = await self._feeder.page(agent_id, facts.through_seq, limit=0)
        behind = page.left_count
        if facts.dirty_reason is not None:
            state = IndexState.REBUILDING
        else:
            state = IndexState.BEHIND if behind else IndexState.READY
        if state is not IndexState.READY and agent_id in self._feeder.followed:
            self.commit_applied((agent_id,))
        return MemoryStatus(
            agent_id=agent_id,
            state=state,
            documents_count=facts.documents_count,
            bytes=facts.bytes,
            behind_count=behind,
            reason=facts.dirty_reason,
        )

    async def _feed_guarded(self, agent_id: AgentId) -> None:
        with bug_noted(
            self._journal,
            "memory_feed_crashed",
            f"the memory of {agent_id} is not fed until its rows change (a bug)",
            agent_id=agent_id,
        ):
            await self._feed_quietly(agent_id)

    async def _feed_quietly(self, agent_id: AgentId) -> None:
        try:
            await _persistently(lambda: self._feeder.feed(agent_id, count_max=None))
        except MemoryIndexError as error:
            self._journal.note(
                "memory_index_unavailable",
                error.message,
                level=LogLevel.WARNING,
                agent_id=agent_id,
            )


async def _persistently(work: Callable[[], Awaitable[T]]) -> T:
    """Retry an operation when its index was lost in between."""
    for _ in range(_TRIES_COUNT_MAX - 1):
        try:
            return await work()
        except IndexLostError:
            continue
    return await work()
