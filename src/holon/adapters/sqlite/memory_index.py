"""The memory index on SQLite's full-text search.

Owns:  feeding, searching and reading one index, on a worker thread, one call at a time.
Rule 1: the exact text is stored beside its projection, which is never shown.
Rule 2: damage that shows only while working is answered like damage that shows at opening: an
        empty index, and IndexLostError for whoever asked. Text that is no UTF-8 is damage.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import apsw

from holon.adapters.sqlite.cjk_bigrams import projected
from holon.adapters.sqlite.memory_file import DamagedIndexError, MemoryFile, is_damage
from holon.adapters.sqlite.memory_rows import row_values, text_of
from holon.adapters.sqlite.memory_search import search
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Row
from holon.model.memory import MemoryHit
from holon.model.memory_index import IndexFacts, MemoryDocument, MemoryScope, MemoryText
from holon.ports.memory_index import IndexLostError, IndexUpdate, MemoryIndexError

T = TypeVar("T")
INDEX_FOLDER: Final = ".holon/indexes"


class SqliteMemoryIndex:
    """One index."""

    def __init__(self, agent_home: str) -> None:
        self._file = MemoryFile(Path(agent_home) / INDEX_FOLDER)
        self._sql = named_queries("memory_index")
        self._connection: apsw.Connection | None = None
        self._turn = anyio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether somebody uses it right now."""
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
            found: dict[str, str] = {}
            for ref in source_refs:
                for (digest,) in connection.execute(self._sql["digest"], (ref,)).fetchall():
                    found[ref] = str(digest)
            return found

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

    async def begin_anew(self, reason: str) -> None:
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
