"""Memory: put and read back, never moved back, and episodes newest first."""

import msgspec
import pytest

from holon.model.commits import ConstraintRefused
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
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, make, offer, prune_all
from tests.decide.memory_rows import an_episode
from tests.support.builders import MAIN, an_agent, moment

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


async def test_an_agent_that_never_ran_remembers_nothing(store: Store) -> None:
    reads = store.reads
    assert (await reads.memory.remembered(MAIN)).state == MemoryState()
    assert await reads.memory.working_memory(MAIN) == WorkingMemory()
    assert await reads.memory.prompted_memory(MAIN) == PromptedMemory()
    assert list(await reads.memory.episodes(MAIN, limit=10)) == []


@pytest.mark.requirement("working-memory:structured")
async def test_memory_is_read_back_as_it_was_put(store: Store) -> None:
    await make(store, RememberWork(agent_id=MAIN, state=STATE, moved=DELTA))
    reads = store.reads
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
    store: Store, worse: MemoryState
) -> None:
    ahead = msgspec.structs.replace(STATE, last_prompted_revision=1, archived_episode_count=1)
    await make(store, RememberWork(agent_id=MAIN, state=STATE, moved=DELTA))
    await make(store, RememberWork(agent_id=MAIN, state=ahead))
    refused = await offer(store, RememberWork(agent_id=MAIN, state=worse))
    assert refused == ConstraintRefused(constraint="working_memories_go_forward")


@pytest.mark.requirement("episode:immutable")
async def test_an_episode_is_written_once_and_never_changed(store: Store) -> None:
    first = an_episode(1)
    await make(store, ArchiveEpisode(episode=first))
    other = msgspec.structs.replace(first, summary="something else")
    refused = await offer(store, ArchiveEpisode(episode=other))
    assert refused == ConstraintRefused(constraint="episodes_one_per_id")
    assert list(await store.reads.memory.episodes(MAIN, limit=10)) == [first]


async def test_episodes_are_read_newest_first_and_before_a_turn(store: Store) -> None:
    made = [an_episode(n, workspace_id=WorkspaceId("ws_1")) for n in range(1, 6)]
    await make(store, *(ArchiveEpisode(episode=episode) for episode in made))
    reads = store.reads
    assert [e.id for e in await reads.memory.episodes(MAIN, limit=2)] == ["ep_5", "ep_4"]
    found = await reads.memory.episodes(MAIN, limit=2, before_turn=4)
    assert [e.id for e in found] == ["ep_3", "ep_2"]
    assert list(await reads.memory.episodes(MAIN, limit=-1)) == []
    assert list(await reads.memory.newest_episode_agents(limit=9)) == [MAIN]


@pytest.mark.requirement("episode:retention")
async def test_old_episodes_leave_and_the_newest_of_an_agent_stay(store: Store) -> None:
    for n in range(1, 21):
        await make(store, ArchiveEpisode(episode=an_episode(n, finalized_at=moment(n))))
    policy = RetentionPolicy(age_ms=DAY_MS, events_count_min=3, turns_count_min=4, batch_count=7)
    await prune_all(store, policy, now=moment(200 * DAY_MS))
    kept = [e.id for e in await store.reads.memory.episodes(MAIN, limit=50)]
    assert kept == ["ep_20", "ep_19", "ep_18", "ep_17"]
    sources = (await store.reads.memory.changed_sources(MAIN, after_seq=0, limit=50)).sources
    assert [each.source_id for each in sources if each.record is not None] == kept[::-1]
    assert len(sources) == 20, "what has gone is returned once more, empty"


async def test_the_agents_of_the_newest_episodes_are_named_once(store: Store) -> None:
    await make(store, an_agent(OTHER))
    assert list(await store.reads.memory.newest_episode_agents(limit=9)) == []
    for n, agent_id in enumerate((OTHER, MAIN, MAIN)):
        episode = msgspec.structs.replace(
            an_episode(n + 1, finalized_at=moment(n)), agent_id=agent_id
        )
        await make(store, ArchiveEpisode(episode=episode))
    assert set(await store.reads.memory.newest_episode_agents(limit=9)) == {MAIN, OTHER}
    assert list(await store.reads.memory.newest_episode_agents(limit=2)) == [MAIN]
