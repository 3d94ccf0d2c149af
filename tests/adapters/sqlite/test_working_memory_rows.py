"""Memory in rows: put and read back, checked against the log, and pruned oldest first."""

from collections.abc import AsyncIterator

import apsw
import msgspec
import pytest

from holon.adapters.sqlite.check.checker import check_connection
from holon.adapters.sqlite.retention import Retention
from holon.adapters.sqlite.store import SqliteStore, open_connection_store
from holon.decide.events.audit import audited
from holon.model.commits import Applied, Change, ConstraintRefused
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS
from holon.model.memory.records import (
    ArchiveEpisode,
    MemoryDeltaReason,
    MemoryState,
    PromptedMemory,
    RememberWork,
    WorkingMemory,
    WorkingMemoryDelta,
)
from holon.model.values import WorkspaceId
from tests.adapters.sqlite.raw_rows import a_writer
from tests.decide.memory_rows import an_episode
from tests.support.builders import MAIN, START, a_commit, an_agent, moment
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock

DELTA = WorkingMemoryDelta(
    from_revision=0,
    to_revision=1,
    created_at_turn=1,
    reason=MemoryDeltaReason.ACTIVE_WORK_CHANGED,
    changed_fields=("objective",),
    summary_lines=("objective: mend the roof",),
)
MEMORY = WorkingMemory(objective="mend the roof")
STATE = MemoryState(revision=1, memory=MEMORY, pending_delta=DELTA, base=MEMORY, base_epoch=3)


class Rows:
    """A store in memory with one agent."""

    def __init__(self) -> None:
        self.connection, _ = a_writer()
        clock = ManualClock(START)
        self.store: SqliteStore = open_connection_store(
            self.connection, lambda shared: InlineWriter(shared, clock, NoFaults())
        )
        self._count = 0

    async def make(self, *changes: Change) -> object:
        self._count += 1
        return await self.store.apply(audited(a_commit(f"c{self._count}", *changes)))


@pytest.fixture
async def rows() -> AsyncIterator[Rows]:
    made = Rows()
    assert await made.make(an_agent()) == Applied()
    yield made
    await made.store.close()


async def test_an_agent_that_never_ran_remembers_nothing(rows: Rows) -> None:
    reads = rows.store.reads
    assert (await reads.memory.remembered(MAIN)).state == MemoryState()
    assert await reads.memory.working_memory(MAIN) == WorkingMemory()
    assert await reads.memory.prompted_memory(MAIN) == PromptedMemory()
    assert list(await reads.memory.episodes(MAIN, limit=10)) == []


@pytest.mark.requirement("working-memory:structured")
async def test_memory_is_read_back_as_it_was_put(rows: Rows) -> None:
    assert await rows.make(RememberWork(agent_id=MAIN, state=STATE, moved=DELTA)) == Applied()
    reads = rows.store.reads
    assert (await reads.memory.remembered(MAIN)).state == STATE
    assert (await reads.memory.remembered(MAIN)).workspace_id is None
    assert await reads.memory.working_memory(MAIN) == MEMORY
    shown = await reads.memory.prompted_memory(MAIN)
    assert (shown.revision, shown.base, shown.delta, shown.compression_epoch) == (
        1,
        MEMORY,
        DELTA,
        3,
    )


@pytest.mark.requirement("working-memory:revision")
@pytest.mark.parametrize(
    "worse",
    [
        MemoryState(),
        msgspec.structs.replace(STATE, revision=3),
        msgspec.structs.replace(STATE, last_prompted_revision=0),
        msgspec.structs.replace(STATE, archived_episode_count=0),
    ],
)
async def test_memory_never_goes_back_or_leaves_a_revision_out(
    rows: Rows, worse: MemoryState
) -> None:
    ahead = msgspec.structs.replace(STATE, last_prompted_revision=1, archived_episode_count=1)
    await rows.make(RememberWork(agent_id=MAIN, state=STATE, moved=DELTA))
    await rows.make(RememberWork(agent_id=MAIN, state=ahead))
    refused = await rows.make(RememberWork(agent_id=MAIN, state=worse))
    assert refused == ConstraintRefused(constraint="working_memories_go_forward")


@pytest.mark.requirement("episode:immutable")
async def test_an_episode_is_written_once_and_never_changed(rows: Rows) -> None:
    first = an_episode(1)
    assert await rows.make(ArchiveEpisode(episode=first)) == Applied()
    other = msgspec.structs.replace(first, summary="something else")
    refused = await rows.make(ArchiveEpisode(episode=other))
    assert refused == ConstraintRefused(constraint="episodes_one_per_id")
    with pytest.raises(apsw.ConstraintError):
        rows.connection.execute("update episodes set end_turn_index = 9")
    assert list(await rows.store.reads.memory.episodes(MAIN, limit=10)) == [first]


async def test_episodes_are_read_newest_first_and_before_a_turn(rows: Rows) -> None:
    made = [an_episode(n, workspace_id=WorkspaceId("ws_1")) for n in range(1, 6)]
    await rows.make(*(ArchiveEpisode(episode=episode) for episode in made))
    reads = rows.store.reads
    assert [e.id for e in await reads.memory.episodes(MAIN, limit=2)] == ["ep_5", "ep_4"]
    found = await reads.memory.episodes(MAIN, limit=2, before_turn=4)
    assert [e.id for e in found] == ["ep_3", "ep_2"]
    assert list(await reads.memory.episodes(MAIN, limit=-1)) == []
    assert list(await reads.memory.newest_episode_agents(limit=9)) == [MAIN]


async def test_the_checker_holds_memory_against_the_log(rows: Rows) -> None:
    await rows.make(
        RememberWork(agent_id=MAIN, state=STATE, moved=DELTA),
        ArchiveEpisode(episode=an_episode(1)),
    )
    assert check_connection(rows.connection).is_clean
    rows.connection.execute("update working_memories set revision = 2")
    rows.connection.execute(
        "insert into episodes (episode_id, agent_id, end_turn_index, finalized_at, record)"
        " values ('ep_9', 'main', 9, 0, '{}')"
    )
    told = {str(each) for each in check_connection(rows.connection).violations}
    assert told == {
        "I6 main: working_memory is 1 in the log and 2 in its row",
        "I6 main: episode ep_9 is archived in its row, but no event tells of it",
    }


@pytest.mark.requirement("episode:retention")
async def test_old_episodes_leave_and_the_newest_of_an_agent_stay(rows: Rows) -> None:
    for n in range(1, 21):
        await rows.make(ArchiveEpisode(episode=an_episode(n, finalized_at=moment(n))))
    policy = RetentionPolicy(age_ms=DAY_MS, events_count_min=3, turns_count_min=4, batch_count=7)
    retention = Retention(rows.connection)
    while retention.step(policy, now=moment(200 * DAY_MS)).more:
        pass
    kept = [e.id for e in await rows.store.reads.memory.episodes(MAIN, limit=50)]
    assert kept == ["ep_20", "ep_19", "ep_18", "ep_17"]
    gone = rows.connection.execute(
        "select count(*) from memory_sources where kind = 'episode' and gone = 1"
    ).fetchall()
    assert gone == [(16,)]
    assert check_connection(rows.connection).is_clean
