"""Agent memory: working memory, episodes and search hits.

Owns:  the memory records and their bounds; the members of the union `Change` (model/commits) and
       the audit events about memory.
Rule 1: an episode is immutable once finalized.
Rule 2: memory is derived from settled evidence, never from a running turn, and is written only by
        the commit that settles a turn.
Rule 3: entries from a turn that was shown outside content are labelled so; such content never
        becomes an objective or a decision.
Rule 4: every hit carries the provenance and authority of the content it came from.
"""

from enum import StrEnum
from typing import Final, TypeAlias

from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.values import AgentId, EpisodeId, Instant, WorkItemId, WorkspaceId

# What is used when a turn is settled.
EVIDENCE_CALLS_COUNT_MAX: Final = 24  # of a turn: the newest that show what was done

# Working memory.
MEMORY_LINE_CHARS_MAX: Final = 240  # of one entry of a list, and of a line of a delta
MEMORY_SUMMARY_CHARS_MAX: Final = 480
MEMORY_ENTRIES_COUNT_MAX: Final = 8  # of a list
MEMORY_FILES_COUNT_MAX: Final = 10
MEMORY_DELTA_ENTRIES_COUNT_MAX: Final = 3  # of a list, in the line that reports its change

# Episodes.
EPISODE_TURNS_COUNT_MAX: Final = 12
EPISODE_SUMMARY_CHARS_MAX: Final = 1_200
EPISODE_CANDIDATES_COUNT: Final = 12  # newest ones: weighed for a prompt, and always kept
EPISODES_SHOWN_COUNT_MAX: Final = 3
EPISODES_PAGE_COUNT_MAX: Final = 200

# The ledger in an agent's home.
LEDGER_TAIL_BYTES_MAX: Final = 256 * 1_024  # read back to see what stands there already
LEDGER_START_COUNT_MAX: Final = 256  # newest episodes of all agents that a start looks after


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


class PromptedMemory(Record, frozen=True, kw_only=True):
    """What a prompt shows of working memory.

    `base` stands in the lasting part of the prompt: it is the memory as of the last compression
    epoch and moves only with that, or every turn would lose the provider's cache. `delta` lists, in
    the turn's own part, what has changed since. `revision` is the newest one.
    """

    revision: int = 0
    base: WorkingMemory | None = None
    delta: WorkingMemoryDelta | None = None
    compression_epoch: int = 0


class EpisodeBoundary(StrEnum):
    """Why an episode was closed."""

    ACTIVE_WORK_SWITCHED = "active_work_switched"
    WAIT_BOUNDARY = "wait_boundary"
    RESULT_CHECKPOINT = "result_checkpoint"
    TASK_REJOINED = "task_rejoined"
    HARD_TURN_CAP = "hard_turn_cap"


class EpisodeRecord(Record, frozen=True, kw_only=True):
    """A finished stretch of work, folded to what matters later.

    `authority_class` is the lowest among the messages its turns were shown: the agent's own text in
    them has no higher authority.
    """

    id: EpisodeId
    agent_id: AgentId
    created_at: Instant
    finalized_at: Instant
    start_turn_index: int
    end_turn_index: int
    boundary_reason: EpisodeBoundary
    summary: str
    start_message_count: int = 0
    end_message_count: int = 0
    workspace_id: WorkspaceId | None = None
    work_item_id: WorkItemId | None = None
    objective: str | None = None
    work_summary: str | None = None
    authority_class: AuthorityClass = AuthorityClass.EXTERNAL_EVIDENCE
    scope_hints: tuple[str, ...] = ()
    working_set_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    carry_forward: tuple[str, ...] = ()
    waiting_on: tuple[str, ...] = ()


class TurnMemoryDelta(Record, frozen=True, kw_only=True):
    """What one turn that ended adds to the episode it belongs to."""

    turn_index: int
    ended_at: Instant
    message_count: int
    authority_class: AuthorityClass
    work_item_id: WorkItemId | None = None
    workspace_id: WorkspaceId | None = None
    objective: str | None = None
    work_summary: str | None = None
    scope_hints: tuple[str, ...] = ()
    working_set_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    carry_forward: tuple[str, ...] = ()
    waiting_on: tuple[str, ...] = ()


class EpisodeBuilder(Record, frozen=True, kw_only=True):
    """The episode that is still open: its first turn, and everything its turns have added up to."""

    id: EpisodeId
    created_at: Instant
    start_turn_index: int
    start_message_count: int
    turns_count: int
    total: TurnMemoryDelta


class MemoryState(Record, frozen=True, kw_only=True):
    """Everything an agent's row keeps of its memory. It moves only when a turn is settled.

    `base` is the memory as of compression epoch `base_epoch` (see PromptedMemory). `pending_delta`
    has not been shown to the model yet; `last_prompted_revision` has. `authority_class` is what the
    last turn was worth: turns that the runtime starts by itself are worth no more.
    """

    revision: int = 0
    last_prompted_revision: int = 0
    memory: WorkingMemory = WorkingMemory()
    pending_delta: WorkingMemoryDelta | None = None
    base: WorkingMemory | None = None
    base_epoch: int = 0
    builder: EpisodeBuilder | None = None
    archived_episode_count: int = 0
    authority_class: AuthorityClass = AuthorityClass.OPERATOR_INSTRUCTION


class MemoryFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The figures of an agent's memory, for surfaces."""

    revision: int = 0
    last_prompted_revision: int = 0
    archived_episode_count: int = 0
    active_episode_id: EpisodeId | None = None


class RememberedPlace(Record, frozen=True, kw_only=True):
    """An agent's memory, and the workspace it is in."""

    state: MemoryState = MemoryState()
    workspace_id: WorkspaceId | None = None


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


class RememberWork(Record, tag=True, frozen=True, kw_only=True):
    """Write what an agent remembers; `moved` is the new revision, if memory moved."""

    agent_id: AgentId
    state: MemoryState
    moved: WorkingMemoryDelta | None = None


class ArchiveEpisode(Record, tag=True, frozen=True, kw_only=True):
    """Keep a finished episode; nothing changes it any more."""

    episode: EpisodeRecord


MemoryChange: TypeAlias = RememberWork | ArchiveEpisode


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


assert EPISODES_SHOWN_COUNT_MAX <= EPISODE_CANDIDATES_COUNT <= EPISODES_PAGE_COUNT_MAX
