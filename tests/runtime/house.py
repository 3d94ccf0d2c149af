"""A real host on virtual time, in which a test tells a story.

Owns:  `run_house`: the runtime, the SQL and the schema are the real ones; the clock, the disk's
       thread and the model are not. A story may let time pass, crash the process and go on.
Rule 1: whatever the story was about, afterwards every invariant of the database holds, every
        request the model got was one a provider takes, the backstop had nothing to rescue, and no
        agent met a bug that the story did not plant.
Rule 2: a story outlives the process: see tests/runtime/telling.py.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, TypeAlias

import anyio
import msgspec

from holon.decide.budgets.budget import PriceLookup
from holon.decide.workspaces import HostRoots
from holon.model.agents import AgentState
from holon.model.budgets import BudgetPolicy
from holon.model.errors import StoreBrokenError
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import Event
from holon.model.events.retention import RetentionPolicy
from holon.model.queue import IngressRequest, Priority
from holon.model.tasks import TaskQuota
from holon.model.values import AgentId, MessageId
from holon.model.wake import WakeDisposition
from holon.model.work import ReminderPolicy
from holon.ports.agents import AgentHomes, NoHomes
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.guidance import Instructions, NoInstructions, NoSkills, SkillCatalogs
from holon.ports.journal import Journal, NoJournal, NothingToRedact, Redactor
from holon.ports.providers import Provider
from holon.ports.store import Store
from holon.ports.tracer import NoTracer, Tracer
from holon.runtime.host import Host
from holon.serve.compose import unpriced
from holon.tools.registry import ToolRegistry, builtin_tools
from tests.runtime.cast import Listener, Runaway, hint_for, prompt_for, webhook_for
from tests.runtime.telling import LifeLostError, Telling, crash_process
from tests.support.armed_failpoints import FailpointError
from tests.support.bug_notes import OF_AN_AGENT, BugNotes
from tests.support.builders import MAIN, an_identity
from tests.support.fault_store import FaultStore
from tests.support.hosts import a_host
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.scripted_provider import Script, ScriptedProvider, ScriptedRule
from tests.support.scripted_shell import CommandScript, NamedPlaces, ScriptedShell
from tests.support.sequential_ids import SequentialIds
from tests.support.sim_loop import SimLoop, SimulatedCrash
from tests.support.single_model import SingleModel
from tests.support.world_oracle import safety_problems

Story: TypeAlias = "Callable[[House], Coroutine[Any, Any, None]]"
_LIVES_COUNT_MAX = 60


class Setup(msgspec.Struct, kw_only=True):
    """What a house is made of, where it differs from the plain one."""

    model: Callable[[ManualClock], Provider] | None = None
    wrap: Callable[[Store], Store] = lambda store: store
    failpoints: Failpoints = msgspec.field(default_factory=NoFailpoints)
    tools: ToolRegistry = msgspec.field(default_factory=builtin_tools)
    commands: Mapping[str, CommandScript] = msgspec.field(default_factory=dict)
    workspace_root: str | None = None
    redactor: Redactor = msgspec.field(default_factory=NothingToRedact)
    journal: Journal = msgspec.field(default_factory=NoJournal)
    tracer: Tracer = msgspec.field(default_factory=NoTracer)
    retention: RetentionPolicy = RetentionPolicy()
    reminders: ReminderPolicy = ReminderPolicy()
    budgets: BudgetPolicy = BudgetPolicy()
    homes: AgentHomes = msgspec.field(default_factory=NoHomes)
    price_of: PriceLookup = unpriced
    task_quota: TaskQuota = TaskQuota()
    instructions: Instructions = msgspec.field(default_factory=NoInstructions)
    skills: SkillCatalogs = msgspec.field(default_factory=NoSkills)
    deferral_allowed: bool = True
    trigger_base_url: str | None = None
    rescue_count: int = 0
    bugs: frozenset[str] = frozenset()  # events of bugs about an agent that the story plants
    seed: int = 0


class House:
    """One database with the lives of a host on it."""

    host: Host
    disk: FaultStore  # tell it what is wrong; in every new life it is well again
    store: Store

    def __init__(self, script: Iterable[ScriptedRule], setup: Setup) -> None:
        self.setup = setup
        self.clock = ManualClock()
        self.connection = memory_connection()
        self.ids = SequentialIds()
        self.shell = ScriptedShell(self.clock, setup.commands)
        self.places = NamedPlaces()
        scripted = ScriptedProvider(Script(rules=tuple(script)), self.clock)
        self.model = Listener(setup.model(self.clock) if setup.model else scripted)
        self.acked: dict[MessageId, AgentId] = {}
        self.deaths: list[BaseException] = []
        self.rescue_count = 0
        self.bugs = BugNotes(setup.journal, OF_AN_AGENT)
        self.down_ms = 0
        self.model_ref = "scripted/test"  # the default model of the next life

    def build(self) -> None:
        """Make the host of the next life."""
        self.shell.begin_life()
        writer = InlineWriter(self.connection, self.clock, NoFaults())
        self.disk = FaultStore(memory_store(self.connection, writer), self.clock)
        self.store = self.setup.wrap(self.disk)
        self.host = a_host(
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            models=SingleModel(self.model, self.model_ref),
            tools=self.setup.tools,
            deferral_allowed=self.setup.deferral_allowed,
            trigger_base_url=self.setup.trigger_base_url,
            failpoints=self.setup.failpoints,
            retention_policy=self.setup.retention,
            reminders=self.setup.reminders,
            budgets=self.setup.budgets,
            price_of=self.setup.price_of,
            task_quota=self.setup.task_quota,
            redactor=self.setup.redactor,
            homes=self.setup.homes,
            instructions=self.setup.instructions,
            skill_catalogs=self.setup.skills,
            journal=self.bugs,
            tracer=self.setup.tracer,
            roots=HostRoots(home="/home", workspace_root=self.setup.workspace_root),
            shell=self.shell,
            places=self.places,
        )

    async def prompt(
        self,
        text: str,
        *,
        agent: str = MAIN,
        priority: Priority = Priority.NORMAL,
        key: str | None = None,
    ) -> MessageId:
        """Say something as the operator; what is acknowledged must never be lost."""
        return await self._send(prompt_for(text, agent=agent, priority=priority, key=key))

    async def webhook(self, text: str, *, agent: str = MAIN) -> MessageId:
        """Send something in from outside."""
        return await self._send(webhook_for(text, agent=agent))

    async def _send(self, request: IngressRequest) -> MessageId:
        message_id = (await self.host.admit(request)).message_id
        self.acked[message_id] = request.agent_id
        return message_id

    async def hint(
        self, source: str, *, body: str | None = None, agent: str = MAIN
    ) -> WakeDisposition:
        """Signal that something changed."""
        hint = hint_for(source, body=body, agent=agent, now=self.clock.now())
        return await self.host.wake.submit(hint)

    async def rest(self, ms: int) -> None:
        """Let time pass, and with it everything that is due or ready."""
        until = self.clock.now() + timedelta(milliseconds=ms)
        while self.clock.now() < until:
            try:
                await self.clock.sleep_until(until)
            except LifeLostError:
                continue

    async def restart(self, *, down_ms: int = 0) -> None:
        """Kill the process where it stands and come back on the same database."""
        self.down_ms = down_ms
        await crash_process()

    async def agent(self, agent: str = MAIN) -> AgentState:
        """The agent's row."""
        found = await self.store.reads.agents.agent(AgentId(agent))
        assert found is not None
        return found

    async def briefs(self, agent: str = MAIN) -> list[BriefRecord]:
        """What the operator was told."""
        return list(await self.store.reads.events.briefs(AgentId(agent), limit=1_000))

    async def events(self, agent: str = MAIN) -> list[Event]:
        """The agent's log."""
        after = (await self.store.reads.events.event_bounds(AgentId(agent)))[0]
        found = await self.store.reads.events.events_after(AgentId(agent), after, limit=100_000)
        return [audit.event for audit in found]


