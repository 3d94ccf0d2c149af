"""The memory search index on SQLite FTS.

Owns:  feeding, searching and reading one index, on a worker thread, one call at a time; its columns
       and their records; the two passes of a search, and the snippet of a hit.
Rule 1: an unreadable row is damage: the index is derived data, so it is rebuilt. Damage found while
        working is handled like damage at opening: an empty index, and IndexLostError for the
        caller. Text that is not UTF-8 is damage.
Rule 2: texts with every word come first. Only when those are few does a second pass search for some
        of the words: the rare ones, or all of them when all are common.
Rule 3: of the matches, the newest are ranked, up to a limit: a ubiquitous word costs no more than a
        rare one. The second pass stops after a time limit.
Rule 4: a snippet is cut from the original text, which is stored beside its projection; the
        projection is never shown.
"""

import hashlib
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import anyio
import anyio.to_thread
import apsw
import msgspec

from holon.adapters.sqlite.database.row_codec import encode
from holon.adapters.sqlite.database.statements import Row, named_queries
from holon.adapters.sqlite.memory_index.cjk_bigrams import QueryWords, projected, query_words
from holon.adapters.sqlite.memory_index.index_file import DamagedIndexError, MemoryFile, is_damage
from holon.model.limits import (
    MEMORY_DOCUMENT_CHARS_MAX,
    MEMORY_RANKED_COUNT_MAX,
    MEMORY_SEARCH_MS_MAX,
    MEMORY_SNIPPET_CHARS_MAX,
)
from holon.model.memory.index import (
    IndexFacts,
    MemoryDocument,
    MemoryKind,
    MemoryScope,
    MemoryText,
    ScopeKind,
)
from holon.model.memory.records import MemoryHit
from holon.model.queue import AuthorityClass
from holon.model.values import AgentId, WorkspaceId, from_micros, to_micros
from holon.ports.memory import IndexLostError, IndexUpdate, MemoryIndexError

_METADATA: Final = msgspec.json.Decoder(dict[str, str])
_STEPS_BETWEEN_LOOKS: Final = 2_000  # of SQLite's machine, before the clock is looked at again
_LEAD_CHARS: Final = MEMORY_SNIPPET_CHARS_MAX // 4
_SPACE: Final = re.compile(r"\s+")
T = TypeVar("T")
INDEX_FOLDER: Final = ".holon/indexes"


class DocumentRow(NamedTuple):
    """The columns of every query for documents."""

    rank: float
    source_ref: str
    kind: str
    scope_kind: str
    workspace_id: str | None
    agent_id: str
    source_path: str | None
    title: str
    updated_at: int
    authority_class: str
    metadata: str
    body: str


class DocumentValues(NamedTuple):
    """The columns a document is stored in."""

    source_ref: str
    source_key: str
    kind: str
    scope_kind: str
    workspace_id: str | None
    agent_id: str
    source_path: str | None
    title: str
    updated_at: int
    authority_class: str
    metadata: str
    digest: str
    body: str


def row_values(document: MemoryDocument, *, digest: str) -> DocumentValues:
    """Return what is stored of a document."""
    return DocumentValues(
        source_ref=document.source_ref,
        source_key=document.source_key,
        kind=document.kind.value,
        scope_kind=document.scope_kind.value,
        workspace_id=document.workspace_id,
        agent_id=document.agent_id,
        source_path=document.source_path,
        title=_storable(document.title),
        updated_at=to_micros(document.updated_at),
        authority_class=document.authority_class.value,
        metadata=encode(document.metadata),
        digest=digest,
        body=_storable(document.body[:MEMORY_DOCUMENT_CHARS_MAX]),
    )


def hit_of(row: Row, *, snippet: str) -> MemoryHit:
    """Return a row as a search result."""
    document = DocumentRow._make(row)
    text = text_of(row, chars_max=1)
    return MemoryHit(
        kind=text.kind.value,
        source_ref=text.source_ref,
        scope_kind=text.scope_kind.value,
        agent_id=text.agent_id,
        title=text.title,
        snippet=snippet,
        score=round(-document.rank, 6),
        updated_at=text.updated_at,
        authority_class=text.authority_class,
        workspace_id=text.workspace_id,
        source_path=text.source_path,
        metadata=text.metadata,
    )


