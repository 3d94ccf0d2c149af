"""What memory search is made of, as the rows tell it.

Contract: as for store_reads. Every record of the kinds in model/memory_index has one row from the
commit that first wrote it on; each change gives the row a new, higher number. A record that was
pruned comes once more, empty.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.ids import AgentId
from holon.model.memory_index import MemoryKind, MemorySource, SourcePage


class MemorySourceReads(Protocol):
    """Records to index."""

    async def changed_sources(self, agent_id: AgentId, *, after_seq: int, limit: int) -> SourcePage:
        """Records of an agent that were written after a change, in the order of the last one."""
        ...

    async def named_sources(
        self, agent_id: AgentId, named: Sequence[tuple[MemoryKind, str]]
    ) -> Sequence[MemorySource]:
        """These records of an agent, as far as there are such."""
        ...
