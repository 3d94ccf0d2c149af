"""Durable timers and deadlines become ticks when their moment comes.

Owns:  everything that happens because time passed. The rows are the wheel; nothing is kept here,
       so an agent that nobody has looked at for a month is woken like any other.
Rule 1: a fire moves the timer and queues its tick in one commit, named by its slot.
Rule 2: one pass handles all that is due; then the wheel sleeps until the next moment after it, or
        until a commit may have brought an earlier one.
"""

from datetime import datetime

from holon.decide.admission import Admitted
from holon.decide.desk_commits import expire_wait_commit, fire_commit
from holon.decide.tick_texts import expired_text, timer_text
from holon.decide.timer_grid import decide_fire
from holon.model.expectation import AgentAdmits
from holon.model.ids import AgentId
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
from holon.model.wait import WaitKind, WaitRecord
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

    def commit_applied(self) -> None:
        """A commit may have brought an earlier moment."""
        self._alarm.nudge()

    async def run(self) -> None:
        """Handle whatever comes due, for ever."""
        while True:
            now = self._services.clock.now()
            await self.turn(now)
            next_due = await self._services.store.reads.next_due_at(after=now)
            await self._alarm.wait(until=next_due)

    async def turn(self, now: datetime) -> None:
        """Handle everything due at `now`."""
        reads = self._services.store.reads
        while due := await reads.due_timers(now, limit=DUE_BATCH_COUNT_MAX):
            if not sum([await self._fire(timer, now) for timer in due]):
                break
        while expired := await reads.due_waits(now, limit=DUE_BATCH_COUNT_MAX):
            if not sum([await self._end_wait(wait, now) for wait in expired]):
                break
        agents: list[AgentId] = list(await reads.due_activations(now, limit=DUE_BATCH_COUNT_MAX))
        if agents:
            self._scheduler.commit_applied(agents)

    async def _fire(self, due: DueTimer, now: datetime) -> bool:
        """Fire one timer; False when it could not be fired and would only come up again."""
        decision = decide_fire(due, now=now)
        try:
            tick = await self._ingress.judge(_tick_of(due)) if decision.queues_tick else None
        except RefusedError:
            return False  # the agent takes nothing right now; the slot stays due for its resume
        commit = fire_commit(
            due,
            next_fire_at=decision.next_fire_at,
            tick=tick,
            expects=(AgentAdmits(agent_id=due.timer.agent_id),),
            now=now,
        )
        await self._services.failpoints.reach(Failpoint.TIMER_BEFORE_FIRE)
        await apply_patiently(self._services.store, commit, clock=self._services.clock)
        return True

    async def _end_wait(self, wait: WaitRecord, now: datetime) -> bool:
        if wait.kind is WaitKind.RECHECK:
            self._scheduler.commit_applied([wait.agent_id])  # activation reminds, when it is free
            return False
        try:
            tick: Admitted = await self._ingress.judge(_expiry_of(wait))
        except RefusedError:
            return False
        commit = expire_wait_commit(
            wait, tick, expects=(AgentAdmits(agent_id=wait.agent_id),), now=now
        )
        await apply_patiently(self._services.store, commit, clock=self._services.clock)
        return True


def _tick_of(due: DueTimer) -> IngressRequest:
    timer = due.timer
    return IngressRequest(
        agent_id=timer.agent_id,
        kind=MessageKind.TIMER_TICK,
        origin=TimerOrigin(timer_id=timer.id),
        body=TextBody(text=timer_text(timer)),
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
