"""Prompt facts: the inputs of a prompt, collected when a turn begins.

Owns:  the facts the sections render, gathered once per turn (runtime/turns/context); the size and
       digest of a tool catalog, computed once, since they are the same for every turn of a host.
Rule 1: facts are bounded where they are gathered: newest first, counted beyond a limit.
Rule 2: lasting facts (identity, guidance, skills, base memory) and facts of the turn are separated
        by section, not here; nothing here knows a budget.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from holon.model.agents import AgentIdentity, TemplateEntry
from holon.model.events.briefs import BriefRecord
from holon.model.events.reads import WeighedItem
from holon.model.guidance import LoadedGuidance, SkillActivation, SkillCatalog
from holon.model.memory.records import EpisodeRecord, PromptedMemory
from holon.model.record import Record
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolSpec
from holon.model.turns.transcript import IncomingMessage
from holon.model.turns.turn import ClosureOutcome, TriggerKind, WaitingReason
from holon.model.wake import ExternalTrigger
from holon.model.work import PlanArtifact, WorkItemRecord
from holon.model.workspaces import ExecutionSnapshot, WorktreeSession


class OfferedTools(Record, frozen=True, kw_only=True):
    """A catalog, its size in bytes, and its digest."""

    specs: tuple[ToolSpec, ...]
    size_bytes: int
    sha256: str


def offered_tools(specs: Sequence[ToolSpec]) -> OfferedTools:
    """Return a catalog with its size and digest."""
    encoded = msgspec.json.encode(specs)
    return OfferedTools(
        specs=tuple(specs), size_bytes=len(encoded), sha256=sha256(encoded).hexdigest()
    )


class TraceLine(Record, frozen=True, kw_only=True):
    """One step of the work on the current item: a call, a brief, or a text of the model."""

    at: datetime
    what: str  # a tool's name, or the kind of text
    text: str


class WorkFacts(Record, frozen=True, kw_only=True):
    """The agent's work items."""

    current: WeighedItem | None = None
    current_plan: PlanArtifact | None = None  # as its file is now
    current_trace: tuple[TraceLine, ...] = ()  # oldest first
    others: tuple[WeighedItem, ...] = ()  # open, not current, oldest first, bounded
    open_count: int = 0  # of all items, not only those shown
    completed: tuple[WorkItemRecord, ...] = ()  # newest first, bounded

    @property
    def is_empty(self) -> bool:
        """Whether there is no work item to show."""
        return self.current is None and not self.others and not self.completed


class WakeFacts(Record, frozen=True, kw_only=True):
    """Why this turn runs, and the state before it."""

    trigger_kind: TriggerKind | None
    prior_outcome: ClosureOutcome | None = None
    prior_waiting_reason: WaitingReason | None = None
    last_failure: str | None = None  # of the previous turn, if it failed
    resume_count: int = 0  # how often this turn was interrupted and resumed


class PromptFacts(Record, frozen=True, kw_only=True):
    """The facts of one prompt."""

    identity: AgentIdentity
    tools: OfferedTools
    execution: ExecutionSnapshot
    agent_home: str
    trigger: ExternalTrigger | None = None
    trigger_url: str | None = None  # a secret; None when the trigger accepts no address
    worktree: WorktreeSession | None = None
    guidance: LoadedGuidance = LoadedGuidance()
    skills: SkillCatalog = SkillCatalog()
    active_skills: tuple[SkillActivation, ...] = ()
    templates: tuple[TemplateEntry, ...] = ()
    memory: PromptedMemory = PromptedMemory()
    episodes: tuple[EpisodeRecord, ...] = ()  # the relevant ones, newest first
    work: WorkFacts = WorkFacts()
    results: tuple[TaskRecord, ...] = ()  # ended tasks whose result no turn has read yet
    briefs: tuple[BriefRecord, ...] = ()  # of turns the conversation no longer shows, oldest first
    wake: WakeFacts | None = None
    current_input: IncomingMessage | None = None