def run_house(
    story: Story, *, script: Iterable[ScriptedRule] = (), setup: Setup | None = None
) -> House:
    """Tell a story from beginning to end, over as many lives as it takes, and judge the rest."""
    house = House(script, setup or Setup())
    telling = Telling(story(house))
    chance = Random(house.setup.seed)
    for _ in range(_LIVES_COUNT_MAX):
        house.build()
        try:
            SimLoop(house.clock, chance).run_life(_live(house, telling))
        except SimulatedCrash as crash:
            house.deaths.append(crash)
        except Runaway:
            raise AssertionError("the model was asked without end") from None
        except BaseExceptionGroup as group:
            if telling.error is not None:
                raise telling.error from None
            if group.split((StoreBrokenError, FailpointError))[1] is not None:
                raise
            house.deaths.append(group)
        house.rescue_count += house.host.rescue_count
        if telling.is_over:
            break
        house.clock.advance(house.down_ms)
        house.down_ms = 0
    assert telling.is_over, "the story never came to its end"
    assert safety_problems(house.connection, acked=house.acked) == []
    assert house.model.problems == []
    assert house.rescue_count == house.setup.rescue_count
    assert {event for event, _ in house.bugs.heard} == house.setup.bugs, house.bugs.heard
    return house


async def _live(house: House, telling: Telling) -> None:
    async with anyio.create_task_group() as life:
        life.start_soon(telling.watch, house.host.run)
        await house.host.wait_ready()
        if await house.store.reads.agents.agent(MAIN) is None:
            await house.host.control.create_agent(an_identity())
        await telling.go_on()
        life.cancel_scope.cancel()
