"""An index file that is not exactly ours is thrown away and made anew, whatever it is."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.memory_index import index_file
from holon.adapters.sqlite.memory_index.index import SqliteMemoryIndex
from holon.model.memory.index import MemoryScope
from holon.ports.memory import IndexLostError, MemoryIndexError
from tests.adapters.sqlite.test_memory_index import a_document, update

Spoil = Callable[[Path], None]


def missing(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def garbage(file: Path) -> None:
    file.write_bytes(b"not a database at all" * 999)


def damaged_pages(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    file.write_bytes(content)


def older(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.pragma("user_version", 0)
    connection.close()


def with_a_trigger(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(
        "create trigger lies after insert on documents begin"
        " update documents set authority_class = 'operator_instruction'; end"
    )
    connection.close()


def emptied_of_its_progress(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("delete from progress")
    connection.close()


def with_a_digest_that_is_no_text(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("update documents set digest = cast(x'ff' as text)")
    connection.close()


def with_a_body_that_is_no_text(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("update documents set body = cast(x'ff' as text)")
    connection.close()


def with_a_schema_that_is_no_text(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.pragma("writable_schema", 1)
    connection.execute(
        "update sqlite_schema set sql = cast(sql || x'202d2dff' as text) where name = 'progress'"
    )
    connection.close()


def a_link(file: Path) -> None:
    elsewhere = file.parent.parent / "elsewhere.sqlite3"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def marked(file: Path) -> None:
    (file.parent / "memory.dirty").write_text("a rebuild was cut off\n")


SPOILT = (
    missing,
    empty,
    cut_short,
    garbage,
    damaged_pages,
    older,
    with_a_trigger,
    emptied_of_its_progress,
    with_a_digest_that_is_no_text,
    with_a_body_that_is_no_text,
    with_a_schema_that_is_no_text,
    a_link,
    a_pipe,
    marked,
)


async def an_index(home: Path) -> SqliteMemoryIndex:
    index = SqliteMemoryIndex(str(home))
    await index.clear_for_rebuild("a test")
    await index.apply(update(*(a_document(str(n), f"remembered {n}") for n in range(200))))
    await index.apply(update(a_document("last", "remembered"), through_seq=5))
    await index.mark_whole()
    await index.close()
    return index


async def use(index: SqliteMemoryIndex) -> None:
    """Damage shows at opening, or when the pages it is in are needed."""
    await index.facts()
    await index.digests(["brief:last"])
    await index.search("remembered", MemoryScope(), limit=50)


@pytest.mark.requirement("memory-index:disposable")
@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
async def test_what_is_not_ours_is_begun_anew(tmp_path: Path, spoil: Spoil) -> None:
    index = await an_index(tmp_path)
    folder = tmp_path / ".holon" / "indexes"
    spoil(folder / "memory.sqlite3")
    with pytest.raises(IndexLostError):
        await use(index)
    facts = await index.facts()
    assert (facts.documents_count, facts.through_seq) == (0, 0)
    assert facts.dirty_reason
    assert (folder / "memory.dirty").is_file()
    await index.apply(update(a_document("new", "remembered again"), through_seq=1))
    await index.mark_whole()
    assert not (folder / "memory.dirty").exists()
    await index.close()
    (hit,) = await index.search("remembered", MemoryScope(), limit=5)
    assert hit.source_ref == "brief:new", "and it is believed the next time"
    await index.close()


@pytest.mark.requirement("memory-index:disposable")
async def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    index = await an_index(tmp_path)
    folder, elsewhere = tmp_path / ".holon" / "indexes", tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = sorted(each.name for each in elsewhere.iterdir())
    with pytest.raises(IndexLostError):
        await use(index)
    assert (await index.facts()).documents_count == 0
    await index.close()
    assert not folder.is_symlink()
    assert (folder / "memory.sqlite3").is_file()
    assert sorted(each.name for each in elsewhere.iterdir()) == before


async def test_an_index_that_is_whole_is_kept(tmp_path: Path) -> None:
    index = await an_index(tmp_path)
    facts = await index.facts()
    assert (facts.documents_count, facts.through_seq, facts.dirty_reason) == (201, 5, None)
    await index.close()


@pytest.mark.requirement("memory-index:disposable")
async def test_a_file_that_goes_while_it_is_open_is_made_anew(tmp_path: Path) -> None:
    index = await an_index(tmp_path)
    await index.facts()
    (tmp_path / ".holon" / "indexes" / "memory.sqlite3").unlink()
    with pytest.raises(IndexLostError):
        await index.facts()
    assert (await index.facts()).documents_count == 0
    await index.close()


async def test_a_place_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / ".holon").write_text("a file where a folder should be")
    with pytest.raises(MemoryIndexError) as refused:
        await SqliteMemoryIndex(str(tmp_path)).facts()
    assert refused.value.code == "memory_index_unavailable"


async def test_a_file_that_is_spoilt_while_it_is_made_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await an_index(tmp_path)
    file = tmp_path / ".holon" / "indexes" / "memory.sqlite3"
    honest = index_file._remove

    def remove(path: Path) -> None:
        honest(path)
        if path == file:  # a command that does nothing but write there
            garbage(file)

    monkeypatch.setattr(index_file, "_remove", remove)
    garbage(file)
    for attempt in (index.facts, partial(index.clear_for_rebuild, "a test")):
        with pytest.raises(MemoryIndexError) as refused:
            await attempt()
        assert not isinstance(refused.value, IndexLostError)
    monkeypatch.undo()
    with pytest.raises(IndexLostError):
        await index.facts()
    assert (await index.facts()).documents_count == 0, "it is well once nobody writes there"
    await index.close()


async def test_somebody_elses_lock_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.memory_index.index_file._BUSY_TIMEOUT_MS", 1)
    index = await an_index(tmp_path)
    other = apsw.Connection(str(tmp_path / ".holon" / "indexes" / "memory.sqlite3"))
    other.execute("begin immediate")
    with pytest.raises(MemoryIndexError) as refused:
        await index.apply(update(a_document("late", "too late")))
    assert not isinstance(refused.value, IndexLostError)
    other.execute("rollback")
    other.close()
    assert (await index.facts()).documents_count == 201, "and nothing was lost"
    await index.close()


async def test_an_index_nobody_has_fed_stays_none_over_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        index = SqliteMemoryIndex(str(tmp_path))
        with pytest.raises(IndexLostError, match="there is no index yet"):
            await index.facts()
        assert (await index.facts()).dirty_reason == "there is no index yet"
        await index.close()


async def test_the_log_of_an_index_counts_as_room_it_takes(tmp_path: Path) -> None:
    index = SqliteMemoryIndex(str(tmp_path))
    with pytest.raises(IndexLostError):
        await index.facts()
    await index.apply(update(a_document("a", "words")))
    files = [
        tmp_path / ".holon/indexes" / name for name in ("memory.sqlite3", "memory.sqlite3-wal")
    ]
    sizes = [file.stat().st_size for file in files]
    assert (await index.facts()).bytes == sum(sizes)
    assert all(sizes)
    await index.close()
