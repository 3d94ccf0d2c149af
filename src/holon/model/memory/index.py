"""Memory search: documents, sources, scopes and answers.

Owns:  the records exchanged between durable rows, the index and its callers; the marks that name
       records to be indexed again and what a turn was shown.
Rule 1: a document carries the authority of the content it was made of, wherever it goes.
Rule 2: sources stay inside the process: they hold records of every kind and have no wire form.
Rule 3: a `source_ref` is opaque and copied from a hit; it is neither a path nor an address.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from holon.model.events.briefs import BriefRecord
from holon.model.memory.records import EpisodeRecord, MemoryHit
from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolCallRecord
from holon.model.values import AgentId, Instant, MessageId, TurnId, WorkspaceId
from holon.model.work import WorkItemRecord
from holon.model.workspaces import WorkspaceEntry

SourceRecord: TypeAlias = (
    BriefRecord | WorkItemRecord | TaskRecord | ToolCallRecord | WorkspaceEntry | EpisodeRecord
)


class MemoryKind(StrEnum):
    """What a document was made of. The value is also how its `source_ref` begins."""

    AGENT_MEMORY = "agent_memory"
    WORKSPACE_PROFILE = "workspace_profile"
    BRIEF = "brief"
    EPISODE = "episode"
    WORK_ITEM = "work_item"
    TASK = "task"
    TOOL_EXECUTION = "tool_execution"


class ScopeKind(StrEnum):
    """Where a document is found: everywhere, or only by an agent that is in its workspace."""

    AGENT = "agent"
    WORKSPACE = "workspace"


class MemoryDocument(Record, frozen=True, kw_only=True):
    """One searchable text. `source_key` names the record it came from, also with its siblings."""

    kind: MemoryKind
    source_ref: str
    source_key: str
    agent_id: AgentId
    title: str
    body: str
    updated_at: Instant
    authority_class: AuthorityClass
    workspace_id: WorkspaceId | None = None
    source_path: str | None = None
    metadata: dict[str, str] = {}

    @property
    def scope_kind(self) -> ScopeKind:
        """The scope a document is found in."""
        return ScopeKind.AGENT if self.workspace_id is None else ScopeKind.WORKSPACE


class MemorySource(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was written, changed or pruned (then it holds nothing)."""

    change_seq: int
    agent_id: AgentId
    kind: MemoryKind
    source_id: str
    authority_class: AuthorityClass  # the lowest of what the turns that wrote it had seen
    record: SourceRecord | None = None

    @property
    def source_key(self) -> str:
        """Its name in the index."""
        return f"{self.kind.value}:{self.source_id}"


class SourcePage(msgspec.Struct, frozen=True, kw_only=True):
    """What follows a change of an agent's sources. Below the floor, removals are unknown."""

    sources: tuple[MemorySource, ...] = ()
    newest_seq: int = 0
    floor_seq: int = 0
    left_count: int = 0  # behind this page


class MemoryScope(Record, frozen=True, kw_only=True):
    """What a search may see besides the agent's own memory."""

    workspace_id: WorkspaceId | None = None
    all_workspaces: bool = False


class MemoryText(Record, frozen=True, kw_only=True):
    """The exact text behind a hit, within its bound."""

    kind: MemoryKind
    source_ref: str
    scope_kind: ScopeKind
    agent_id: AgentId
    title: str
    updated_at: Instant
    authority_class: AuthorityClass
    content: str
    truncated: bool
    workspace_id: WorkspaceId | None = None
    source_path: str | None = None
    metadata: dict[str, str] = {}


class IndexState(StrEnum):
    """How far an index is to be believed."""

    READY = "ready"
    BEHIND = "behind"  # what was changed last is not in it yet
    REBUILDING = "rebuilding"  # it was begun anew and does not hold everything yet


class IndexFacts(Record, frozen=True, kw_only=True):
    """The state of an index."""

    through_seq: int = 0
    floor_seq: int = 0
    documents_count: int = 0
    bytes: int = 0
    dirty_reason: str | None = None


class MemoryStatus(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How an agent's index stands."""

    agent_id: AgentId
    state: IndexState
    documents_count: int
    bytes: int
    behind_count: int
    reason: str | None = None


class FoundMemory(Record, frozen=True, kw_only=True):
    """The results of a search, and the state of the index."""

    hits: tuple[MemoryHit, ...]
    status: MemoryStatus
    notes: tuple[str, ...] = ()  # what could not be searched


class SourceChanged(Record, frozen=True, kw_only=True):
    """A record was written; `turn_id` is the turn that did it, `turns` those it describes."""

    agent_id: AgentId
    kind: MemoryKind
    source_id: str
    turn_id: TurnId | None = None
    turns: tuple[int, int] | None = None


class TurnShown(Record, frozen=True, kw_only=True):
    """A turn was shown content of this authority.

    One that `goes_on` has no higher authority than the turn before it, nor than `root_id`.
    """

    turn_id: TurnId
    authority_class: AuthorityClass
    goes_on: bool = False
    root_id: MessageId | None = None


MemoryMark: TypeAlias = SourceChanged | TurnShown