def text_of(row: Row, *, chars_max: int) -> MemoryText:
    """Return a row with its exact text, within a bound."""
    document = DocumentRow._make(row)
    workspace_id = document.workspace_id
    try:
        return MemoryText(
            kind=MemoryKind(document.kind),
            source_ref=document.source_ref,
            scope_kind=ScopeKind(document.scope_kind),
            agent_id=AgentId(document.agent_id),
            title=document.title,
            updated_at=from_micros(document.updated_at),
            authority_class=AuthorityClass(document.authority_class),
            content=document.body[:chars_max],
            truncated=len(document.body) > chars_max,
            workspace_id=None if workspace_id is None else WorkspaceId(workspace_id),
            source_path=document.source_path,
            metadata=_METADATA.decode(document.metadata),
        )
    except (ValueError, OverflowError, msgspec.DecodeError) as damage:
        raise DamagedIndexError(f"a row cannot be read: {damage}") from damage


def _storable(text: str) -> str:
    """A text without what UTF-8 has no form for."""
    return text.encode(errors="replace").decode()


def search(
    connection: apsw.Connection, query: str, scope: MemoryScope, *, limit: int
) -> list[MemoryHit]:
    """Return what the words of a query are found in, best first."""
    words = query_words(query)
    if words is None:
        return []
    rows = _search_all_words(connection, words.every(), scope, limit=limit)
    if len(rows) < limit and len(words.quoted) > 1:
        refs = {row[1] for row in rows}
        more = _search_some_words(connection, words, scope, limit=limit)
        rows = [*rows, *(row for row in more if row[1] not in refs)][:limit]
    shown = _shown_pattern(words)
    return [hit_of(row, snippet=_snippet(DocumentRow._make(row).body, shown)) for row in rows]


def _search_all_words(
    connection: apsw.Connection, expression: str, scope: MemoryScope, *, limit: int
) -> list[Row]:
    sql = named_queries("memory_index")["search"]
    whole, workspace_id = int(scope.all_workspaces), scope.workspace_id
    parameters = (expression, whole, workspace_id, limit, MEMORY_RANKED_COUNT_MAX)
    return connection.execute(sql, parameters).fetchall()


def _search_some_words(
    connection: apsw.Connection, words: QueryWords, scope: MemoryScope, *, limit: int
) -> list[Row]:
    # The time this thread has worked, not the time that has passed: a busy machine finds as much.
    until_ns = time.thread_time_ns() + MEMORY_SEARCH_MS_MAX * 1_000_000
    connection.set_progress_handler(lambda: time.thread_time_ns() > until_ns, _STEPS_BETWEEN_LOOKS)
    try:
        rare = [word for word in words.quoted if _is_rare(connection, word)]
        return _search_all_words(connection, " OR ".join(rare or words.quoted), scope, limit=limit)
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


