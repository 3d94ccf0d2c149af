"""Memory in rows, held against the log by the checker."""

from holon.adapters.sqlite.check.checker import check_connection
from holon.model.memory.records import (
    ArchiveEpisode,
    MemoryDeltaReason,
    MemoryState,
    RememberWork,
    WorkingMemoryDelta,
)
from tests.adapters.sqlite.raw_rows import a_writer, apply
from tests.decide.memory_rows import an_episode
from tests.support.builders import MAIN, an_agent

DELTA = WorkingMemoryDelta(
    from_revision=0,
    to_revision=1,
    created_at_turn=1,
    reason=MemoryDeltaReason.ACTIVE_WORK_CHANGED,
    changed_fields=("objective",),
    summary_lines=("objective: mend the roof",),
)
STATE = MemoryState(revision=1, pending_delta=DELTA)


def test_the_checker_holds_memory_against_the_log() -> None:
    connection, writer = a_writer()
    apply(
        writer,
        "remembered",
        an_agent(),
        RememberWork(agent_id=MAIN, state=STATE, moved=DELTA),
        ArchiveEpisode(episode=an_episode(1)),
    )
    assert check_connection(connection).is_clean
    connection.execute("update working_memories set revision = 2")
    connection.execute(
        "insert into episodes (episode_id, agent_id, end_turn_index, finalized_at, record)"
        " values ('ep_9', 'main', 9, 0, '{}')"
    )
    told = {str(each) for each in check_connection(connection).violations}
    assert told == {
        "I6 main: working_memory is 1 in the log and 2 in its row",
        "I6 main: episode ep_9 is archived in its row, but no event tells of it",
    }
