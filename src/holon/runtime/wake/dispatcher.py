"""Timer dispatcher: due timers and expired waits become ticks.

Owns:  everything that happens because time passed. All state is in the rows; in memory are only the
       read positions, so an agent that has been inactive for a month is woken like any other.
Rule 1: a fire moves the timer and queues its tick in one commit, named by the timer's slot.
Rule 2: the dispatcher reads due rows in order, up to its capacity; then it sleeps until the next
        due moment, or until a commit may have brought an earlier one. It never waits for a commit
        itself.
Rule 3: a row whose tick the agent did not accept lies behind the read position and costs nothing; a
        commit that touches the agent makes it examined again. A new host, or a clock that was set
        back, restarts from the beginning.
Rule 4: when the clock was set back, while this host runs or before, timers that now lie too far in
        the future are moved (decide/wake/timers). The monotonic clock detects it.
Rule 5: a bug about one timer or wait is logged, and the row is treated as not accepted.
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holon.decide.queue.commits import expire_wait_commit, fire_commit, reschedule_commit
from holon.decide.wake.ticks import expiry_tick, timer_tick
from holon.decide.wake.timers import advanced_slot, decide_fire, set_back
from holon.model.commits import AgentAdmits
from holon.model.errors import RefusedError
from holon.model.events.reads import DueTimer
from holon.model.limits import CLOCK_CHECK_MS, CLOCK_STEP_MS_MIN, DUE_BATCH_COUNT_MAX
from holon.model.values import AgentId, IdPrefix
from holon.model.wake import TimerRecord, WaitRecord
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Journal
from holon.ports.reads import DuePlace
from holon.ports.store import Store
from holon.runtime.background import Alarm, BugBoundary, bug_noted
from holon.runtime.commits import apply_patiently
from holon.runtime.queue import Ingress
from holon.runtime.wake.scheduler import Scheduler

CLOCK_STEP_MIN: Final = timedelta(milliseconds=CLOCK_STEP_MS_MIN)


class TimerDispatcher:
    """Dispatches due timers and waits for one host."""

    def __init__(
        self,
        ingress: Ingress,
        scheduler: Scheduler,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        failpoints: Failpoints,
        journal: Journal,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._failpoints = failpoints
        self._journal = journal
        self._ingress = ingress
        self._scheduler = scheduler
        self._alarm = Alarm(self._clock)
        self._in_flight: set[str] = set()  # timers and waits whose commit is in flight
        self._due_again: set[str] = set()  # those of them that were found due once more
        self._touched: dict[AgentId, None] = {}  # ordered, so that a seed replays exactly
        self._looked_at: datetime | None = None
        self._timers_at: DuePlace | None = None
        self._waits_at: DuePlace | None = None
        self._activated_at: datetime | None = None
        self._was_set_back = True  # assumed: it may have been, before this host started
        self._is_moving = False

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Wake up: a commit may have added an earlier moment, or made an agent accept ticks."""
        self._touched.update(dict.fromkeys(touched))
        self._alarm.nudge()

    async def run(self) -> None:
        """Dispatch due rows until cancelled."""
        async with anyio.create_task_group() as workers:
            workers.start_soon(self._watch_clock)
            while True:
                now = self._clock.now()
                if self._looked_at is not None and now < self._looked_at:
                    self._was_set_back = True
                if self._was_set_back and not self._is_moving:
                    self._was_set_back, self._is_moving = False, True
                    workers.start_soon(self._move_back, now)
                await self._dispatch_due(workers, now)
                next_due = await self._store.reads.wake.next_due_at(after=now)
                await self._alarm.wait(until=next_due)

    async def _watch_clock(self) -> None:
        """Detect a clock that is set back while the dispatcher sleeps."""
        clock = self._clock
        wall, began_ns = clock.now(), clock.monotonic_ns()
        while True:
            await clock.sleep_for(CLOCK_CHECK_MS)
            passed = timedelta(microseconds=(clock.monotonic_ns() - began_ns) // 1_000)
            if clock.now() < wall + passed - CLOCK_STEP_MIN:
                self._was_set_back = True
                self._alarm.nudge()
            wall, began_ns = clock.now(), clock.monotonic_ns()

    async def _move_back(self, now: datetime) -> None:
        """Reschedule every timer that a clock set back left too far in the future."""
        last = None
        try:
            while True:
                found = await self._store.reads.wake.timers_ahead(
                    now, limit=DUE_BATCH_COUNT_MAX, after=last
                )
                for timer in found:
                    with _guarded(self._journal, timer):
                        await self._move_one_back(timer, now)
                if len(found) < DUE_BATCH_COUNT_MAX:
                    return
                last = found[-1].id
        finally:
            self._is_moving = False
            self._alarm.nudge()

    async def _move_one_back(self, timer: TimerRecord, now: datetime) -> None:
        if (moved := set_back(timer, now=now)) is not None:
            await self._reschedule(timer, moved, now)

    async def _reschedule(self, timer: TimerRecord, moment: datetime, now: datetime) -> None:
        commit_id = f"reschedule:{self._ids.fresh(IdPrefix.REQUEST)}"
        commit = reschedule_commit(commit_id, timer, next_fire_at=moment, now=now)
        await apply_patiently(self._store, commit, clock=self._clock)

    @property
    def _capacity(self) -> int:
        return DUE_BATCH_COUNT_MAX - len(self._in_flight)

    async def _dispatch_due(self, workers: TaskGroup, now: datetime) -> None:
        """Start dispatching rows that became due by `now`, without waiting for their commits."""
        if self._looked_at is not None and now < self._looked_at:
            self._timers_at = self._waits_at = self._activated_at = None
        self._looked_at = now
        if not await self._store.reads.wake.is_anything_due(now):
            self._touched.clear()  # the common case, after nearly every commit
            self._timers_at = self._waits_at = DuePlace(now)
            self._activated_at = now
            return
        await self._take_timers(workers, now)
        await self._take_waits(workers, now)
        await self._take_touched(workers, now)
        await self._take_activations(now)

    async def _take_touched(self, workers: TaskGroup, now: datetime) -> None:
        reads = self._store.reads
        while self._touched and self._capacity > 0:
            agent_id = next(iter(self._touched))
            del self._touched[agent_id]
            for due in await reads.wake.due_timers_of(agent_id, now, limit=DUE_BATCH_COUNT_MAX):
                self._take_timer(workers, due, now)
            for wait in await reads.wake.due_waits_of(agent_id, now, limit=DUE_BATCH_COUNT_MAX):
                self._take_wait(workers, wait, now)

    async def _take_timers(self, workers: TaskGroup, now: datetime) -> None:
        if (room := self._capacity) <= 0:
            return  # a finished worker frees capacity and wakes the dispatcher
        found = await self._store.reads.wake.due_timers(now, limit=room, after=self._timers_at)
        for due in found:
            self._take_timer(workers, due, now)
        self._timers_at = DuePlace(now)
        if len(found) == room:
            last = found[-1].timer
            self._timers_at = DuePlace(last.next_fire_at or now, last.id)

    async def _take_waits(self, workers: TaskGroup, now: datetime) -> None:
        if (room := self._capacity) <= 0:
            return
        found = await self._store.reads.wake.due_waits(now, limit=room, after=self._waits_at)
        for wait in found:
            self._take_wait(workers, wait, now)
        self._waits_at = DuePlace(now)
        if len(found) == room:
            self._waits_at = DuePlace(found[-1].deadline_at or now, found[-1].id)

    async def _take_activations(self, now: datetime) -> None:
        found = await self._store.reads.wake.due_activations(
            now, limit=DUE_BATCH_COUNT_MAX, since=self._activated_at
        )
        self._scheduler.wake_agents(found)
        if len(found) < DUE_BATCH_COUNT_MAX:
            self._activated_at = now  # otherwise the same page is read again

    def _take_timer(self, workers: TaskGroup, due: DueTimer, now: datetime) -> None:
        self._start_once(workers, due.timer, partial(self._fire, due, now))

    def _take_wait(self, workers: TaskGroup, wait: WaitRecord, now: datetime) -> None:
        self._start_once(workers, wait, partial(self._expire, wait, now))

    def _start_once(
        self, workers: TaskGroup, what: TimerRecord | WaitRecord, act: Callable[[], Awaitable[None]]
    ) -> None:
        if what.id in self._in_flight:
            self._due_again.add(what.id)
            return
        self._in_flight.add(what.id)
        workers.start_soon(self._do, what, act)

    async def _do(self, what: TimerRecord | WaitRecord, act: Callable[[], Awaitable[None]]) -> None:
        try:
            with _guarded(self._journal, what), suppress(RefusedError):
                await act()
                self._touched[what.agent_id] = None  # a refused commit leaves it due
            if what.id in self._due_again:
                self._touched[what.agent_id] = None  # the agent may accept it by now
        finally:
            self._in_flight.discard(what.id)
            self._due_again.discard(what.id)
            self._alarm.nudge()  # capacity is free again

    async def _fire(self, due: DueTimer, now: datetime) -> None:
        if (moment := advanced_slot(due.timer, now=now)) is not None:
            await self._reschedule(due.timer, moment, now)
            return
        decision = decide_fire(due, now=now)
        tick = (
            await self._ingress.judge(timer_tick(due, decision)) if decision.queues_tick else None
        )
        commit = fire_commit(
            due,
            fire=decision,
            tick=tick,
            expects=(AgentAdmits(agent_id=due.timer.agent_id),),
            now=now,
        )
        await self._failpoints.reach(Failpoint.TIMER_BEFORE_FIRE)
        await apply_patiently(self._store, commit, clock=self._clock)
        if self._clock.now() < now:
            self._was_set_back = True  # the clock was set back while this fire was in flight

    async def _expire(self, wait: WaitRecord, now: datetime) -> None:
        tick = await self._ingress.judge(expiry_tick(wait))
        commit = expire_wait_commit(
            wait, tick, expects=(AgentAdmits(agent_id=wait.agent_id),), now=now
        )
        await apply_patiently(self._store, commit, clock=self._clock)


def _guarded(journal: Journal, what: TimerRecord | WaitRecord) -> BugBoundary:
    is_timer = isinstance(what, TimerRecord)
    return bug_noted(
        journal,
        "tick_crashed",
        f"what came due for {what.agent_id} is not handled until its rows change (a bug)",
        agent_id=what.agent_id,
        timer_id=what.id if is_timer else None,
        wait_id=None if is_timer else what.id,
    )
