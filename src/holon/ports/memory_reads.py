"""What an agent remembers of its own work.

Contract: as for store_reads. `prompted_memory` is what the prompt shows and which revision that is;
`episodes` are finished stretches of work, newest first.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.ids import AgentId
from holon.model.memory import (
    EpisodeRecord,
    PromptedMemory,
    RememberedPlace,
    WorkingMemory,
)


class MemoryReads(Protocol):
    """Working memory and episodes."""

    async def remembered(self, agent_id: AgentId) -> RememberedPlace:
        """Everything kept of an agent's memory, and the workspace it is in."""
        ...

    async def working_memory(self, agent_id: AgentId) -> WorkingMemory:
        """What the agent is in the middle of."""
        ...

    async def prompted_memory(self, agent_id: AgentId) -> PromptedMemory:
        """What the agent's next prompt shows of its working memory."""
        ...

    async def episodes(
        self, agent_id: AgentId, *, limit: int, before_turn: int | None = None
    ) -> Sequence[EpisodeRecord]:
        """Finished episodes, newest first; those that ended before a turn, if one is named."""
        ...

    async def newest_episode_agents(self, *, limit: int) -> Sequence[AgentId]:
        """Agents to whom the newest episodes of all belong."""
        ...
