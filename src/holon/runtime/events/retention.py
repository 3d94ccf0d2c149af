"""Keeps the database and the files that go with its rows within bounds, a small step at a time.

Owns:  when it is looked at, and the journal's lines about what is found; when retention runs: at
       intervals, early when many commits have come in, and at once when the database has nearly
       reached its cap.
Rule 1: a database that was exchanged or removed ends the host at once, also when nothing is
        committed meanwhile.
Rule 2: what the store gets over by itself is told once when it begins, and once when it is over.
Rule 3: a step is bounded, so that commits of agents never wait long behind it.
Rule 4: the size is looked at every few commits. When pruning cannot bring it down, because all that
        is left must be kept, the next look comes as late as if there were room.
Rule 5: above the cap, less is kept of each agent, step by step (decide/events/retention), and that
        much until there is room again: else many agents exceed the cap by what is kept of each.
Rule 6: the files of a command stay while its task runs, and until its result was read. What keeps
        them from being looked at ends nothing: the next pass looks again.
Rule 7: what waits to be shown to an agent is bounded as well, and more tightly while the database
        is nearly full: else whoever may write to an agent that is not listening fills the disk.
        What is let go is finished history from then on.
Rule 8: the home of an agent that was made for one run goes when the agent is archived and the last
        row of its doings has gone. Homes of all other agents stay.
Rule 9: who counts from the log what has happened is asked to count before anything of it goes.
Rule 10: ages go by what is believed of the wall clock (decide/events/retention), intervals by the
         monotonic reading: a clock that was set ahead removes nothing, one that was set back stops
         nothing.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import NoReturn

import anyio

from holon.decide.agents.lifecycle import is_temporary
from holon.decide.events.audit import audited
from holon.decide.events.retention import (
    ClockTrust,
    confirmation_moments,
    confirmed_time,
    drop_unseen_commit,
    initial_trust,
    runs_to_forget,
    tighter_policy,
    trusted_now,
    updated_trust,
)
from holon.decide.tasks.commands import run_id_of
from holon.model.commits import Applied
from holon.model.errors import HolonError, StoreFullError
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import (
    RETENTION_CHECK_COMMITS_COUNT,
    RETENTION_COMMITS_COUNT,
    RETENTION_FULL_PERCENT,
    RETENTION_INTERVAL_MS,
    STORE_CHECK_MS,
    UNSEEN_FULL_COUNT_MAX,
    UNSEEN_PER_AGENT_COUNT_MAX,
)
from holon.model.values import AgentId
from holon.ports.agents import AgentHomes
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Journal, LogLevel
from holon.ports.store import Store
from holon.ports.tasks import Shell
from holon.runtime.background import Alarm
from holon.runtime.tasks.supervisor import spared


async def watch_store(store: Store, clock: Clock, journal: Journal) -> NoReturn:
    """Look for ever; raises StoreBrokenError when the store can no longer be relied on."""
    told: dict[str, str] = {}
    while True:
        await clock.sleep_for(STORE_CHECK_MS)
        with suppress(StoreFullError):  # it is among the problems
            await store.look()
        found = {problem.code: problem.message for problem in store.problems}
        for code in found.keys() - told.keys():
            journal.note(code, found[code], level=LogLevel.WARNING)
        for code in told.keys() - found.keys():
            journal.note(f"{code}_over", f"it is over: {told[code]}")
        told = found


class RetentionKeeper:
    """Runs retention for one host."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        shell: Shell,
        homes: AgentHomes,
        failpoints: Failpoints,
        journal: Journal,
        retention: RetentionPolicy,
    ) -> None:
        self._store = store
        self._clock = clock
        self._shell = shell
        self._homes = homes
        self._failpoints = failpoints
        self._journal = journal
        self._retention = retention
        self._alarm = Alarm(self._clock)
        self._full_bytes = self._retention.bytes_max * RETENTION_FULL_PERCENT // 100
        self._policy = self._retention  # tighter while the database is above its cap
        self._is_stuck = False  # the last pass left the database nearly full
        self._groups_seen = 0  # since the last pass
        self._is_due = False
        self._trust: ClockTrust | None = None
        self._before: list[Callable[[], Awaitable[None]]] = []

    def before_each_step(self, act: Callable[[], Awaitable[None]]) -> None:
        """Have something done before rows go, by those who have yet to read them."""
        self._before.append(act)

    def commit_applied(self) -> None:
        """Count what comes in; every few groups are a reason to look."""
        self._groups_seen += 1
        if self._groups_seen % RETENTION_CHECK_COMMITS_COUNT == 0 or self._is_burst():
            self._alarm.nudge()

    async def run(self) -> None:
        """Prune for ever."""
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._be_due)
            await self._prune_when_due()

    async def _be_due(self) -> None:
        while True:
            await self._clock.sleep_for(RETENTION_INTERVAL_MS)
            self._is_due = True
            self._alarm.nudge()

    async def _prune_when_due(self) -> None:
        await self._trusted_now()  # from here on the clock is watched
        while True:
            await self._alarm.wait(until=None)
            if self._is_due or self._is_burst() or await self._may_overflow():
                self._is_due, self._groups_seen = False, 0
                await self.prune_all()

    def _is_burst(self) -> bool:
        return self._groups_seen >= RETENTION_COMMITS_COUNT

    async def _may_overflow(self) -> bool:
        return not self._is_stuck and await self._is_full()

    async def _is_full(self) -> bool:
        return await self._store.reads.used_bytes() > self._full_bytes

    async def prune_all(self) -> None:
        """Prune until the policy is met."""
        with spared(self._journal, "the files of ended commands are left for later"):
            await self._forget_runs()
        try:
            await self._let_go_unseen(kept=UNSEEN_PER_AGENT_COUNT_MAX)
            await self._prune_to_room()
            if await self._is_full() and await self._let_go_unseen(kept=UNSEEN_FULL_COUNT_MAX):
                await self._prune_rows()
        except StoreFullError:
            return  # the next interval tries again
        await self._remove_homes()
        self._is_stuck = await self._is_full()

    async def _prune_to_room(self) -> None:
        if not await self._is_full():
            self._policy = self._retention
        await self._prune_rows()
        while await self._is_full() and (tighter := tighter_policy(self._policy)):
            self._policy = tighter
            await self._prune_rows()

    async def _trusted_now(self) -> datetime:
        """Look at the clock, and return the moment that is believed to have come."""
        clock, reads = self._clock, self._store.reads
        now, monotonic_ns = clock.now(), clock.monotonic_ns()
        if self._trust is None:
            newest = [await reads.settled_by(moment) for moment in confirmation_moments(now)]
            believed = confirmed_time(newest, oldest=await reads.logged_since(), now=now)
            self._trust = initial_trust(believed, now=now, monotonic_ns=monotonic_ns)
        self._trust = updated_trust(self._trust, now=now, monotonic_ns=monotonic_ns)
        return trusted_now(self._trust, monotonic_ns=monotonic_ns)

    async def _prune_rows(self) -> None:
        more = True
        while more:
            for act in self._before:
                await act()
            report = await self._store.prune(self._policy, now=await self._trusted_now())
            more = report.more
            await self._failpoints.reach(Failpoint.RETENTION_BETWEEN_BATCHES)

    async def _let_go_unseen(self, *, kept: int) -> bool:
        """Bound what waits to be shown to each agent; returns whether something was let go."""
        crowded = await self._store.reads.crowded(kept=kept)
        return any([await self._let_go_oldest(agent_id, kept=kept) for agent_id in crowded])

    async def _let_go_oldest(self, agent_id: AgentId, *, kept: int) -> bool:
        """Let go a batch at a time, as long as the agent begins no turn meanwhile."""
        has_let_go = False
        reads, batch_count = self._store.reads, self._retention.batch_count
        while agent := await reads.agent(agent_id):
            oldest = await reads.oldest_unseen(agent_id, kept=kept, limit=batch_count)
            if not oldest:
                break
            commit = drop_unseen_commit(agent, oldest, now=self._clock.now())
            if await self._store.apply(audited(commit)) != Applied():
                break
            has_let_go = True
        return has_let_go

    async def _remove_homes(self) -> None:
        """Take away the homes of past runs of which nothing is left in the database."""
        try:
            there = await self._homes.temporary()
            past = await self._store.reads.archived_without_history(there) if there else ()
            for identity in past:
                if is_temporary(identity):
                    await self._homes.remove(identity.agent_id)
        except HolonError as error:
            self._journal.note(
                "homes_kept",
                "the homes of past runs are left for later",
                level=LogLevel.WARNING,
                error=error,
            )

    async def _forget_runs(self) -> None:
        """Drop what ended commands left on disk, as far as the policy wants it."""
        runs = await self._shell.ended_runs()
        if not runs:
            return
        reads = self._store.reads
        # Those that run come first: a task that ends in between is in the second list.
        tasks = [*await reads.open_tasks(), *await reads.unread_tasks()]
        in_use = [run_id for task in tasks if (run_id := run_id_of(task)) is not None]
        leaving = runs_to_forget(
            runs,
            in_use=in_use,
            policy=self._retention,
            now=self._clock.now(),
            trusted=await self._trusted_now(),
        )
        for run in leaving:
            await self._shell.forget(run.run_id)
