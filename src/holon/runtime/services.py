"""What every part of the runtime works with.

Owns:  the bundle of ports a host is made of, and its settings. No logic.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from holon.decide.bounded_text import OutputBudget
from holon.decide.budget import PriceLookup
from holon.model.answer import AnswerProgress
from holon.model.brief import FailureArtifact
from holon.model.budget import BudgetPolicy, ModelPrice, UsageStep
from holon.model.ids import AgentId
from holon.model.reminder import ReminderPolicy
from holon.model.retention import RetentionPolicy
from holon.model.task import TaskQuota
from holon.model.tool import ToolCallRecord
from holon.ports.agent_homes import AgentHomes, NoHomes
from holon.ports.clock import Clock
from holon.ports.episode_ledger import EpisodeLedger, NoLedger
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.files import Files
from holon.ports.id_source import IdSource
from holon.ports.instruction_sources import InstructionSources, NoInstructionSources
from holon.ports.instructions import Instructions, NoInstructions
from holon.ports.journal import Journal, NoJournal
from holon.ports.memory_index import MemoryIndexes, MemoryRecall, NoMemoryIndexes, NoRecall
from holon.ports.places import Places
from holon.ports.provider import ModelDirectory
from holon.ports.redactor import NothingToRedact, Redactor
from holon.ports.shell import Shell
from holon.ports.skill_catalog import ActiveSkills, NoSkills, SkillCatalogs
from holon.ports.skill_folders import NoSkillFolders, SkillFolders
from holon.ports.store import Store
from holon.ports.task_control import TaskControl
from holon.ports.template_catalog import NoTemplates, TemplateCatalog
from holon.ports.tracer import NoTracer, Tracer
from holon.ports.trigger_key import NoTriggerKey, TriggerKey
from holon.ports.turn_mark import NoTurnMark, TurnMark
from holon.ports.unavailable import NoFiles, NoPlaces, NoShell, NoTasks, NoWorkspaces
from holon.ports.workspace_finder import WorkspaceFinder
from holon.runtime.provider_gate import ProviderGate
from holon.runtime.token_calibration import TokenCalibrations
from holon.runtime.turn_renderings import TurnRenderings
from holon.tools.registry import ToolRegistry

ProgressListener: TypeAlias = Callable[[AgentId, AnswerProgress], None]
CallListener: TypeAlias = Callable[[ToolCallRecord], None]
ArchiveListener: TypeAlias = Callable[[AgentId], None]
RoundGate: TypeAlias = Callable[[AgentId], FailureArtifact | None]


def unwatched(agent_id: AgentId, progress: AnswerProgress) -> None:
    """Nobody watches answers grow."""


def unwatched_call(call: ToolCallRecord) -> None:
    """Nobody watches calls begin."""


def unwatched_archive(agent_id: AgentId) -> None:
    """Nobody copies episodes."""


def unlimited(agent_id: AgentId) -> FailureArtifact | None:
    """Every round may be asked for: nothing stands against it."""
    return None


def unpriced(model_ref: str) -> ModelPrice | None:
    """Nobody knows what a model costs."""
    return None


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The ports of one host."""

    store: Store
    clock: Clock
    ids: IdSource
    models: ModelDirectory
    tools: ToolRegistry
    gate: ProviderGate = msgspec.field(default_factory=ProviderGate)
    calibrations: TokenCalibrations = msgspec.field(default_factory=TokenCalibrations)
    renderings: TurnRenderings = msgspec.field(default_factory=TurnRenderings)
    redactor: Redactor = msgspec.field(default_factory=NothingToRedact)
    progress: ProgressListener = unwatched
    calls: CallListener = unwatched_call
    round_gate: RoundGate = unlimited  # asked before each round; an answer ends the turn with it
    budgets: BudgetPolicy = msgspec.field(default_factory=BudgetPolicy)
    price_of: PriceLookup = unpriced
    open_usage: dict[AgentId, UsageStep] = msgspec.field(default_factory=dict)  # of running turns
    deferral_allowed: bool = True  # a turn may wait for the moment its provider named
    fallback_disabled: bool = False
    trial_tools_allowed: bool = False  # a trial model may run commands and change files
    failpoints: Failpoints = msgspec.field(default_factory=NoFailpoints)
    journal: Journal = msgspec.field(default_factory=NoJournal)
    tracer: Tracer = msgspec.field(default_factory=NoTracer)
    retention: RetentionPolicy = msgspec.field(default_factory=RetentionPolicy)
    home_id: str = ""  # which home it is, wherever it lies; a copy has another one
    home: str = ""  # agents live under it, each in a directory of its own
    homes: AgentHomes = msgspec.field(default_factory=NoHomes)  # makes those directories
    workspace_root: str | None = None  # where every agent works instead of in its own home
    workspace_cwd: str | None = None  # the directory below that root in which commands start
    workspace_overrides: bool = False  # also instead of the workspace an agent is in
    shell: Shell = msgspec.field(default_factory=NoShell)
    files: Files = msgspec.field(default_factory=NoFiles)
    places: Places = msgspec.field(default_factory=NoPlaces)
    workspaces: WorkspaceFinder = msgspec.field(default_factory=NoWorkspaces)
    output_budget: OutputBudget = msgspec.field(default_factory=OutputBudget)
    task_quota: TaskQuota = TaskQuota()
    reminders: ReminderPolicy = msgspec.field(default_factory=ReminderPolicy)
    trigger_key: TriggerKey = msgspec.field(default_factory=NoTriggerKey)
    trigger_base_url: str | None = None  # where deliveries come in; without one, agents get none
    turn_mark: TurnMark = msgspec.field(default_factory=NoTurnMark)
    tasks: TaskControl = msgspec.field(default_factory=NoTasks)  # the host puts its supervisor here
    # What a prompt draws on besides the rows.
    instructions: Instructions = msgspec.field(default_factory=NoInstructions)
    instruction_sources: InstructionSources = msgspec.field(default_factory=NoInstructionSources)
    skills: SkillCatalogs = msgspec.field(default_factory=NoSkills)
    active_skills: ActiveSkills = msgspec.field(default_factory=NoSkills)
    skill_folders: SkillFolders = msgspec.field(default_factory=NoSkillFolders)
    templates: TemplateCatalog = msgspec.field(default_factory=NoTemplates)
    memory_indexes: MemoryIndexes = msgspec.field(default_factory=NoMemoryIndexes)
    recall: MemoryRecall = msgspec.field(default_factory=NoRecall)  # the host puts its indexer here
    ledger: EpisodeLedger = msgspec.field(default_factory=NoLedger)
    archived: ArchiveListener = unwatched_archive  # the host has its ledgers written
