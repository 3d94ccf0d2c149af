"""Reading what agents remember of their work.

Owns:  working memory, as the runtime and as a prompt need it, and episodes.
"""

from collections.abc import Sequence
from typing import Final

from holon.adapters.sqlite.read_session import ReadSession, at_most
from holon.adapters.sqlite.row_codec import RowDecoder
from holon.model.ids import AgentId, EpisodeId, WorkspaceId
from holon.model.memory import (
    EpisodeRecord,
    MemoryFigures,
    MemoryState,
    PromptedMemory,
    RememberedPlace,
    WorkingMemory,
)
from holon.model.memory_limits import EPISODES_PAGE_COUNT_MAX

_STATES: Final = RowDecoder[MemoryState](MemoryState)
_EPISODES: Final = RowDecoder[EpisodeRecord](EpisodeRecord)
_EVERY_TURN: Final = 2**63 - 1


class MemoryLooks(ReadSession):
    """What is read of an agent's memory inside a transaction somebody else holds."""

    def _memory_figures(self, agent_id: AgentId) -> MemoryFigures:
        match self._one("memory_figures", (agent_id,)):
            case (int() as revision, int() as prompted, int() as archived, active):
                return MemoryFigures(
                    revision=revision,
                    last_prompted_revision=prompted,
                    archived_episode_count=archived,
                    active_episode_id=None if active is None else EpisodeId(str(active)),
                )
            case _:
                return MemoryFigures()


class SqliteWorkingMemoryReads(MemoryLooks):
    """The part of the port that is about memory."""

    async def remembered(self, agent_id: AgentId) -> RememberedPlace:
        """Everything kept of an agent's memory, and the workspace it is in."""
        found = self._one("memory_state", (agent_id,))
        if found is None:
            return RememberedPlace()
        state, workspace_id = found
        return RememberedPlace(
            state=MemoryState() if state is None else _STATES.decode(str(state)),
            workspace_id=None if workspace_id is None else WorkspaceId(str(workspace_id)),
        )

    async def working_memory(self, agent_id: AgentId) -> WorkingMemory:
        """What the agent is in the middle of."""
        return (await self.remembered(agent_id)).state.memory

    async def prompted_memory(self, agent_id: AgentId) -> PromptedMemory:
        """What the agent's next prompt shows of its working memory."""
        state = (await self.remembered(agent_id)).state
        return PromptedMemory(
            revision=state.revision,
            base=state.base,
            delta=state.pending_delta,
            compression_epoch=state.base_epoch,
        )

    async def episodes(
        self, agent_id: AgentId, *, limit: int, before_turn: int | None = None
    ) -> Sequence[EpisodeRecord]:
        """Finished episodes, newest first; those that ended before a turn, if one is named."""
        until = _EVERY_TURN if before_turn is None else before_turn
        found = self._all("episodes", (agent_id, until, at_most(limit, EPISODES_PAGE_COUNT_MAX)))
        return [_EPISODES.decode(str(row[0])) for row in found]

    async def newest_episode_agents(self, *, limit: int) -> Sequence[AgentId]:
        """Agents to whom the newest episodes of all belong."""
        return [AgentId(str(row[0])) for row in self._all("newest_episode_agents", (limit,))]
