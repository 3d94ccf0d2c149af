"""The host: every lane and service of one HOLON_HOME.

Owns:  the wiring of the runtime's parts, their start order and their shutdown. The ports and
       settings of a host are its fields; each part is built once, on first use, from the few of
       them it needs.
Rule 1: recovery completes before the host is ready; nothing is admitted before.
Rule 2: every agent that some row gives a reason to run is examined when the host starts.
Rule 3: an error that a part cannot handle ends the host, and so does a failed store: a restart
        recovers from what is durable. A bug confined to one agent (in its lane, its recovery or its
        background work) does not: it fails the turn, or leaves the agent down (Scheduler, rule 5),
        or leaves the work undone. It is logged in every case.
Rule 4: a part that a one-shot run does not need is imported on first use, to keep that run fast.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import anyio

from holon.decide.budgets.budget import PriceLookup
from holon.decide.text.bounded import OutputBudget
from holon.decide.text.secrets import log_without_secrets, value_without_secrets
from holon.decide.workspaces import HostRoots
from holon.model.budgets import BudgetPolicy
from holon.model.errors import Refusal, RefusalCode, RefusedError, StoreBrokenError, StoreError
from holon.model.events.retention import RetentionPolicy
from holon.model.providers.models import ModelRef
from holon.model.queue import AdmissionReceipt, IngressRequest
from holon.model.tasks import TaskQuota
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId, JsonValue
from holon.model.work import ReminderPolicy
from holon.ports.agents import AgentHomes, TemplateCatalog
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoints
from holon.ports.guidance import Instructions, InstructionSources, SkillCatalogs, SkillFolders
from holon.ports.journal import Journal, LogLevel, Redactor
from holon.ports.memory import EpisodeLedger, MemoryIndexes
from holon.ports.providers import ModelDirectory, ModelPreference
from holon.ports.reads import StoreReads
from holon.ports.store import Store
from holon.ports.tasks import Shell
from holon.ports.tracer import Tracer
from holon.ports.turns import TurnMark
from holon.ports.wake import TriggerKey
from holon.ports.workspaces import Directories, Files, WorkspaceFinder
from holon.runtime.agents.control import ControlService
from holon.runtime.agents.provisioning import AgentProvisioner
from holon.runtime.budgets import TurnGovernor
from holon.runtime.events.feed import EventFeed
from holon.runtime.events.retention import RetentionKeeper
from holon.runtime.guidance.instruction_watch import InstructionWatch
from holon.runtime.memory.indexer import MemoryFeeder, MemoryIndexer
from holon.runtime.memory.ledger import EpisodeLedgerKeeper
from holon.runtime.providers.caller import ProgressListener, ProviderCaller
from holon.runtime.providers.gate import ProviderGate
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.queue import Ingress
from holon.runtime.tasks.records import TaskService
from holon.runtime.tasks.supervisor import TaskReporter, TaskSupervisor
from holon.runtime.turns.context import ContextBuilder
from holon.runtime.turns.conversation import TokenCalibrations, TurnRenderings
from holon.runtime.turns.driver import RoundGate, TurnDriver
from holon.runtime.turns.lane import Lane
from holon.runtime.turns.recovery import Recovery
from holon.runtime.turns.settler import Settler
from holon.runtime.turns.tool_runner import CallListener, ToolRunner
from holon.runtime.wake.dispatcher import TimerDispatcher
from holon.runtime.wake.scheduler import Scheduler
from holon.runtime.wake.ticks import TickService
from holon.runtime.workspaces.place import AgentPlaces
from holon.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from holon.projections.agents.summary import AgentSummary
    from holon.runtime.agents.inspection import AgentInspection, PromptService
    from holon.runtime.guidance.skills import SkillService
    from holon.runtime.tasks.commands import CommandService
    from holon.runtime.wake.hints import WakeService
    from holon.runtime.wake.timers import TimerService
    from holon.runtime.wake.triggers import TriggerService
    from holon.runtime.work.service import WorkService
    from holon.runtime.workspaces.service import WorkspaceService


@dataclass(kw_only=True, eq=False, repr=False)
class Host:
    """An in-process Holon."""

    store: Store
    clock: Clock
    ids: IdSource
    home_id: str  # which home this is, wherever it lies; a copy of it has another id
    roots: HostRoots

    # The models, and how they are asked.
    models: ModelDirectory
    gate: ProviderGate
    price_of: PriceLookup
    deferral_allowed: bool  # a turn may wait for the moment its provider named
    fallback_disabled: bool
    trial_tools_allowed: bool  # a trial model may run commands and change files
    progress: ProgressListener
    round_gate: RoundGate

    # What agents act with.
    tools: ToolRegistry
    calls: CallListener
    shell: Shell
    files: Files
    places: Directories
    workspace_finder: WorkspaceFinder
    output_budget: OutputBudget
    task_quota: TaskQuota

    # What a prompt draws on besides the rows, and the homes it lies in.
    homes: AgentHomes
    instructions: Instructions
    instruction_sources: InstructionSources
    skill_catalogs: SkillCatalogs
    skill_folders: SkillFolders
    templates: TemplateCatalog
    memory_indexes: MemoryIndexes
    ledger: EpisodeLedger

    # External triggers: without a base URL nothing can be delivered, and agents have none.
    trigger_key: TriggerKey
    trigger_base_url: str | None

    # Bounds.
    budgets: BudgetPolicy
    reminders: ReminderPolicy
    retention_policy: RetentionPolicy

    # What is recorded, and what is hidden from every record.
    redactor: Redactor
    journal: Journal
    tracer: Tracer
    turn_mark: TurnMark
    failpoints: Failpoints

    def __post_init__(self) -> None:
        """Subscribe to the store; each part is built on first use."""
        self._ready = anyio.Event()
        self._broke = anyio.Event()
        self._broken: StoreBrokenError | None = None
        self._calibrations = TokenCalibrations()
        self._renderings = TurnRenderings()
        self.store.observe(self._commit_applied)

    # Ingress, scheduling and turns. ---------------------------------------------------------------

    @cached_property
    def _ingress(self) -> Ingress:
        return Ingress(store=self.store, clock=self.clock, ids=self.ids, failpoints=self.failpoints)

    @cached_property
    def _agent_places(self) -> AgentPlaces:
        return AgentPlaces(self.reads, self.roots)

    @cached_property
    def _scheduler(self) -> Scheduler:
        return Scheduler(self._lane, reads=self.reads, clock=self.clock, journal=self.journal)

    @cached_property
    def _timer_dispatcher(self) -> TimerDispatcher:
        return TimerDispatcher(
            self._ingress,
            self._scheduler,
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            failpoints=self.failpoints,
            journal=self.journal,
        )

    @cached_property
    def _lane(self) -> Lane:
        return Lane(
            ticks=self._ticks,
            drive=self._drive,
            settler=self._settler,
            governor=self.governor,
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            tracer=self.tracer,
            failpoints=self.failpoints,
            journal=self.journal,
            turn_mark=self.turn_mark,
        )

    @cached_property
    def _ticks(self) -> TickService:
        return TickService(
            self._ingress,
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            agent_places=self._agent_places,
            failpoints=self.failpoints,
        )

    @cached_property
    def _drive(self) -> "partial[TurnDriver]":
        return partial(
            TurnDriver,
            store=self.store,
            clock=self.clock,
            tools=self.tools,
            runner=self._runner,
            instructions=self._instruction_watch,
            governor=self.governor,
            context=self._context,
            provider=self._provider,
            reminders=self.reminders,
            calibrations=self._calibrations,
            renderings=self._renderings,
            redactor=self.redactor,
            tracer=self.tracer,
            failpoints=self.failpoints,
            round_gate=self.round_gate,
        )

    @cached_property
    def _routing(self) -> ModelRouting:
        return ModelRouting(
            self.models,
            self.tools,
            fallback_disabled=self.fallback_disabled,
            trial_tools_allowed=self.trial_tools_allowed,
        )

    @cached_property
    def _provider(self) -> ProviderCaller:
        return ProviderCaller(
            routing=self._routing,
            gate=self.gate,
            clock=self.clock,
            redactor=self.redactor,
            calibrations=self._calibrations,
            progress=self.progress,
            deferral_allowed=self.deferral_allowed,
        )

    @cached_property
    def _context(self) -> ContextBuilder:
        return ContextBuilder(
            reads=self.reads,
            clock=self.clock,
            routing=self._routing,
            tools=self.tools,
            agent_places=self._agent_places,
            shell=self.shell,
            files=self.files,
            instructions=self.instructions,
            skills=self.skill_catalogs,
            templates=self.templates,
            calibrations=self._calibrations,
            triggers=None if self.trigger_base_url is None else lambda: self.triggers,
        )

    @cached_property
    def _runner(self) -> ToolRunner:
        return ToolRunner(
            reads=self.reads,
            clock=self.clock,
            ids=self.ids,
            tools=self.tools,
            agent_places=self._agent_places,
            shell=self.shell,
            files=self.files,
            places=self.places,
            skills=self.skill_catalogs,
            instructions=self._instruction_watch,
            tasks=self._supervisor,
            recall=self.memory,
            summary_of=self._summary_of,
            redactor=self.redactor,
            tracer=self.tracer,
            journal=self.journal,
            calls=self.calls,
            output_budget=self.output_budget,
            task_quota=self.task_quota,
        )

    async def _summary_of(self, agent_id: AgentId) -> "AgentSummary | None":
        return await self.inspection.summary(agent_id)

    @cached_property
    def _instruction_watch(self) -> InstructionWatch:
        return InstructionWatch(
            reads=self.reads,
            tools=self.tools,
            agent_places=self._agent_places,
            instruction_sources=self.instruction_sources,
        )

    @cached_property
    def _settler(self) -> Settler:
        return Settler(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            routing=self._routing,
            tools=self.tools,
            agent_places=self._agent_places,
            redactor=self.redactor,
            failpoints=self.failpoints,
            journal=self.journal,
            price_of=self.price_of,
            archived=self._ledger_keeper.archived,
        )

    @cached_property
    def _supervisor(self) -> TaskSupervisor:
        reporter = TaskReporter(
            self.tasks, clock=self.clock, redactor=self.redactor, journal=self.journal
        )
        return TaskSupervisor(reporter, reads=self.reads, shell=self.shell, journal=self.journal)

    @cached_property
    def _ledger_keeper(self) -> EpisodeLedgerKeeper:
        return EpisodeLedgerKeeper(
            reads=self.reads,
            clock=self.clock,
            agent_places=self._agent_places,
            ledger=self.ledger,
            journal=self.journal,
        )

    def _recovery(self) -> Recovery:
        return Recovery(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            routing=self._routing,
            shell=self.shell,
            failpoints=self.failpoints,
            journal=self.journal,
            turn_mark=self.turn_mark,
            settler=self._settler,
            governor=self.governor,
            tasks=self.tasks,
            supervisor=self._supervisor,
            start=lambda task: self.commands.start_left(task),  # loaded when a task was left
        )

    # Services for callers of a host. --------------------------------------------------------------

    @cached_property
    def tasks(self) -> TaskService:
        """Opens, advances and ends tasks."""
        return TaskService(self._ingress, store=self.store, clock=self.clock, ids=self.ids)

    @cached_property
    def memory(self) -> MemoryIndexer:
        """Searches the memory of agents."""
        feeder = MemoryFeeder(
            reads=self.reads,
            clock=self.clock,
            agent_places=self._agent_places,
            files=self.files,
            memory_indexes=self.memory_indexes,
            redactor=self.redactor,
        )
        return MemoryIndexer(
            feeder,
            reads=self.reads,
            clock=self.clock,
            agent_places=self._agent_places,
            memory_indexes=self.memory_indexes,
            journal=self.journal,
        )

    @cached_property
    def retention(self) -> RetentionKeeper:
        """Keeps the database within bounds."""
        return RetentionKeeper(
            store=self.store,
            clock=self.clock,
            shell=self.shell,
            homes=self.homes,
            failpoints=self.failpoints,
            journal=self.journal,
            retention=self.retention_policy,
        )

    @cached_property
    def provisioner(self) -> AgentProvisioner:
        """Creates agents."""
        return AgentProvisioner(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            homes=self.homes,
            journal=self.journal,
            trigger_base_url=self.trigger_base_url,
        )

    @cached_property
    def control(self) -> ControlService:
        """Controls the lifecycle of agents."""
        return ControlService(
            self.provisioner,
            self._cut_off,
            settler=self._settler,
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            routing=self._routing,
        )

    @cached_property
    def governor(self) -> TurnGovernor:
        """Decides whether a turn may begin."""
        return TurnGovernor(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            routing=self._routing,
            agent_places=self._agent_places,
            budgets=self.budgets,
            price_of=self.price_of,
        )

    @cached_property
    def events(self) -> EventFeed:
        """Streams events."""
        return EventFeed(self.store, self.clock)

    # The same, but imported on first use: a run of one exchange needs none of these. --------------

    @cached_property
    def timers(self) -> "TimerService":
        """Creates and cancels timers."""
        from holon.runtime.wake.timers import TimerService

        return TimerService(store=self.store, clock=self.clock, ids=self.ids)

    @cached_property
    def wake(self) -> "WakeService":
        """Accepts wake hints."""
        from holon.runtime.wake.hints import WakeService

        return WakeService(store=self.store, clock=self.clock, ids=self.ids)

    @cached_property
    def triggers(self) -> "TriggerService":
        """Manages external triggers and their deliveries."""
        from holon.runtime.wake.triggers import TriggerService

        return TriggerService(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            trigger_key=self.trigger_key,
            trigger_base_url=self.trigger_base_url,
        )

    @cached_property
    def work(self) -> "WorkService":
        """Edits work items for an operator."""
        from holon.runtime.work.service import WorkService

        return WorkService(
            store=self.store, clock=self.clock, ids=self.ids, agent_places=self._agent_places
        )

    @cached_property
    def inspection(self) -> "AgentInspection":
        """Summarises agents."""
        from holon.runtime.agents.inspection import AgentInspection

        return AgentInspection(
            reads=self.reads,
            clock=self.clock,
            routing=self._routing,
            governor=self.governor,
            prompts=self.prompts,
            skills=self.skills,
            workspaces=self.workspaces,
            trigger_base_url=self.trigger_base_url,
        )

    @cached_property
    def prompts(self) -> "PromptService":
        """Previews the prompt an agent would be given."""
        from holon.runtime.agents.inspection import PromptService

        return PromptService(
            reads=self.reads,
            clock=self.clock,
            routing=self._routing,
            agent_places=self._agent_places,
            instructions=self.instructions,
            context=self._context,
            renderings=self._renderings,
            redactor=self.redactor,
        )

    @cached_property
    def workspaces(self) -> "WorkspaceService":
        """Attaches, enters and detaches workspaces."""
        from holon.runtime.workspaces.service import WorkspaceService

        return WorkspaceService(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            agent_places=self._agent_places,
            shell=self.shell,
            places=self.places,
            workspaces=self.workspace_finder,
        )

    @cached_property
    def skills(self) -> "SkillService":
        """Installs and removes skills."""
        from holon.runtime.guidance.skills import SkillService

        return SkillService(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            agent_places=self._agent_places,
            skills=self.skill_catalogs,
            skill_folders=self.skill_folders,
        )

    @cached_property
    def commands(self) -> "CommandService":
        """Runs an operator's commands as an agent's tasks."""
        from holon.runtime.tasks.commands import CommandService

        return CommandService(
            self.tasks,
            self._supervisor,
            reads=self.reads,
            clock=self.clock,
            ids=self.ids,
            agent_places=self._agent_places,
            shell=self.shell,
            places=self.places,
            redactor=self.redactor,
            failpoints=self.failpoints,
            task_quota=self.task_quota,
        )

    # The host itself. -----------------------------------------------------------------------------

    @property
    def reads(self) -> StoreReads:
        """The read side of the store."""
        return self.store.reads

    def shown(self, log: TurnLog) -> TurnLog:
        """Return a turn with the secrets in its tool calls redacted."""
        return log_without_secrets(log, self.redactor.redact)

    def shown_view(self, view: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a view with its secrets redacted."""
        redact = self.redactor.redact
        return {name: value_without_secrets(value, redact) for name, value in view.items()}

    @property
    def problems(self) -> Sequence[StoreError]:
        """Store problems that need attention although the host continues."""
        return self.store.problems

    @property
    def preference(self) -> ModelPreference:
        """The models of agents without an override."""
        return self.models.preference

    def withheld_tools(self, model: ModelRef) -> tuple[str, ...]:
        """The tools withheld from a model on this host."""
        return self._routing.withheld_from(model)

    @property
    def rescue_count(self) -> int:
        """How often the backstop had to wake an agent. Anything but 0 is a bug."""
        return self._scheduler.rescue_count

    @property
    def running_count(self) -> int:
        """How many agents are awake right now."""
        return self._scheduler.running_count

    async def wait_ready(self) -> None:
        """Return once recovery is done and messages are admitted."""
        await self._ready.wait()

    async def drain(self) -> None:
        """Let running turns finish and start nothing new. The status of agents does not change."""
        await self._scheduler.drain()

    async def admit(self, request: IngressRequest) -> AdmissionReceipt:
        """Admit a request durably; raises RefusedError when it is refused."""
        if not self._ready.is_set():
            raise RefusedError(
                Refusal(
                    code=RefusalCode.SHUTTING_DOWN,
                    message="the host is not ready yet",
                    hint="try again in a moment",
                )
            )
        try:
            return await self._ingress.admit(request)
        except StoreBrokenError as broken:
            self._end_with(broken)
            raise

    def _end_with(self, broken: StoreBrokenError) -> None:
        """End the host: what is durable is unknown until a restart reads it."""
        self.journal.note("store_broken", broken.message, level=LogLevel.ERROR)
        self._broken = broken
        self._broke.set()

    async def _watch_disk(self) -> None:
        await self._broke.wait()
        if self._broken is not None:
            raise self._broken

    async def run(self) -> None:
        """Recover, then serve until cancelled."""
        await self.provisioner.settle()
        recovery = self._recovery()
        await recovery.run()
        restless = await self.store.reads.agents.restless(now=self.clock.now())
        self._scheduler.begin(restless, left=recovery.left)
        async with anyio.create_task_group() as parts:
            parts.start_soon(self._scheduler.run)
            parts.start_soon(self._scheduler.run_backstop)
            parts.start_soon(self._timer_dispatcher.run)
            parts.start_soon(self.retention.run)
            parts.start_soon(self.memory.run)
            parts.start_soon(self._ledger_keeper.run)
            parts.start_soon(self._supervisor.run)
            parts.start_soon(self._watch_disk)
            self._ready.set()

    def _cut_off(self, agent_id: AgentId) -> None:
        self._scheduler.interrupt(agent_id)
        self._supervisor.agent_cut_off(agent_id)
        self._ledger_keeper.archived(agent_id)  # the abort may have ended an episode

    def _commit_applied(self, touched: Collection[AgentId]) -> None:
        self._ingress.commit_applied()
        self._supervisor.commit_applied(touched)
        self._scheduler.commit_applied(touched)
        self._timer_dispatcher.commit_applied(touched)
        self.retention.commit_applied()
        self.memory.commit_applied(touched)
        self.events.commit_applied(touched)
