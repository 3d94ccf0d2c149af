"""Finished episodes are copied into their agent's ledger once, whatever is cut off on the way."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from holon.adapters.files.episode_ledger import FileEpisodeLedger
from holon.adapters.system.clock import SystemClock
from holon.decide.events.audit import audited
from holon.decide.workspaces import HostRoots
from holon.model.errors import StoreBrokenError
from holon.model.memory.records import (
    EPISODE_CANDIDATES_COUNT,
    ArchiveEpisode,
    EpisodeBoundary,
    EpisodeRecord,
)
from holon.model.values import EpisodeId
from holon.ports.journal import LogLevel
from holon.ports.memory import LedgerError, NoLedger
from holon.runtime.memory.ledger import EpisodeLedgerKeeper
from holon.runtime.workspaces.place import AgentPlaces
from holon.serve.compose import open_host
from tests.decide.memory_rows import an_episode
from tests.runtime.cast import calls, prompt_for, rule
from tests.runtime.notes import Notes
from tests.runtime.stage import Stage, play, said
from tests.support.builders import MAIN, a_commit, an_agent, an_identity
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.memory_store import memory_connection, memory_store
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel


class Shelf:
    """A ledger in memory that may be out of order."""

    is_kept = True

    def __init__(self) -> None:
        self.ids: list[EpisodeId] = []
        self.appended_count = 0
        self.is_broken = False
        self.bug: Exception | None = None

    async def last_id(self, agent_home: str) -> EpisodeId | None:
        assert agent_home == "/home/agents/main"
        if self.bug is not None:
            raise self.bug
        return self.ids[-1] if self.ids else None

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        if self.is_broken:
            raise LedgerError("the disk is full")
        self.appended_count += 1
        self.ids.extend(episode.id for episode in episodes)


class LedgerBench:
    """A keeper over a database in memory with one agent, and what it is told."""

    def __init__(self, stage: Stage, shelf: Shelf | NoLedger, notes: Notes) -> None:
        connection = memory_connection()
        writer = InlineWriter(connection, stage.clock, NoFaults())
        self._store = memory_store(connection, writer)
        self.keeper = EpisodeLedgerKeeper(
            reads=self._store.reads,
            clock=stage.clock,
            agent_places=AgentPlaces(self._store.reads, HostRoots(home="/home")),
            ledger=shelf,
            journal=notes,
        )

    async def open(self) -> None:
        """Let the agent be born."""
        await self._store.apply(audited(a_commit("birth", an_agent())))

    async def archive(self, *numbers: int) -> None:
        """Archive episodes, tell the keeper, and let it catch up."""
        changes = tuple(ArchiveEpisode(episode=an_episode(number)) for number in numbers)
        await self._store.apply(audited(a_commit(f"archive:{numbers}", *changes)))
        self.keeper.archived(MAIN)
        await self.keeper.catch_up()


@pytest.mark.requirement("episode:ledger")
def test_what_follows_the_newest_line_is_added_in_order_and_once() -> None:
    shelf = Shelf()

    async def scene(stage: Stage) -> None:
        bench = LedgerBench(stage, shelf, Notes())
        await bench.open()
        await bench.archive(1, 2)
        assert shelf.ids == ["ep_1", "ep_2"]
        bench.keeper.archived(MAIN)
        await bench.keeper.catch_up()
        assert shelf.appended_count == 1
        many = range(3, 3 + 2 * EPISODE_CANDIDATES_COUNT)
        await bench.archive(*many)
        assert shelf.ids == [f"ep_{n}" for n in (1, 2, *many)]

    play(scene, {"scripted/one": [said()]})


@pytest.mark.requirement("episode:ledger")
def test_a_ledger_that_cannot_be_written_is_noted_and_made_good_later() -> None:
    shelf, notes = Shelf(), Notes()

    async def scene(stage: Stage) -> None:
        bench = LedgerBench(stage, shelf, notes)
        await bench.open()
        shelf.is_broken = True
        await bench.archive(1)
        shelf.is_broken = False
        await bench.archive(2)
        assert shelf.ids == ["ep_1", "ep_2"]
        assert [note.message for note in notes.of("episode_ledger")] == ["the disk is full"]

    play(scene, {"scripted/one": [said()]})


@pytest.mark.requirement("episode:ledger")
def test_a_bug_about_one_ledger_is_noted_and_ends_nothing() -> None:
    shelf, notes = Shelf(), Notes()

    async def scene(stage: Stage) -> None:
        bench = LedgerBench(stage, shelf, notes)
        await bench.open()
        shelf.bug = KeyError("nobody foresaw it")
        await bench.archive(1)
        [note] = notes.of("episode_ledger_crashed")
        assert (note.level, note.error, note.about) == (
            LogLevel.ERROR,
            shelf.bug,
            {"agent_id": MAIN},
        )
        shelf.bug = None
        await bench.archive(2)
        assert shelf.ids == ["ep_1", "ep_2"]
        shelf.bug = StoreBrokenError("gone")
        with pytest.raises(StoreBrokenError):
            await bench.archive(3)

    play(scene, {"scripted/one": [said()]})


@pytest.mark.requirement("episode:ledger")
def test_a_start_copies_what_an_earlier_process_did_not_come_to() -> None:
    shelf = Shelf()

    async def scene(stage: Stage) -> None:
        bench = LedgerBench(stage, shelf, Notes())
        await bench.open()
        await bench.archive(1, 2, 3)
        del shelf.ids[1:]  # the process ended before these were written
        async with anyio.create_task_group() as life:
            life.start_soon(bench.keeper.run)
            await stage.rest(1)
            life.cancel_scope.cancel()
        assert shelf.ids == ["ep_1", "ep_2", "ep_3"]

    play(scene, {"scripted/one": [said()]})


def test_a_host_without_ledgers_has_nothing_to_do() -> None:
    async def scene(stage: Stage) -> None:
        bench = LedgerBench(stage, NoLedger(), Notes())
        bench.keeper.archived(MAIN)
        await bench.keeper.run()

    play(scene, {"scripted/one": [said()]})


class WatchedLedger(FileEpisodeLedger):
    """Ledgers on disk that say when one was written."""

    def __init__(self) -> None:
        self.written = anyio.Event()

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        await super().append(agent_home, episodes)
        self.written.set()


@pytest.mark.requirement("episode:ledger")
async def test_a_real_host_leaves_its_episodes_in_the_agents_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = WatchedLedger()
    monkeypatch.setattr("holon.serve.compose.FileEpisodeLedger", lambda: watched)
    worked = rule(
        "work",
        calls("CreateWorkItem", objective="mend the roof"),
        calls("Sleep", reason="enough"),
    )
    model = SingleModel(ScriptedProvider(Script(rules=(worked,)), SystemClock()))
    ledger = tmp_path / "agents" / MAIN / ".holon" / "ledger" / "context_episodes.jsonl"
    with anyio.fail_after(60):
        async with open_host(tmp_path, model) as host:
            await host.control.create_agent(an_identity())
            ledger.parent.mkdir(parents=True, exist_ok=True)
            await host.admit(prompt_for("work"))
            await watched.written.wait()
            line, *_ = ledger.read_bytes().splitlines()
            told = msgspec.json.decode(line, type=EpisodeRecord)
            assert told in await host.reads.memory.episodes(MAIN, limit=10)
            assert told.boundary_reason is EpisodeBoundary.WAIT_BOUNDARY
