"""A seeded world: a real runtime on a real database, under everything that can go wrong.

Owns:  one seed from beginning to end: lives of a host between crashes, the actors around it, and
       the verdict. The same seed gives the same trace, step for step.
Rule 1: safety is judged after every crash and at the end; liveness only after faults have stopped
        and an hour has passed.
Rule 2: only the database, the clock, the notebook and running commands survive a crash.
Rule 3: a bug that the runtime survives still fails the seed.
Rule 4: half of the seeds run commands (see `has_commands`). Half of the others keep little history,
        so that retention runs beside everything else (see `forgets`).
"""

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import partial
from random import Random
from typing import Final

import anyio
import apsw

from holon.adapters.sqlite.writer.commit_writer import Result
from holon.model.agents import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.commits import AuditedCommit
from holon.model.errors import RefusedError, StoreBrokenError
from holon.model.events.retention import RetentionPolicy
from holon.model.values import AgentId
from holon.ports.journal import NoJournal
from holon.runtime.commits import patiently
from holon.runtime.events.feed import SubscriberLaggedError
from holon.runtime.host import Host
from tests.support.bug_notes import OF_A_TURN, OF_AN_AGENT, BugNotes
from tests.support.command_oracle import (
    execution_problems,
    given_up,
    ownerless,
    result_problems,
    runaways,
    tasks_to_take_up,
    untold,
)
from tests.support.database_oracle import row_count
from tests.support.hosts import a_host
from tests.support.inline_writer import InlineWriter
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.sequential_ids import SequentialIds
from tests.support.sim_loop import SimLoop, SimulatedCrash
from tests.support.single_model import SingleModel
from tests.support.world_actors import TRIGGER_BASE_URL, Actors, Notebook, WorldTriggerKey
from tests.support.world_commands import WorldCommands, ports_of
from tests.support.world_faults import WorldFaults
from tests.support.world_model import WorldModel
from tests.support.world_oracle import liveness_problems, safety_problems
from tests.support.world_plan import AGENTS, JumpClock, merged, plan_world

SPAN_MS: Final = 600_000
QUIET_MS: Final = 3_600_000
LIVES_COUNT_MAX: Final = 400
FORGETFUL: Final = RetentionPolicy(
    age_ms=60_000, events_count_min=5, turns_count_min=2, batch_count=3, commit_ids_kept_ms=60_000
)
SIZES: Final = (4, 8, 12, 24)  # how many things are planned to happen; each seed draws one


class Mode(StrEnum):
    """What a world is to show."""

    SAFETY = "safety"
    LIVENESS = "liveness"


@dataclass(slots=True)
class Verdict:
    """What came of one seed."""

    seed: int
    mode: Mode
    problems: list[str] = field(default_factory=list)
    crash_count: int = 0
    turn_count: int = 0
    command_count: int = 0
    task_count: int = 0
    rescue_count: int = 0
    trace_hash: str = ""

    def __str__(self) -> str:
        found = self.problems[0] if self.problems else "clean"
        return f"seed={self.seed} mode={self.mode} crashes={self.crash_count} {found}"


def has_commands(seed: int) -> bool:
    """Whether the agents of this seed run commands: two in a row do, two do not."""
    return seed // 2 % 2 == 1


def forgets(seed: int) -> bool:
    """Whether retention leaves the world of this seed little history."""
    return seed // 2 % 4 == 2


