"""Scheduler: which agents have a running lane, driven by changed rows.

Owns:  at most one lane per agent, started when a commit touches the agent.
Rule 1: the "rows changed" mark is cleared before the rows are read, never after: a commit that
        lands during the read then triggers the next one.
Rule 2: the scheduler keeps no state about an agent's work; the lane decides from the rows.
Rule 3: the backstop checks every agent with a reason to run. Each agent it has to wake is a bug,
        counted by `rescue_count`. A clock that was set back is no bug and sends no notification, so
        the backstop asks for the agents whose hold it made void.
Rule 4: a draining host claims nothing more: running turns finish, and what is queued behind them is
        left to the next host.
Rule 5: a bug about one agent does not affect others. It is logged, and the agent is left down: it
        gets a lane again when a commit touches it, and at the next start. A commit from before it
        was left down (its own, for example) and a due moment are honoured at the next backstop
        round, so a lane that crashes each time is retried now and then, never in a tight loop. An
        agent left down does not count as overlooked, and no rescue is counted for it.
"""

from collections.abc import Collection
from datetime import datetime

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from holon.decide.wake.activation import Rest, RestUntil, StayInactive, decide_activation
from holon.model.limits import BACKSTOP_GRACE_MS, BACKSTOP_INTERVAL_MS
from holon.model.values import AgentId
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.ports.reads import StoreReads
from holon.runtime.background import Alarm, raise_unless_bug
from holon.runtime.turns.lane import Lane


class Scheduler:
    """Starts lanes for one host."""

    def __init__(
        self,
        lane: Lane,
        *,
        reads: StoreReads,
        clock: Clock,
        journal: Journal,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._journal = journal
        self._lane = lane
        self._alarm = Alarm(self._clock)
        self._news: dict[AgentId, None] = {}  # ordered, so that a seed replays exactly
        self._running: dict[AgentId, anyio.CancelScope] = {}
        self._left_down: dict[AgentId, None] = {}  # until a later commit touches them
        self._draining = False
        self._drained = anyio.Event()
        self.rescue_count = 0

    @property
    def running_count(self) -> int:
        """How many agents have a lane right now."""
        return len(self._running)

    def begin(self, restless: Collection[AgentId], *, left: Collection[AgentId]) -> None:
        """Schedule every agent with a reason to run, except those recovery left down."""
        for agent_id in left:
            self._news.pop(agent_id, None)  # what recovery itself wrote
        self._left_down.update(dict.fromkeys(left))
        self.wake_agents([agent_id for agent_id in restless if agent_id not in left])

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Note that rows of these agents changed."""
        for agent_id in touched:
            self._left_down.pop(agent_id, None)
        self.wake_agents(touched)

    def wake_agents(self, agents: Collection[AgentId]) -> None:
        """Schedule these agents, whether or not their rows changed."""
        self._news.update(dict.fromkeys(agents))
        if any(agent_id not in self._running for agent_id in agents):
            self._alarm.nudge()

    def _leave_down(self, agent_id: AgentId, error: Exception) -> None:
        """Give the agent no lane until its rows change."""
        self._left_down[agent_id] = None
        self._journal.note(
            "agent_left_down",
            f"{agent_id} cannot be run, and is left down until its rows change (a bug)",
            level=LogLevel.ERROR,
            error=error,
            agent_id=agent_id,
        )

    def interrupt(self, agent_id: AgentId) -> None:
        """Cancel the agent's lane; the commit that fenced it recorded the reason."""
        if (scope := self._running.get(agent_id)) is not None:
            scope.cancel()

    async def drain(self) -> None:
        """Start no more lanes, and return once those that run have ended."""
        self._draining = True
        if self._running:
            await self._drained.wait()

    async def run(self) -> None:
        """Start a lane for every agent whose rows changed, until cancelled."""
        async with anyio.create_task_group() as lanes:
            while True:
                self._start_lanes(lanes)
                await self._alarm.wait(until=None)

    def _start_lanes(self, lanes: TaskGroup) -> None:
        if self._draining:
            return
        ready = (a for a in self._news if a not in self._running)
        for agent_id in [a for a in ready if a not in self._left_down]:
            scope = anyio.CancelScope()
            self._running[agent_id] = scope
            lanes.start_soon(self._run_lane, agent_id, scope)

    async def _run_lane(self, agent_id: AgentId, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await self._lane.run(
                    agent_id,
                    before_look=lambda: self._news.pop(agent_id, None),
                    may_go_on=lambda: not self._draining,
                )
        except Exception as error:  # noqa: BLE001 - named boundary: a bug leaves one agent down, not the host
            raise_unless_bug(error)
            self._leave_down(agent_id, error)
        finally:
            del self._running[agent_id]
            if self._draining and not self._running:
                self._drained.set()
            if scope.cancel_called or self._draining:
                self._news[agent_id] = None  # the cancelled lane may have left work
            if agent_id in self._news:
                self._alarm.nudge()

    async def run_backstop(self) -> None:
        """At intervals, wake agents that should be running and are not."""
        clock = self._clock
        while True:
            await clock.sleep_for(BACKSTOP_INTERVAL_MS)
            self._retry_left_down()
            self.wake_agents(await self._reads.budgets.void_holds(now=clock.now()))
            suspects = await self._overlooked()
            if not suspects:
                continue
            # After a clock change, lanes start within the grace period.
            await clock.sleep_for(BACKSTOP_GRACE_MS)
            still = await self._overlooked()
            for agent_id in (a for a, seq in suspects.items() if still.get(a) == seq):
                self.rescue_count += 1
                self._journal.note(
                    "agent_overlooked",
                    f"{agent_id} was overlooked and has been woken (a bug)",
                    level=LogLevel.ERROR,
                    agent_id=agent_id,
                )
                self.commit_applied([agent_id])

    def _retry_left_down(self) -> None:
        """Retry agents whose rows changed before they were left down."""
        self.commit_applied([a for a in self._left_down if a in self._news])

    async def _overlooked(self) -> dict[AgentId, int]:
        """Agents that have work, but no lane and none about to start.

        Each with its newest event number: an agent whose log has moved since is being handled.
        """
        reads, now = self._reads, self._clock.now()
        overlooked = {}
        for agent_id in await reads.agents.restless(now=now):
            await checkpoint()  # a long list must not block the event loop
            if any(agent_id in known for known in (self._running, self._news, self._left_down)):
                continue
            try:
                should_run = await self._should_run(agent_id, now=now)
            except Exception as error:  # noqa: BLE001 - named boundary: as for a lane
                raise_unless_bug(error)
                self._leave_down(agent_id, error)
            else:
                if should_run:
                    overlooked[agent_id] = (await reads.events.event_bounds(agent_id))[1]
        return overlooked

    async def _should_run(self, agent_id: AgentId, *, now: datetime) -> bool:
        snapshot = await self._reads.agents.snapshot(agent_id, now=now)
        return snapshot is not None and not isinstance(
            decide_activation(snapshot, now=now), StayInactive | Rest | RestUntil
        )