class SqliteMemoryIndex:
    """One index."""

    def __init__(self, agent_home: str) -> None:
        self._file = MemoryFile(Path(agent_home) / INDEX_FOLDER)
        self._sql = named_queries("memory_index")
        self._connection: apsw.Connection | None = None
        self._turn = anyio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a call is running on it."""
        return self._turn.locked()

    async def search(self, query: str, scope: MemoryScope, *, limit: int) -> Sequence[MemoryHit]:
        """Return what the words of a query are found in, best first."""
        return await self._run(lambda connection: search(connection, query, scope, limit=limit))

    async def get(self, source_ref: str, *, chars_max: int) -> MemoryText | None:
        """Return the exact text behind a reference, or None when there is no such document."""

        def read(connection: apsw.Connection) -> MemoryText | None:
            rows = connection.execute(self._sql["get"], (source_ref,)).fetchall()
            return text_of(rows[0], chars_max=chars_max) if rows else None

        return await self._run(read)

    async def digests(self, source_refs: Collection[str]) -> Mapping[str, str]:
        """Return the sha256 of the bodies that are held under these references."""

        def read(connection: apsw.Connection) -> dict[str, str]:
            digests_by_ref: dict[str, str] = {}
            for ref in source_refs:
                for (digest,) in connection.execute(self._sql["digest"], (ref,)).fetchall():
                    digests_by_ref[ref] = str(digest)
            return digests_by_ref

        return await self._run(read)

    async def facts(self) -> IndexFacts:
        """Say how far the index has come."""

        def read(connection: apsw.Connection) -> IndexFacts:
            progressed = connection.execute(self._sql["progressed"]).fetchall()
            through_seq, floor_seq = _numbers(progressed)
            (documents_count,) = _numbers(
                connection.execute(self._sql["count_documents"]).fetchall()
            )
            return IndexFacts(
                through_seq=through_seq,
                floor_seq=floor_seq,
                documents_count=documents_count,
                bytes=self._file.size_bytes(),
                dirty_reason=self._file.dirty_reason(),
            )

        return await self._run(read)

    async def apply(self, update: IndexUpdate) -> None:
        """Replace documents, and remember how far the feeding has come."""
        await self._run(lambda connection: _apply(connection, update))

    async def clear_for_rebuild(self, reason: str) -> None:
        """Throw everything away; the index is marked until it is whole."""

        def remake() -> None:
            self._let_go()
            self._connection = self._file.make(reason)

        async with self._turn:
            await anyio.to_thread.run_sync(remake)

    async def mark_whole(self) -> None:
        """Everything was fed: the mark is taken away."""
        await self._run(lambda _: self._file.clear_mark())

    async def close(self) -> None:
        """Let go of the file."""
        async with self._turn:
            await anyio.to_thread.run_sync(self._let_go)

    async def _run(self, work: Callable[[apsw.Connection], T]) -> T:
        async with self._turn:
            return await anyio.to_thread.run_sync(self._guarded, work)

    def _guarded(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            return work(self._opened())
        except (DamagedIndexError, UnicodeDecodeError) as damage:
            raise self._lost(str(damage)) from damage
        except apsw.Error as error:
            if is_damage(error):
                raise self._lost(str(error)) from error
            self._let_go()
            raise MemoryIndexError(f"the memory index cannot be used now: {error}") from error
        except OSError as error:
            self._let_go()
            raise MemoryIndexError(f"the memory index cannot be used: {error.strerror}") from error

    def _opened(self) -> apsw.Connection:
        if self._connection is None or not self._file.path.exists():
            self._let_go()
            self._connection = self._file.open()
        return self._connection

    def _lost(self, why: str) -> IndexLostError:
        self._let_go()
        self._connection = self._file.make(why)
        return IndexLostError(f"the memory index was begun anew: {why}")

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _apply(connection: apsw.Connection, update: IndexUpdate) -> None:
    sql = named_queries("memory_index")
    with connection:
        for key in update.source_keys:
            connection.execute(sql["forget_words"], (key,))
            connection.execute(sql["forget_documents"], (key,))
        for document in update.documents:
            _add(connection, document)
        if update.through_seq is not None:
            reached = (update.through_seq, update.floor_seq)
            connection.execute(sql["move_on"], reached)


def _add(connection: apsw.Connection, document: MemoryDocument) -> None:
    sql = named_queries("memory_index")
    digest = hashlib.sha256(document.body.encode(errors="surrogatepass")).hexdigest()
    values = row_values(document, digest=digest)
    connection.execute(sql["add_document"], values)
    title, body = projected(document.title), projected(values[-1])
    connection.execute(sql["add_words"], (connection.last_insert_rowid(), _valid(title), body))


def _valid(text: str) -> str:
    return text.encode(errors="replace").decode()


def _numbers(rows: Sequence[Row]) -> list[int]:
    if len(rows) != 1:
        raise DamagedIndexError("a row that is always there is missing")
    return [value if isinstance(value, int) else 0 for value in rows[0]]
