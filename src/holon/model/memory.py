"""What an agent remembers: working memory, episodes and search hits.

Owns:  the records. They are derived from settled evidence, never from a running turn.
Rule 1: an episode is immutable once finalized.
Rule 2: every hit carries the provenance and authority of the content it came from.
"""

from enum import StrEnum

from holon.model.ids import AgentId, EpisodeId, WorkItemId, WorkspaceId
from holon.model.instant import Instant
from holon.model.provenance import AuthorityClass
from holon.model.record import Record


class WorkingMemory(Record, frozen=True, kw_only=True):
    """What the agent is in the middle of."""

    current_work_item_id: WorkItemId | None = None
    objective: str | None = None
    work_summary: str | None = None
    scope_hints: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    todo_list: tuple[str, ...] = ()
    working_set_files: tuple[str, ...] = ()
    recent_decisions: tuple[str, ...] = ()
    pending_followups: tuple[str, ...] = ()
    waiting_on: tuple[str, ...] = ()


class MemoryDeltaReason(StrEnum):
    """Why working memory moved."""

    TERMINAL_TURN_COMPLETED = "terminal_turn_completed"
    TASK_REJOINED = "task_rejoined"
    WAKE_RESUMED = "wake_resumed"
    ACTIVE_WORK_CHANGED = "active_work_changed"
    SCOPE_HINTS_CHANGED = "scope_hints_changed"


class WorkingMemoryDelta(Record, frozen=True, kw_only=True):
    """What changed between two revisions, short enough for a prompt."""

    from_revision: int
    to_revision: int
    created_at_turn: int
    reason: MemoryDeltaReason
    changed_fields: tuple[str, ...] = ()
    summary_lines: tuple[str, ...] = ()


class EpisodeBoundary(StrEnum):
    """Why an episode was closed."""

    ACTIVE_WORK_SWITCHED = "active_work_switched"
    WAIT_BOUNDARY = "wait_boundary"
    RESULT_CHECKPOINT = "result_checkpoint"
    TASK_REJOINED = "task_rejoined"
    HARD_TURN_CAP = "hard_turn_cap"


class EpisodeRecord(Record, frozen=True, kw_only=True):
    """A finished stretch of work, folded to what matters later."""

    id: EpisodeId
    agent_id: AgentId
    created_at: Instant
    finalized_at: Instant
    start_turn_index: int
    end_turn_index: int
    boundary_reason: EpisodeBoundary
    summary: str
    workspace_id: WorkspaceId | None = None
    work_item_id: WorkItemId | None = None
    working_set_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    carry_forward: tuple[str, ...] = ()
    waiting_on: tuple[str, ...] = ()


class MemoryHit(Record, frozen=True, kw_only=True):
    """One search result. `source_ref` is opaque: it is copied, never built."""

    kind: str
    source_ref: str
    scope_kind: str
    agent_id: AgentId
    title: str
    snippet: str
    score: float
    updated_at: Instant
    authority_class: AuthorityClass
    workspace_id: WorkspaceId | None = None
    source_path: str | None = None
    metadata: dict[str, str] = {}
