"""Memory search on a real database and real files: fed as it goes, mended, and never the truth."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from holon.adapters.files.contained_files import ContainedFiles
from holon.adapters.sqlite.memory_index.indexes import SqliteMemoryIndexes
from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.decide.events.audit import audited
from holon.model.commits import AppendBrief, Applied, Change, PutWorkItem
from holon.model.errors import StoreBrokenError
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, MEMORY_FILE_BYTES_MAX, MEMORY_TOMBSTONES_KEPT_MS
from holon.model.memory.index import IndexState
from holon.model.queue import AuthorityClass
from holon.model.values import AgentId, WorkspaceId
from holon.ports.journal import LogLevel
from holon.ports.memory import IndexLostError, IndexUpdate, MemoryIndexError, NoRecall
from holon.runtime.memory.indexer import MemoryFeeder
from tests.runtime.notes import Notes
from tests.support.builders import MAIN, a_brief, a_commit, a_work_item, an_agent, moment
from tests.support.database_plants import lie_in_memory_index
from tests.support.hosts import a_host
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.sequential_ids import SequentialIds
from tests.support.single_model import SingleModel

POLICY = RetentionPolicy(age_ms=DAY_MS, events_count_min=1, turns_count_min=1, batch_count=50)


class Shelf:
    """A store with one agent, and its memory."""

    def __init__(self, home: Path) -> None:
        clock = SystemClock()
        self.store = open_store(home)
        self.indexes = SqliteMemoryIndexes()
        self.host = a_host(
            store=self.store,
            clock=clock,
            ids=SequentialIds(),
            models=SingleModel(ScriptedProvider(Script(rules=()), clock)),
            home=str(home),
            files=ContainedFiles(),
            memory_indexes=self.indexes,
        )
        self.memory = self.host.memory
        self.agent_home = home / "agents" / MAIN
        (self.agent_home / "memory").mkdir(parents=True)
        self.commits = 0

    async def make(self, *changes: Change) -> None:
        self.commits += 1
        commit = a_commit(f"commit_{self.commits}", *changes)
        assert await self.store.apply(audited(commit)) == Applied()

    async def brief(self, name: str, text: str, *, workspace_id: str | None = None) -> None:
        brief = msgspec.structs.replace(
            a_brief(name),
            text=text,
            workspace_id=None if workspace_id is None else WorkspaceId(workspace_id),
        )
        await self.make(AppendBrief(brief=brief))

    async def found(self, query: str, *, everywhere: bool = False) -> list[str]:
        found = await self.memory.search(MAIN, query, limit=10, include_all_workspaces=everywhere)
        return [hit.source_ref for hit in found.hits]

    def write(self, name: str, text: str) -> None:
        (self.agent_home / "memory" / name).write_text(text, encoding="utf-8")


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    made = Shelf(tmp_path / "home")
    await made.make(an_agent())
    yield made
    await made.indexes.close()
    await made.store.close()


@pytest.mark.requirement("memory-index:location")
async def test_the_index_lies_in_the_agents_home_and_is_made_by_the_first_search(
    shelf: Shelf,
) -> None:
    await shelf.brief("brief_1", "The beehives moved to the south wall.")
    folder = shelf.agent_home / ".holon" / "indexes"
    assert not folder.exists()
    assert await shelf.found("beehive") == ["brief:brief_1"]
    assert (folder / "memory.sqlite3").is_file()
    assert not (folder / "memory.dirty").exists()


@pytest.mark.requirement("memory-index:incremental")
async def test_what_was_committed_before_a_search_is_found_by_it(shelf: Shelf) -> None:
    for n in range(5):
        await shelf.brief(f"brief_{n}", f"step{n} of the move")
        assert await shelf.found(f"step{n}") == [f"brief:brief_{n}"]
    item = a_work_item()
    await shelf.make(PutWorkItem(item=item))
    revised = msgspec.structs.replace(item, revision=2, objective="Repaint the gate in ochre")
    await shelf.make(PutWorkItem(item=revised))
    assert await shelf.found("ochre") == [f"work_item:{item.id}"]
    assert await shelf.found(item.objective) == []


@pytest.mark.requirement("memory-index:file-repair")
async def test_memory_files_are_found_however_they_were_written(shelf: Shelf) -> None:
    shelf.write("self.md", "I keep the ledger in pencil.")
    assert await shelf.found("pencil") == ["agent_memory:self"]
    shelf.write("self.md", "I keep the ledger in ink.")
    shelf.write("operator.md", "操作员喜欢简短的周报。")
    assert await shelf.found("pencil") == []
    assert await shelf.found("简短周报") == ["agent_memory:operator"]
    (hit,) = (await shelf.memory.search(MAIN, "ink", limit=1)).hits
    assert hit.source_path == "memory/self.md"
    assert hit.authority_class is AuthorityClass.EXTERNAL_EVIDENCE
    (shelf.agent_home / "memory" / "self.md").unlink()
    assert await shelf.found("ink") == []


@pytest.mark.requirement("memory-index:file-repair")
async def test_a_memory_file_that_cannot_be_taken_is_left_out_and_said(
    shelf: Shelf, tmp_path: Path
) -> None:
    shelf.write("self.md", "lantern " * (MEMORY_FILE_BYTES_MAX // 4))
    secret = tmp_path / "secret.md"
    secret.write_text("lantern of another")
    (shelf.agent_home / "memory" / "operator.md").symlink_to(secret)
    await shelf.brief("brief_1", "lantern oil is low")
    found = await shelf.memory.search(MAIN, "lantern", limit=10)
    assert [hit.source_ref for hit in found.hits] == ["brief:brief_1"]
    assert [note.split(" ")[0] for note in found.notes] == ["memory/self.md", "memory/operator.md"]


@pytest.mark.requirement("memory-index:scope")
async def test_workspaces_an_agent_is_not_in_are_left_out_unless_asked_for(shelf: Shelf) -> None:
    await shelf.brief("brief_home", "ferry timetable")
    await shelf.brief("brief_away", "ferry tickets", workspace_id="ws_harbour")
    assert await shelf.found("ferry") == ["brief:brief_home"]
    assert set(await shelf.found("ferry", everywhere=True)) == {
        "brief:brief_home",
        "brief:brief_away",
    }
    text = await shelf.memory.get(MAIN, "brief:brief_away", chars_max=100)
    assert text is not None
    assert text.content == "ferry tickets"


@pytest.mark.requirement("memory-index:opaque-ref")
async def test_another_agents_text_is_not_there(shelf: Shelf) -> None:
    await shelf.brief("brief_1", "mine alone")
    await shelf.make(an_agent("other"))
    other = AgentId("other")
    assert (await shelf.memory.search(other, "mine", limit=10)).hits == ()
    assert await shelf.memory.get(other, "brief:brief_1", chars_max=10) is None
    assert await shelf.memory.get(MAIN, "brief:brief_1", chars_max=4) is not None


@pytest.mark.requirement("memory-index:authority-travels")
async def test_an_index_that_lies_changes_neither_texts_nor_what_they_are_worth(
    shelf: Shelf,
) -> None:
    await shelf.brief("brief_1", "honest parsnips")
    await shelf.brief("brief_2", "parsnips abroad", workspace_id="ws_away")
    assert await shelf.found("parsnips") == ["brief:brief_1"]
    await shelf.indexes.close()
    lie_in_memory_index(shelf.agent_home / ".holon" / "indexes" / "memory.sqlite3")
    (hit,) = (await shelf.memory.search(MAIN, "parsnips", limit=10)).hits
    assert (hit.title, hit.snippet) == ("honest parsnips", "honest parsnips")
    assert hit.authority_class is AuthorityClass.RUNTIME_INSTRUCTION
    text = await shelf.memory.get(MAIN, "brief:brief_1", chars_max=100)
    assert text is not None
    assert text.content == "honest parsnips"
    assert await shelf.memory.get(MAIN, "brief:forged", chars_max=100) is None


@pytest.mark.requirement("memory-index:disposable")
async def test_an_index_that_was_lost_is_fed_from_the_beginning(shelf: Shelf) -> None:
    for n in range(8):
        await shelf.brief(f"brief_{n}", f"entry number{n} in the logbook")
    assert len(await shelf.found("logbook")) == 8
    path = shelf.agent_home / ".holon" / "indexes" / "memory.sqlite3"
    await shelf.indexes.close()
    path.write_bytes(path.read_bytes()[:5_000])
    assert len(await shelf.found("logbook")) == 8
    await shelf.indexes.close()
    path.unlink()
    assert len(await shelf.found("logbook")) == 8


@pytest.mark.requirement("memory-index:disposable")
async def test_a_search_does_not_wait_for_a_long_rebuild_and_says_so(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_SEARCH_COUNT_MAX", 3)
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_COUNT", 3)
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_PAUSE_MS", 0)
    for n in range(10):
        await shelf.brief(f"brief_{n}", "a page of the almanac")
    found = await shelf.memory.search(MAIN, "almanac", limit=10)
    assert (len(found.hits), found.status.state) == (3, IndexState.REBUILDING)
    assert found.status.behind_count == 7
    assert found.status.reason is not None
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(shelf.memory.run)
            while (await shelf.memory.status(MAIN)).state is not IndexState.READY:
                pass
            group.cancel_scope.cancel()
    assert len(await shelf.found("almanac")) == 10


async def test_a_rebuild_that_was_asked_for_comes_to_its_end_behind_the_answer(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_PAUSE_MS", 0)
    await shelf.brief("brief_1", "the well is deep")
    assert await shelf.found("well") == ["brief:brief_1"]
    status = await shelf.memory.rebuild(MAIN)
    assert (status.state, status.behind_count) == (IndexState.REBUILDING, 1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(shelf.memory.run)
            while (await shelf.memory.status(MAIN)).state is not IndexState.READY:
                pass
            group.cancel_scope.cancel()


async def test_what_has_changed_is_fed_in_the_background(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_PAUSE_MS", 0)
    shelf.store.observe(shelf.memory.commit_applied)
    assert await shelf.found("anything") == []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(shelf.memory.run)
            await shelf.brief("brief_1", "hush")
            shelf.write("self.md", "quiet")
            root = str(shelf.agent_home)
            shelf.memory.files_changed(MAIN, root, ["notes/other.md", "memory/self.md"])
            index = shelf.indexes.of(root)
            while (await index.facts()).documents_count < 2:
                pass
            group.cancel_scope.cancel()


async def test_a_bug_about_one_index_is_noted_and_ends_no_feeding(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_PAUSE_MS", 0)
    notes, honest = Notes(), MemoryFeeder.feed
    memory = dataclasses.replace(shelf.host, journal=notes).memory
    await memory.search(MAIN, "anything", limit=1)
    bug: Exception | None = KeyError("nobody foresaw it")

    async def feed(*args: Any, **how: Any) -> tuple[str, ...]:
        if bug is not None:
            raise bug
        return await honest(*args, **how)

    monkeypatch.setattr(MemoryFeeder, "feed", feed)
    index = shelf.indexes.of(str(shelf.agent_home))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(memory.run)
            await shelf.brief("brief_1", "hush")
            memory.commit_applied([MAIN])
            while not notes.of("memory_feed_crashed"):
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            [note] = notes.of("memory_feed_crashed")  # and it is not tried again by itself
            assert (note.level, note.error) == (LogLevel.ERROR, bug)
            assert note.about == {"agent_id": MAIN}
            bug = None
            memory.commit_applied([MAIN])
            while (await index.facts()).documents_count < 1:
                pass
            group.cancel_scope.cancel()
    bug = StoreBrokenError("gone")
    memory.commit_applied([MAIN])
    with anyio.fail_after(60), pytest.raises(StoreBrokenError):
        await memory.run()


@pytest.mark.requirement("memory-index:retention")
async def test_what_was_pruned_is_not_found_any_more(shelf: Shelf) -> None:
    await shelf.brief("brief_1", "long ago")
    assert await shelf.found("ago") == ["brief:brief_1"]
    while (await shelf.store.prune(POLICY, now=moment(2 * DAY_MS))).more:
        pass
    assert await shelf.found("ago") == []


@pytest.mark.requirement("memory-index:retention")
async def test_an_index_that_slept_too_long_is_begun_anew(shelf: Shelf) -> None:
    await shelf.brief("brief_1", "long ago")
    assert await shelf.found("ago") == ["brief:brief_1"]
    for now in (moment(2 * DAY_MS), moment(3 * DAY_MS + MEMORY_TOMBSTONES_KEPT_MS)):
        while (await shelf.store.prune(POLICY, now=now)).more:
            pass
    await shelf.brief("brief_2", "not long ago")
    assert await shelf.found("ago") == ["brief:brief_2"]
    await shelf.brief("brief_3", "just a moment ago")
    assert set(await shelf.found("ago")) == {"brief:brief_2", "brief:brief_3"}


async def test_an_index_that_is_lost_again_and_again_is_an_error(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(self: object, update: IndexUpdate) -> None:
        raise IndexLostError("gone again")

    monkeypatch.setattr("holon.adapters.sqlite.memory_index.index.SqliteMemoryIndex.apply", lost)
    await shelf.brief("brief_1", "one")
    with pytest.raises(MemoryIndexError):
        await shelf.found("one")


async def test_a_host_without_indexes_says_so(shelf: Shelf) -> None:
    with pytest.raises(MemoryIndexError) as refused:
        await NoRecall().search(MAIN, "x", limit=1)
    assert refused.value.code == "unsupported_runtime_capability"
    with pytest.raises(MemoryIndexError):
        await NoRecall().get(MAIN, "brief:x", chars_max=1)
    with pytest.raises(MemoryIndexError):
        await NoRecall().status(MAIN)
