"""What the audit log says about what an agent remembers.

Owns:  the events of changes to memory. The rules are those of decide/audit.
"""

from typing import assert_never

from holon.decide.audit_turns import Audited
from holon.model.memory_change import ArchiveEpisode, MemoryChange, RememberWork
from holon.model.memory_event import EpisodeFinalized, WorkingMemoryUpdated


def memory_events(change: MemoryChange) -> Audited:
    """Return the events a change of memory leaves. Without a new revision there is none."""
    match change:
        case RememberWork(agent_id=agent_id, moved=moved):
            if moved is None:
                return ()  # the turn that goes with it is the event
            updated = WorkingMemoryUpdated(
                revision=moved.to_revision,
                reason=moved.reason,
                changed_fields=moved.changed_fields,
            )
            return ((agent_id, updated),)
        case ArchiveEpisode(episode=episode):
            finalized = EpisodeFinalized(
                episode_id=episode.id,
                boundary_reason=episode.boundary_reason,
                start_turn_index=episode.start_turn_index,
                end_turn_index=episode.end_turn_index,
                work_item_id=episode.work_item_id,
            )
            return ((episode.agent_id, finalized),)
        case _:
            assert_never(change)
