"""The runtime events about what an agent remembers.

Owns:  what the audit log can say about working memory and episodes. The rules are those of
       model/event.
"""

from typing import TypeAlias

from holon.model.ids import EpisodeId, WorkItemId
from holon.model.memory import EpisodeBoundary, MemoryDeltaReason
from holon.model.record import Record


class WorkingMemoryUpdated(
    Record, tag_field="kind", tag="working_memory_updated", frozen=True, kw_only=True
):
    """Working memory has a new revision."""

    revision: int
    reason: MemoryDeltaReason
    changed_fields: tuple[str, ...] = ()


class EpisodeFinalized(
    Record, tag_field="kind", tag="episode_memory_finalized", frozen=True, kw_only=True
):
    """A stretch of work is over and was archived."""

    episode_id: EpisodeId
    boundary_reason: EpisodeBoundary
    start_turn_index: int
    end_turn_index: int
    work_item_id: WorkItemId | None = None


MemoryEvent: TypeAlias = WorkingMemoryUpdated | EpisodeFinalized
