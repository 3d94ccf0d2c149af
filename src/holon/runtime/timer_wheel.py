"""Durable timers and deadlines become ticks when their moment comes.

Owns:  everything that happens because time passed. The rows are the wheel; nothing is kept here,
       so an agent that nobody has looked at for a month is woken like any other.
Rule 1: a fire moves the timer and queues its tick in one commit, named by its slot.
Rule 2: one pass takes up all that is due; then the wheel sleeps until the next moment after it, or
        until a commit may have brought an earlier one. It never waits for the disk itself.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import anyio
from anyio.abc import TaskGroup

from holon.decide.desk_commits import expire_wait_commit, fire_commit
from holon.decide.tick_texts import expired_text, timer_text
from holon.decide.timer_grid import FireDecision, decide_fire
from holon.model.expectation import AgentAdmits
from holon.model.ingress import IngressRequest
from holon.model.limits import DUE_BATCH_COUNT_MAX
from holon.model.message import MessageKind, Priority, TextBody
from holon.model.provenance import (
    AdmissionContext,
    DeliverySurface,
    SystemOrigin,
    TimerOrigin,
)
from holon.model.refusal import RefusedError
from holon.model.snapshot import DueTimer
from holon.model.wait import WaitRecord
from holon.ports.failpoint import Failpoint
from holon.runtime.alarm import Alarm
from holon.runtime.decided_commit import apply_patiently
from holon.runtime.ingress import Ingress
from holon.runtime.scheduler import Scheduler
from holon.runtime.services import Services


class TimerWheel:
    """Watches the clock for one host."""

    def __init__(self, services: Services, ingress: Ingress, scheduler: Scheduler) -> None:
        self._services = services
        self._ingress = ingress
        self._scheduler = scheduler
        self._alarm = Alarm(services.clock)
        self._in_hand: set[str] = set()  # timers and waits whose commit is on its way

    def commit_applied(self) -> None:
        """A commit may have brought an earlier moment."""
        self._alarm.nudge()

    async def run(self) -> None:
        """Handle whatever comes due, for ever."""
        async with anyio.create_task_group() as hands:
            while True:
                now = self._services.clock.now()
                await self._take_up(hands, now)
                next_due = await self._services.store.reads.next_due_at(after=now)
                await self._alarm.wait(until=next_due)

    async def _take_up(self, hands: TaskGroup, now: datetime) -> None:
        """Start on everything due at `now`; a slow disk holds up none of it."""
        reads = self._services.store.reads
        if not await reads.is_anything_due(now):
            return  # as after nearly every commit
        for due in await reads.due_timers(now, limit=DUE_BATCH_COUNT_MAX):
            self._hand_out(hands, due.timer.id, partial(self._fire, due, now))
        for wait in await reads.due_waits(now, limit=DUE_BATCH_COUNT_MAX):
            self._hand_out(hands, wait.id, partial(self._expire, wait, now))
        agents = await reads.due_activations(now, limit=DUE_BATCH_COUNT_MAX)
        self._scheduler.moment_came(agents)

    def _hand_out(self, hands: TaskGroup, what: str, act: Callable[[], Awaitable[None]]) -> None:
        if what not in self._in_hand:
            self._in_hand.add(what)
            hands.start_soon(self._do, what, act)

    async def _do(self, what: str, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
            self._alarm.nudge()  # there may be more than one pass takes up
        except RefusedError:
            pass  # the agent takes nothing right now; it stays due until that changes
        finally:
            self._in_hand.discard(what)

    async def _fire(self, due: DueTimer, now: datetime) -> None:
        decision = decide_fire(due, now=now)
        tick = await self._ingress.judge(_tick_of(due, decision)) if decision.queues_tick else None
        commit = fire_commit(
            due,
            fire=decision,
            tick=tick,
            expects=(AgentAdmits(agent_id=due.timer.agent_id),),
            now=now,
        )
        await self._services.failpoints.reach(Failpoint.TIMER_BEFORE_FIRE)
        await apply_patiently(self._services.store, commit, clock=self._services.clock)

    async def _expire(self, wait: WaitRecord, now: datetime) -> None:
        tick = await self._ingress.judge(_expiry_of(wait))
        commit = expire_wait_commit(
            wait, tick, expects=(AgentAdmits(agent_id=wait.agent_id),), now=now
        )
        await apply_patiently(self._services.store, commit, clock=self._services.clock)


def _tick_of(due: DueTimer, fire: FireDecision) -> IngressRequest:
    timer = due.timer
    return IngressRequest(
        agent_id=timer.agent_id,
        kind=MessageKind.TIMER_TICK,
        origin=TimerOrigin(timer_id=timer.id),
        body=TextBody(text=timer_text(timer, late_by_ms=fire.late_by_ms)),
        surface=DeliverySurface.TIMER_SCHEDULER,
        admission=AdmissionContext.RUNTIME_OWNED,
        priority=Priority.NEXT,
        tick_key=f"timer:{timer.id}",
        wait_id=timer.wait_id,
    )


def _expiry_of(wait: WaitRecord) -> IngressRequest:
    return IngressRequest(
        agent_id=wait.agent_id,
        kind=MessageKind.SYSTEM_TICK,
        origin=SystemOrigin(subsystem="wait_deadline"),
        body=TextBody(text=expired_text(wait)),
        surface=DeliverySurface.RUNTIME_SYSTEM,
        admission=AdmissionContext.RUNTIME_OWNED,
        priority=Priority.NEXT,
        tick_key=f"wait:{wait.id}",
        work_item_id=wait.work_item_id,
        wait_id=wait.id,
    )
