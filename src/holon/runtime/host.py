"""One host: every lane and service of one HOLON_HOME, and nothing that outlives it.

Owns:  the wiring of the runtime's parts, their start order and their end; the desks at which
       others ask for something are its own, and come up when asked.
Rule 1: recovery is complete before the host is ready; nothing is admitted before.
Rule 2: every agent some row gives a reason to run is looked at when the host starts.
Rule 3: what a part cannot handle ends the host; a restart recovers from what is durable. So does a
        store that fails. A bug about one agent, in its lane, in its recovery or in what is looked
        after for it, does not: it fails the turn, or the agent is left down (Scheduler, rule 5),
        or what was to be done is left undone; it is noted in any case.
"""

from collections.abc import Collection, Mapping, Sequence

import anyio
import msgspec

from holon.decide.without_secrets import log_without_secrets, value_without_secrets
from holon.model.errors import StoreBrokenError, StoreError
from holon.model.ids import AgentId
from holon.model.ingress import AdmissionReceipt, IngressRequest
from holon.model.json_value import JsonValue
from holon.model.model_ref import ModelRef
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.transcript import TurnLog
from holon.ports.journal import LogLevel
from holon.ports.provider import ModelPreference
from holon.ports.store_reads import StoreReads
from holon.runtime.agent_birth import AgentBirth
from holon.runtime.control_desk import ControlDesk
from holon.runtime.desks import Desks
from holon.runtime.episode_ledger import EpisodeLedgerKeeper
from holon.runtime.event_feed import EventFeed
from holon.runtime.ingress import Ingress
from holon.runtime.lane import Lane
from holon.runtime.memory_indexer import MemoryIndexer
from holon.runtime.pace_desk import PaceDesk
from holon.runtime.provider_caller import withheld_from
from holon.runtime.recovery import Recovery
from holon.runtime.retention_keeper import RetentionKeeper
from holon.runtime.scheduler import Scheduler
from holon.runtime.services import Services
from holon.runtime.task_desk import TaskDesk
from holon.runtime.task_supervisor import TaskSupervisor
from holon.runtime.tick_desk import TickDesk
from holon.runtime.timer_wheel import TimerWheel


class Host(Desks):
    """An in-process Holon."""

    def __init__(self, services: Services) -> None:
        self._ingress = Ingress(services)
        tasks = TaskDesk(services, self._ingress)
        supervisor = TaskSupervisor(services, tasks)
        self.memory = MemoryIndexer(services)
        self._ledger = EpisodeLedgerKeeper(services)
        services = msgspec.structs.replace(
            services,
            tasks=supervisor,
            recall=self.memory,
            archived=self._ledger.archived,
        )
        super().__init__(services, tasks, supervisor)
        self._scheduler = Scheduler(services, Lane(services, TickDesk(services, self._ingress)))
        self._wheel = TimerWheel(services, self._ingress, self._scheduler)
        self.retention = RetentionKeeper(services)
        self._ready = anyio.Event()
        self._broke = anyio.Event()
        self._broken: StoreBrokenError | None = None
        self.births = AgentBirth(services)
        self.control = ControlDesk(services, self.births, self._cut_off)
        self.pace = PaceDesk(services)
        self.events = EventFeed(services.store, services.clock)
        services.store.observe(self._commit_applied)

    @property
    def reads(self) -> StoreReads:
        """What is durable, for views of it."""
        return self._services.store.reads

    def shown(self, log: TurnLog) -> TurnLog:
        """Return a turn as it may be shown: what its model asked of tools without secrets."""
        return log_without_secrets(log, self._services.redactor.redact)

    def shown_view(self, view: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a view as it may be shown: without secrets."""
        redact = self._services.redactor.redact
        return {name: value_without_secrets(value, redact) for name, value in view.items()}

    @property
    def home_id(self) -> str:
        """Which home this is, wherever it lies."""
        return self._services.home_id

    @property
    def problems(self) -> Sequence[StoreError]:
        """What a person should look at, though the host goes on."""
        return self._services.store.problems

    @property
    def preference(self) -> ModelPreference:
        """The models agents without a choice of their own are given."""
        return self._services.models.preference

    def withheld_tools(self, model: ModelRef) -> tuple[str, ...]:
        """The tools a model is not given on this host."""
        return withheld_from(self._services, model)

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
        """Let what runs come to its end, and begin nothing new. No agent is stopped by it."""
        await self._scheduler.drain()

    async def admit(self, request: IngressRequest) -> AdmissionReceipt:
        """Take a request in, durably; raises RefusedError when it is declined."""
        if not self._ready.is_set():
            raise RefusedError(
                Refusal(
                    code=RefusalCode.SHUTTING_DOWN,
                    message="the host is not ready",
                    hint="try again in a moment",
                )
            )
        try:
            return await self._ingress.admit(request)
        except StoreBrokenError as broken:
            self._end_with(broken)
            raise

    def _end_with(self, broken: StoreBrokenError) -> None:
        """It is unknown what is durable: the host ends, and a restart finds out."""
        self._services.journal.note("store_broken", broken.message, level=LogLevel.ERROR)
        self._broken = broken
        self._broke.set()

    async def _watch_disk(self) -> None:
        await self._broke.wait()
        if self._broken is not None:
            raise self._broken

    async def run(self) -> None:
        """Recover, then serve until cancelled."""
        await self.births.settle()
        recovery = Recovery(
            self._services,
            self.tasks,
            self._supervisor,
            start=lambda task: self.commands.start_left(task),  # the desk comes up when asked
        )
        await recovery.run()
        restless = await self._services.store.reads.restless(now=self._services.clock.now())
        self._scheduler.begin(restless, left=recovery.left)
        async with anyio.create_task_group() as parts:
            parts.start_soon(self._scheduler.run)
            parts.start_soon(self._scheduler.run_backstop)
            parts.start_soon(self._wheel.run)
            parts.start_soon(self.retention.run)
            parts.start_soon(self.memory.run)
            parts.start_soon(self._ledger.run)
            parts.start_soon(self._supervisor.run)
            parts.start_soon(self._watch_disk)
            self._ready.set()

    def _cut_off(self, agent_id: AgentId) -> None:
        self._scheduler.interrupt(agent_id)
        self._supervisor.agent_cut_off(agent_id)
        self._ledger.archived(agent_id)  # what was cut off may have ended an episode

    def _commit_applied(self, touched: Collection[AgentId]) -> None:
        self._ingress.commit_applied()
        self._supervisor.commit_applied(touched)
        self._scheduler.commit_applied(touched)
        self._wheel.commit_applied(touched)
        self.retention.commit_applied()
        self.memory.commit_applied(touched)
        self.events.commit_applied(touched)
