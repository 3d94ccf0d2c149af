"""Feeds the index of an agent's memory.

Owns:  how an index is brought up to the rows and the two memory files.
Rule 1: an index remembers the number of the last change it holds, together with what it holds, so
        feeding can be cut off anywhere and goes on from there.
Rule 2: the memory files are compared by their hash every time: anything may have written them.
"""

import hashlib

import anyio
import anyio.lowlevel
import msgspec

from holon.decide.memory_documents import MEMORY_FILES, documents_of, file_document
from holon.decide.without_secrets import call_without_secrets, task_without_secrets
from holon.model.ids import AgentId
from holon.model.limits import MEMORY_FEED_COUNT, MEMORY_FILE_BYTES_MAX
from holon.model.memory_index import IndexFacts, MemorySource, SourcePage
from holon.model.task import TaskRecord
from holon.model.tool import ToolCallRecord
from holon.ports.clock import Clock
from holon.ports.files import FileRefusedError, Files, PathEscapeError
from holon.ports.memory_index import IndexLostError, IndexUpdate, MemoryIndex, MemoryIndexes
from holon.ports.redactor import Redactor
from holon.ports.store_reads import StoreReads
from holon.runtime.execution_place import AgentPlaces


class MemoryFeeder:
    """Feeds the indexes of one host."""

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
        """Feed what has changed; returns what could not be."""
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
        """Feed changed records; returns whether an index that was marked holds all of them now."""
        reached, fed_count = facts.through_seq, 0
        while count_max is None or fed_count < count_max:
            page = await self.page(agent_id, reached, limit=MEMORY_FEED_COUNT)
            if reached > 0 and max(reached, facts.floor_seq) < page.floor_seq:
                await index.begin_anew("it missed what was pruned")
                raise IndexLostError("the memory index missed what was pruned")
            if not page.sources:
                return facts.dirty_reason is not None
            await index.apply(_update_of(page))
            reached, fed_count = page.sources[-1].change_seq, fed_count + len(page.sources)
            await anyio.lowlevel.checkpoint()
        return False

    async def page(self, agent_id: AgentId, after_seq: int, *, limit: int) -> SourcePage:
        """Return a page of what was written after a change."""
        reads = self._reads
        page = await reads.changed_sources(agent_id, after_seq=after_seq, limit=limit)
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
        """Index the memory files anew where they are not what the index holds."""
        notes: list[str] = []
        held = await index.digests(MEMORY_FILES)
        for ref, path in MEMORY_FILES.items():
            body, problem = await self.read_file(agent_id, path)
            if problem is not None:
                notes.append(f"{path} is not searched: {problem}")
            digest = hashlib.sha256(body.encode()).hexdigest() if body.strip() else None
            if digest == held.get(ref):
                continue
            now = self._clock.now()
            documents = (file_document(agent_id, ref, body, updated_at=now),)
            kept = documents if digest is not None else ()
            await index.apply(IndexUpdate(source_keys=(ref,), documents=kept))
        return tuple(notes)

    async def read_file(self, agent_id: AgentId, path: str) -> tuple[str, str | None]:
        """Return the text of a memory file, and what stands in its way."""
        try:
            files = self._files.under(self.home(agent_id))
            found = await files.read(path, bytes_max=MEMORY_FILE_BYTES_MAX)
        except (FileRefusedError, PathEscapeError) as refused:
            return "", refused.message
        return ("" if found is None else found.content.decode(errors="replace")), None

    def index(self, agent_id: AgentId) -> MemoryIndex:
        """Return the index of an agent."""
        return self._memory_indexes.of(self.home(agent_id))

    def home(self, agent_id: AgentId) -> str:
        """Return the agent's directory."""
        return self._agent_places.home_of(agent_id)

    def lock(self, agent_id: AgentId) -> anyio.Lock:
        """Follow an agent from now on, and return what keeps two from feeding its index at once."""
        return self.followed.setdefault(agent_id, anyio.Lock())


def _update_of(page: SourcePage) -> IndexUpdate:
    return IndexUpdate(
        source_keys=tuple(source.source_key for source in page.sources),
        documents=tuple(each for source in page.sources for each in documents_of(source)),
        through_seq=page.sources[-1].change_seq,
        floor_seq=page.floor_seq,
    )
