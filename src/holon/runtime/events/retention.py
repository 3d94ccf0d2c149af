"""Retention: keep the database and the files that belong to its rows within bounds.

Owns:  when retention runs (at intervals, early after many commits, and at once when the database
       has nearly reached its cap), and the log lines about the store's problems.
Rule 1: a database file that was replaced or removed ends the host at once, also without a commit.
Rule 2: a problem the store recovers from by itself is logged once when it begins and once when it
        ends.
Rule 3: each pruning step is bounded, so that commits of agents never wait long behind it.
Rule 4: the size is checked every few commits. When pruning cannot reduce it, because all that is
        left must be kept, the next check waits as long as if there were room.
Rule 5: above the cap, less is kept of each agent, step by step (decide/events/retention), until
        there is room again: otherwise many agents exceed the cap by what is kept of each.
Rule 6: the files of a command stay while its task runs, and until its result was read. An error
        while examining them is logged; the next pass tries again.
Rule 7: messages waiting to be shown to an agent are bounded as well, and more tightly while the
        database is nearly full: otherwise any sender could fill the disk through an agent that does
        not read. Discarded messages are finished history from then on.
Rule 8: the home of an agent created for one run is removed once the agent is archived and its last
        row is pruned. Homes of all other agents stay.
Rule 9: consumers that count from the log run before any of it is removed.
Rule 10: ages use the trusted wall clock (decide/events/retention), intervals the monotonic clock: a
         clock that was set ahead removes nothing, one that was set back stops nothing.
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
from holon.runtime.tasks.supervisor import os_errors_noted


async def watch_store(store: Store, clock: Clock, journal: Journal) -> NoReturn:
    """Check the store at intervals; raises StoreBrokenError when it is no longer usable."""
    reported: dict[str, str] = {}
    while True:
        await clock.sleep_for(STORE_CHECK_MS)
        with suppress(StoreFullError):  # listed in `store.problems`
            await store.look()
        current = {problem.code: problem.message for problem in store.problems}
        for code in current.keys() - reported.keys():
            journal.note(code, current[code], level=LogLevel.WARNING)
        for code in reported.keys() - current.keys():
            journal.note(f"{code}_over", f"resolved: {reported[code]}")
        reported = current


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
        """Run `act` before each pruning step, for a consumer that must read rows first."""
        self._before.append(act)

    def commit_applied(self) -> None:
        """Count commit groups; check the size every few of them."""
        self._groups_seen += 1
        if self._groups_seen % RETENTION_CHECK_COMMITS_COUNT == 0 or self._is_burst():
            self._alarm.nudge()

    async def run(self) -> None:
        """Prune at intervals and on demand, until cancelled."""
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._run_interval)
            await self._run_pruning()

    async def _run_interval(self) -> None:
        while True:
            await self._clock.sleep_for(RETENTION_INTERVAL_MS)
            self._is_due = True
            self._alarm.nudge()

    async def _run_pruning(self) -> None:
        await self._trusted_now()  # establishes the baseline of clock trust
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
        return await self._store.reads.events.used_bytes() > self._full_bytes

    async def prune_all(self) -> None:
        """Prune until the policy is met."""
        with os_errors_noted(self._journal, "the files of ended commands are kept for now"):
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
        """Update the clock trust, and return the trusted current time."""
        clock, reads = self._clock, self._store.reads
        now, monotonic_ns = clock.now(), clock.monotonic_ns()
        if self._trust is None:
            newest = [await reads.events.settled_by(moment) for moment in confirmation_moments(now)]
            believed = confirmed_time(newest, oldest=await reads.events.logged_since(), now=now)
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
        """Bound the unseen messages of each agent; returns whether any were discarded."""
        crowded = await self._store.reads.queue.crowded(kept=kept)
        return any([await self._let_go_oldest(agent_id, kept=kept) for agent_id in crowded])

    async def _let_go_oldest(self, agent_id: AgentId, *, kept: int) -> bool:
        """Discard in batches, until done or until the agent begins a turn."""
        has_let_go = False
        reads, batch_count = self._store.reads, self._retention.batch_count
        while agent := await reads.agents.agent(agent_id):
            oldest = await reads.queue.oldest_unseen(agent_id, kept=kept, limit=batch_count)
            if not oldest:
                break
            commit = drop_unseen_commit(agent, oldest, now=self._clock.now())
            if await self._store.apply(audited(commit)) != Applied():
                break
            has_let_go = True
        return has_let_go

    async def _remove_homes(self) -> None:
        """Remove the homes of past runs whose last row was pruned."""
        try:
            there = await self._homes.temporary()
            past = await self._store.reads.agents.archived_without_history(there) if there else ()
            for identity in past:
                if is_temporary(identity):
                    await self._homes.remove(identity.agent_id)
        except HolonError as error:
            self._journal.note(
                "homes_kept",
                "the homes of past runs are kept until the next pass",
                level=LogLevel.WARNING,
                error=error,
            )

    async def _forget_runs(self) -> None:
        """Delete the files of ended commands, as far as the policy allows."""
        runs = await self._shell.ended_runs()
        if not runs:
            return
        reads = self._store.reads
        # Open tasks are read first: one that ends in between is then in the second list.
        tasks = [*await reads.tasks.open_tasks(), *await reads.tasks.unread_tasks()]
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
