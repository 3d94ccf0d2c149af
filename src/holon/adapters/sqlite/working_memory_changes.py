"""Writing what agents remember of their work.

Owns:  the rows of `working_memories` and `episodes`.
"""

from typing import assert_never

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.instant import to_micros
from holon.model.memory_change import ArchiveEpisode, MemoryChange, RememberWork


class WorkingMemoryChanges:
    """Writes what changes about memory."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("working_memory")

    def write(self, change: MemoryChange) -> None:
        """Write one change."""
        match change:
            case RememberWork(agent_id=agent_id, state=state):
                self._statements.run(
                    self._sql["put_memory"],
                    (
                        agent_id,
                        state.revision,
                        state.last_prompted_revision,
                        None if state.builder is None else state.builder.id,
                        state.archived_episode_count,
                        encode(state),
                    ),
                )
            case ArchiveEpisode(episode=episode):
                kept = (episode.end_turn_index, to_micros(episode.finalized_at), encode(episode))
                self._statements.run(
                    self._sql["archive_episode"], (episode.id, episode.agent_id, *kept)
                )
            case _:
                assert_never(change)