class World:
    """One seed."""

    def __init__(self, seed: int, mode: Mode, *, action_count: int | None = None) -> None:
        self._verdict = Verdict(seed=seed, mode=mode)
        self._clock = ManualClock()
        self._began = self._clock.now()
        self._ids = SequentialIds()
        self._connection: apsw.Connection = memory_connection()
        self._loop_chance = Random(f"{seed}:loop")
        self._faults = WorldFaults(self._clock, Random(f"{seed}:faults"))
        self._commands = (
            WorldCommands(self._clock, Random(f"{seed}:hands"), span_ms=SPAN_MS)
            if has_commands(seed)
            else None
        )
        self._model = WorldModel(
            self._clock, Random(f"{seed}:model"), follow_up_count_max=8, commands=self._commands
        )
        plan_chance = Random(f"{seed}:plan")
        size = action_count or plan_chance.choice(SIZES)
        self._plan = plan_world(plan_chance, action_count=size, span_ms=SPAN_MS)
        if self._commands is not None:
            self._plan = merged(self._plan, self._commands.steering(span_ms=SPAN_MS))
        self._notebook = Notebook()
        self._bugs = BugNotes(NoJournal(), OF_AN_AGENT | OF_A_TURN)
        self._judged_at = -1
        self._trace = hashlib.sha256()

    def run(self) -> Verdict:
        """Live, die, recover, and be judged."""
        for life in range(LIVES_COUNT_MAX):
            if life == LIVES_COUNT_MAX // 2:
                self._faults.active = False  # enough: let it finish
            if self._one_life():
                break
            self._verdict.crash_count += 1
            self._clock.advance(self._loop_chance.randrange(5_000))
            self._judge_safety()
        else:
            self._verdict.problems.append("the world never came to its end")
        self._judge_end()
        self._connection.close()
        return self._verdict

    def _one_life(self) -> bool:
        """Run a host until the world ends (True) or the process dies (False)."""
        if self._commands is not None:
            self._commands.begin_life()
        loop = SimLoop(self._clock, self._loop_chance)
        loop.crash_at_step = self._faults.steps_to_crash()
        try:
            loop.run_life(self._live(loop))
        except SimulatedCrash:
            self._note("crash", str(loop.step_count))
            return False
        except BaseExceptionGroup as group:
            if group.split(StoreBrokenError)[1] is not None:
                raise
            self._note("broken", str(loop.step_count))
            return False
        return True

    async def _live(self, loop: SimLoop) -> None:
        writer = InlineWriter(self._connection, self._clock, self._faults)
        writer.on_group = self._trace_group
        host = a_host(
            store=memory_store(self._connection, writer),
            clock=self._clock,
            ids=self._ids,
            models=SingleModel(self._model),
            journal=self._bugs,
            trigger_key=WorldTriggerKey(),
            trigger_base_url=TRIGGER_BASE_URL,
            retention_policy=FORGETFUL if forgets(self._verdict.seed) else RetentionPolicy(),
            **({} if self._commands is None else ports_of(self._commands)),
        )
        before = self._tasks_to_take_up()
        try:
            async with anyio.create_task_group() as life:
                life.start_soon(host.run)
                await host.wait_ready()
                if self._commands is not None:
                    self._judge_recovery(self._commands, before)
                    life.start_soon(self._commands.strike)
                await self._create_agents(host)
                for agent in AGENTS:
                    life.start_soon(self._follow, host, AgentId(agent))
                await self._act_out(host)
                await self._wind_down(loop)
                life.cancel_scope.cancel()
        finally:
            self._verdict.rescue_count += host.rescue_count

    async def _create_agents(self, host: Host) -> None:
        for agent in AGENTS:
            identity = AgentIdentity(
                agent_id=AgentId(agent),
                kind=AgentKind.NAMED,
                visibility=Visibility.PUBLIC,
                ownership=Ownership.SELF_OWNED,
                profile_preset=ProfilePreset.PUBLIC_NAMED,
                created_at=self._clock.now(),
            )
            create = partial(host.control.create_agent, identity)
            try:
                await patiently(create, clock=self._clock)
            except RefusedError:
                continue  # an earlier life made it

    async def _act_out(self, host: Host) -> None:
        actors = Actors(host, self._clock, self._notebook)
        if self._commands is not None:
            jumped = self._commands.shell.clock_was_set
            actors = Actors(host, self._clock, self._notebook, jumped=jumped)
        async with anyio.create_task_group() as acting:
            for number, planned in enumerate(self._plan):
                if number in self._notebook.done:
                    continue
                due = self._began + timedelta(milliseconds=planned.at_ms)
                if not isinstance(planned.action, JumpClock):
                    await self._clock.sleep_until(due)
                acting.start_soon(actors.perform, number, planned.action)

    async def _wind_down(self, loop: SimLoop) -> None:
        if self._verdict.mode is Mode.LIVENESS:
            self._faults.active = False
            self._model.calm_down()
            loop.crash_at_step = None
            quiet = timedelta(milliseconds=QUIET_MS)
            await self._clock.sleep_until(self._clock.now() + quiet)

    async def _follow(self, host: Host, agent_id: AgentId) -> None:
        """A reader that must see every event once, in order, across all lives."""
        cursors = self._notebook.cursors
        try:
            async for event in host.events.follow(agent_id, after=cursors.get(agent_id, 0)):
                expected = cursors.get(agent_id, 0) + 1
                if event.event_seq != expected:
                    self._notebook.problems.append(
                        f"P14 {agent_id} saw event {event.event_seq}, expected {expected}"
                    )
                cursors[agent_id] = event.event_seq
        except SubscriberLaggedError:
            return

    def _trace_group(self, commits: list[AuditedCommit], results: list[Result]) -> None:
        for commit, result in zip(commits, results, strict=True):
            self._note(commit.commit_id, type(result).__name__)

    def _note(self, what: str, how: str) -> None:
        self._trace.update(f"{self._clock.monotonic_ns()} {what} {how}\n".encode())

    def _judge_safety(self) -> None:
        changes = self._connection.total_changes()
        if changes == self._judged_at:
            return  # nothing has happened since the last judgement
        self._judged_at = changes
        self._verdict.problems.extend(
            safety_problems(
                self._connection,
                acked=self._notebook.owners,
                is_pruned=forgets(self._verdict.seed),
            )
        )
        if self._commands is not None:
            started = [process.run_id for process in self._commands.shell.started]
            self._verdict.problems.extend(execution_problems(self._connection, started))
            self._verdict.problems.extend(result_problems(self._connection))

    def _tasks_to_take_up(self) -> list[str]:
        if self._commands is None:
            return []
        return tasks_to_take_up(self._connection, found=self._commands.shell.kept)

    def _judge_recovery(self, commands: WorldCommands, before: list[str]) -> None:
        """Recovery is done: every task has ended or has its command, and no command is astray."""
        self._verdict.problems.extend(given_up(self._connection, before=before))
        running = [process.run_id for process in commands.shell.running]
        self._verdict.problems.extend(ownerless(self._connection, found=commands.shell.kept))
        self._verdict.problems.extend(runaways(self._connection, running=running))

    def _judge_end(self) -> None:
        self._judge_safety()
        self._verdict.problems.extend(self._notebook.problems)
        self._verdict.problems.extend(f"P5 {problem}" for problem in self._model.problems)
        self._verdict.problems.extend(f"P7 {event} of {what}" for event, what in self._bugs.heard)
        if self._verdict.mode is Mode.LIVENESS:
            self._verdict.problems.extend(
                liveness_problems(self._connection, now=self._clock.now())
            )
            if self._commands is not None:
                running = [process.run_id for process in self._commands.shell.running]
                self._verdict.problems.extend(untold(self._connection, running=running))
                self._verdict.problems.extend(runaways(self._connection, running=running))
        if self._verdict.rescue_count:
            self._verdict.problems.append(f"P7 {self._verdict.rescue_count} rescues")
        if self._commands is not None:
            self._verdict.command_count = len(self._commands.shell.started)
            self._verdict.task_count = row_count(self._connection, "tasks")
        self._verdict.trace_hash = self._trace.hexdigest()
        self._verdict.turn_count = row_count(self._connection, "turns")
