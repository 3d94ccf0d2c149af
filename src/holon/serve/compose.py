"""The composition root: builds a running host from a home and a model directory.

Owns:  the only place where adapters are connected to the runtime. No logic.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
import msgspec

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.files.contained_files import ContainedFiles
from holon.adapters.files.episode_ledger import FileEpisodeLedger
from holon.adapters.files.instructions import FileInstructionSources
from holon.adapters.sqlite.memory_index.indexes import SqliteMemoryIndexes
from holon.adapters.sqlite.store import LockedHome, SqliteStore, open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.directories import SystemPlaces, SystemWorkspaceFinder
from holon.adapters.system.ids import TimeOrderedIds
from holon.adapters.system.logs import PythonLog
from holon.adapters.system.secrets import SecretRegistry
from holon.adapters.system.turn_mark_file import TurnMarkFile
from holon.decide.budgets.budget import PriceLookup
from holon.decide.text.bounded import OutputBudget
from holon.decide.workspaces import HostRoots
from holon.model.budgets import BudgetPolicy, ModelPrice
from holon.model.events.briefs import FailureArtifact
from holon.model.events.retention import RetentionPolicy
from holon.model.tasks import TaskQuota
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.turn import AnswerProgress
from holon.model.values import AgentId
from holon.model.work import ReminderPolicy
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.journal import Journal, LogLevel, NothingToRedact, Redactor
from holon.ports.providers import ModelDirectory
from holon.ports.tracer import NoTracer, Tracer
from holon.ports.unavailable import NoShell
from holon.ports.wake import NoTriggerKey, TriggerKey
from holon.runtime.events.retention import watch_store
from holon.runtime.host import Host
from holon.runtime.providers.caller import ProgressListener
from holon.runtime.providers.gate import ProviderGate
from holon.runtime.turns.driver import RoundGate
from holon.runtime.turns.tool_runner import CallListener
from holon.serve.agent_adapters import UserFiles, agent_adapters
from holon.tools.registry import builtin_tools, local_registry

COMMANDS_FOLDER: Final = "commands"


def unwatched(agent_id: AgentId, progress: AnswerProgress) -> None:
    """Ignore progress."""


def unwatched_call(call: ToolCallRecord) -> None:
    """Ignore calls."""


def unlimited(agent_id: AgentId) -> FailureArtifact | None:
    """Allow every round."""
    return None


def unpriced(model_ref: str) -> ModelPrice | None:
    """Return no price."""
    return None


class ExecOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How agents execute commands on this machine: the environment and the working directory."""

    environ: Mapping[str, str]
    workspace_root: str | None = None  # instead of each agent's own home
    workspace_cwd: str | None = None  # below that root
    workspace_overrides: bool = False  # also instead of the workspace an agent is in
    umask: int | None = None  # of commands, when it is not to be that of the runtime


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """Observers of a host's agents, the gate of rounds, and failpoints of tests."""

    progress: ProgressListener = unwatched
    calls: CallListener = unwatched_call
    round_gate: RoundGate = unlimited
    failpoints: Failpoints = msgspec.field(default_factory=NoFailpoints)
    journal: Journal = msgspec.field(default_factory=PythonLog)
    tracer: Tracer = msgspec.field(default_factory=NoTracer)
    # Values that are hidden wherever text leaves the process.
    secrets: SecretRegistry = msgspec.field(default_factory=SecretRegistry)


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a host besides its home and models. Without `exec_options`: no commands."""

    exec_options: ExecOptions | None = None
    hooks: Hooks = msgspec.field(default_factory=Hooks)
    retention: RetentionPolicy = msgspec.field(default_factory=RetentionPolicy)
    output_budget: OutputBudget = msgspec.field(default_factory=OutputBudget)
    task_quota: TaskQuota = TaskQuota()
    reminders: ReminderPolicy = msgspec.field(default_factory=ReminderPolicy)
    budgets: BudgetPolicy = msgspec.field(default_factory=BudgetPolicy)
    price_of: PriceLookup = unpriced
    gate: ProviderGate = msgspec.field(default_factory=ProviderGate)
    redactor: Redactor = msgspec.field(default_factory=NothingToRedact)
    trigger_key: TriggerKey = msgspec.field(default_factory=NoTriggerKey)
    trigger_base_url: str | None = None  # without one nothing can be delivered
    user_files: UserFiles | None = None  # without a person: no homes, templates or guidance
    deferral_allowed: bool = True
    fallback_disabled: bool = False
    trial_tools_allowed: bool = False
    held: LockedHome | None = None  # the home, when it was taken before


@asynccontextmanager
async def open_host(
    home: Path, models: ModelDirectory, options: HostOptions | None = None
) -> AsyncIterator[Host]:
    """Open the home, recover what an earlier process left, and serve while the block runs.

    Raises a StoreError when the home cannot be opened; the message says what to do.
    """
    chosen = options or HostOptions()
    clock, exec_options = SystemClock(), chosen.exec_options
    shell = _shell(home, exec_options, clock) if exec_options is not None else None
    try:
        store, indexes = open_store(home, chosen.held), SqliteMemoryIndexes()
    except BaseException:
        if shell is not None:
            shell.close()
        raise
    _know_the_home(store, shell, chosen.hooks.journal)
    turn_mark = TurnMarkFile(home)
    host = _host(
        home, models, chosen, store=store, shell=shell, indexes=indexes, turn_mark=turn_mark
    )
    try:
        async with anyio.create_task_group() as serving:
            serving.start_soon(host.run)
            serving.start_soon(store.watch_home, chosen.hooks.journal)
            serving.start_soon(watch_store, store, clock, chosen.hooks.journal)
            await host.wait_ready()
            yield host
            serving.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):  # what was accepted is written before we let go
            await store.close()
            await indexes.close()
            turn_mark.close()
            if shell is not None:
                shell.close()  # what runs goes on; the next host attaches to it


def _host(
    home: Path,
    models: ModelDirectory,
    chosen: HostOptions,
    *,
    store: SqliteStore,
    shell: LocalShell | None,
    indexes: SqliteMemoryIndexes,
    turn_mark: TurnMarkFile,
) -> Host:
    """Construct the host from its adapters and options."""
    exec_options, parts = chosen.exec_options, agent_adapters(home, chosen.user_files)
    return Host(
        store=store,
        clock=SystemClock(),
        ids=TimeOrderedIds(),
        home_id="" if store.owner is None else store.owner.identity.id,
        roots=_roots(home, exec_options),
        models=models,
        gate=chosen.gate,
        price_of=chosen.price_of,
        deferral_allowed=chosen.deferral_allowed,
        fallback_disabled=chosen.fallback_disabled,
        trial_tools_allowed=chosen.trial_tools_allowed,
        progress=chosen.hooks.progress,
        round_gate=chosen.hooks.round_gate,
        tools=local_registry() if exec_options is not None else builtin_tools(),
        calls=chosen.hooks.calls,
        shell=shell or NoShell(),
        files=ContainedFiles(),
        places=SystemPlaces(),
        workspace_finder=SystemWorkspaceFinder(),
        output_budget=chosen.output_budget,
        task_quota=chosen.task_quota,
        homes=parts.homes,
        instructions=parts.instructions,
        instruction_sources=FileInstructionSources(),
        skill_catalogs=parts.skills,
        skill_folders=parts.skill_folders,
        templates=parts.templates,
        memory_indexes=indexes,
        ledger=FileEpisodeLedger(),
        trigger_key=chosen.trigger_key,
        trigger_base_url=chosen.trigger_base_url,
        budgets=chosen.budgets,
        reminders=chosen.reminders,
        retention_policy=chosen.retention,
        redactor=chosen.redactor,
        journal=chosen.hooks.journal,
        tracer=chosen.hooks.tracer,
        turn_mark=turn_mark,
        failpoints=chosen.hooks.failpoints,
    )


def _roots(home: Path, exec_options: ExecOptions | None) -> HostRoots:
    if exec_options is None:
        return HostRoots(home=str(home))
    return HostRoots(
        home=str(home),
        workspace_root=exec_options.workspace_root,
        workspace_cwd=exec_options.workspace_cwd,
        overrides=exec_options.workspace_overrides,
    )


def _shell(home: Path, exec_options: ExecOptions, clock: SystemClock) -> LocalShell:
    shell = LocalShell(
        home / COMMANDS_FOLDER, exec_options.environ, clock, umask=exec_options.umask
    )
    with suppress(OSError):  # the first command tries again, and says what is wrong
        shell.prepare()
    return shell


def _know_the_home(store: SqliteStore, shell: LocalShell | None, journal: Journal) -> None:
    """Bind commands to this home, and log if it is a copy of another home."""
    owner = store.owner
    if owner is None:
        return
    if shell is not None:
        shell.belong_to(owner.identity)
    if owner.original is not None:
        journal.note(
            "copied_home",
            f"this home is a copy of {owner.original} and from now on a home of its own; what"
            " runs for the original is left alone, and tasks that ran there are interrupted here",
            level=LogLevel.WARNING,
        )
