"""Hosts and tool ports for tests, with defaults for everything a test does not name.

Owns:  `a_host` and `tool_ports`, which fill in every port and setting.
Rule 1: a default port does nothing: no commands, no files, no journal, no prices.
"""

from typing import Any

from holon.decide.text.bounded import OutputBudget
from holon.decide.workspaces import HostRoots
from holon.model.budgets import BudgetPolicy
from holon.model.events.retention import RetentionPolicy
from holon.model.tasks import TaskQuota
from holon.model.values import AgentId
from holon.model.work import ReminderPolicy
from holon.ports.agents import NoHomes, NoTemplates
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import NoFailpoints
from holon.ports.guidance import NoInstructions, NoInstructionSources, NoSkillFolders, NoSkills
from holon.ports.journal import NoJournal, NothingToRedact
from holon.ports.memory import NoLedger, NoMemoryIndexes, NoRecall
from holon.ports.providers import ModelDirectory
from holon.ports.reads import StoreReads
from holon.ports.store import Store
from holon.ports.tracer import NoTracer
from holon.ports.turns import NoTurnMark
from holon.ports.unavailable import NoClock, NoDirectories, NoFiles, NoShell, NoTasks, NoWorkspaces
from holon.ports.wake import NoTriggerKey
from holon.runtime.host import Host
from holon.runtime.providers.gate import ProviderGate
from holon.serve.compose import unlimited, unpriced, unwatched, unwatched_call
from holon.tools.registry import builtin_tools
from holon.tools.tool import ToolPorts


def a_host(
    *,
    store: Store,
    clock: Clock,
    ids: IdSource,
    models: ModelDirectory,
    home: str = "",
    **chosen: Any,  # any field of Host
) -> Host:
    """Return a host that is not running yet."""
    absent: dict[str, Any] = {
        "home_id": "",
        "roots": HostRoots(home=home),
        "gate": ProviderGate(),
        "price_of": unpriced,
        "deferral_allowed": True,
        "fallback_disabled": False,
        "trial_tools_allowed": False,
        "progress": unwatched,
        "round_gate": unlimited,
        "tools": builtin_tools(),
        "calls": unwatched_call,
        "shell": NoShell(),
        "files": NoFiles(),
        "places": NoDirectories(),
        "workspace_finder": NoWorkspaces(),
        "output_budget": OutputBudget(),
        "task_quota": TaskQuota(),
        "homes": NoHomes(),
        "instructions": NoInstructions(),
        "instruction_sources": NoInstructionSources(),
        "skill_catalogs": NoSkills(),
        "skill_folders": NoSkillFolders(),
        "templates": NoTemplates(),
        "memory_indexes": NoMemoryIndexes(),
        "ledger": NoLedger(),
        "trigger_key": NoTriggerKey(),
        "trigger_base_url": None,
        "budgets": BudgetPolicy(),
        "reminders": ReminderPolicy(),
        "retention_policy": RetentionPolicy(),
        "redactor": NothingToRedact(),
        "journal": NoJournal(),
        "tracer": NoTracer(),
        "turn_mark": NoTurnMark(),
        "failpoints": NoFailpoints(),
    }
    return Host(store=store, clock=clock, ids=ids, models=models, **{**absent, **chosen})


def tool_ports(
    *,
    reads: StoreReads,
    ids: IdSource,
    **chosen: Any,  # any field of ToolPorts
) -> ToolPorts:
    """Return what a tool may touch."""
    absent: dict[str, Any] = {
        "clock": NoClock(),
        "shell": NoShell(),
        "files": NoFiles(),
        "places": NoDirectories(),
        "tasks": NoTasks(),
        "recall": NoRecall(),
        "redactor": NothingToRedact(),
        "output_budget": OutputBudget(),
        "task_quota": TaskQuota(),
        "summary_of": _unknown,
    }
    return ToolPorts(reads=reads, ids=ids, **{**absent, **chosen})


async def _unknown(agent_id: AgentId) -> None:
    """Know no agent."""
