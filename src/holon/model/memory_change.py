"""The changes to what an agent remembers.

Owns:  those members of the union `Change` (model/commit) that are about memory.
Rule 1: they come with the commit that settles a turn, and with no other.
"""

from typing import TypeAlias

from holon.model.ids import AgentId
from holon.model.memory import EpisodeRecord, MemoryState, WorkingMemoryDelta
from holon.model.record import Record


class RememberWork(Record, tag=True, frozen=True, kw_only=True):
    """Put what an agent remembers; `moved` is the new revision, when there is one."""

    agent_id: AgentId
    state: MemoryState
    moved: WorkingMemoryDelta | None = None


class ArchiveEpisode(Record, tag=True, frozen=True, kw_only=True):
    """Keep a finished episode; nothing changes it any more."""

    episode: EpisodeRecord


MemoryChange: TypeAlias = RememberWork | ArchiveEpisode
