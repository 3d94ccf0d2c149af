"""Timer control: an operator creates and cancels timers.

Owns:  timers as control-plane mutations: commits and events, never messages. Requests are decided
       in decide/wake/timer_requests.
"""

from datetime import datetime

from holon.decide.queue.idempotency import keyed_id
from holon.decide.wake.timer_requests import (
    ArmedSchedule,
    armed_after,
    armed_cron,
    cancellation_commit,
    creation_of,
    existing_timer,
    new_timer,
    refuse_unknown_timer,
)
from holon.model.commits import Commit
from holon.model.errors import Refusal, accepted
from holon.model.values import AgentId, IdPrefix, TimerId, parse_agent_id, parse_record_id
from holon.model.wake import TimerRecord, TimerStatus
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.runtime.commits import commit_decided


class TimerService:
    """Creates and cancels timers for an operator."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def create(
        self,
        agent_id: AgentId,
        *,
        after_ms: int,
        every_ms: int | None = None,
        summary: str | None = None,
        key: str | None = None,
    ) -> TimerRecord:
        """Arm a timer that fires after a while, once or on a grid.

        The same `key` again gives the timer that was armed under it.
        """
        parse_agent_id(agent_id)
        now = self._clock.now()
        armed = accepted(armed_after(after_ms, every_ms=every_ms, now=now))
        return await self._create(agent_id, armed, now=now, summary=summary, key=key)

    async def create_cron(
        self,
        agent_id: AgentId,
        *,
        expression: str,
        zone: str = "UTC",
        summary: str | None = None,
        key: str | None = None,
    ) -> TimerRecord:
        """Arm a timer that fires when a time zone's wall clock matches a cron expression.

        The same `key` again gives the timer that was armed under it.
        """
        parse_agent_id(agent_id)
        now = self._clock.now()
        armed = accepted(armed_cron(expression, zone=zone, now=now))
        return await self._create(agent_id, armed, now=now, summary=summary, key=key)

    async def _create(
        self,
        agent_id: AgentId,
        armed: ArmedSchedule,
        *,
        now: datetime,
        summary: str | None,
        key: str | None,
    ) -> TimerRecord:
        timer_id = TimerId(
            self._ids.fresh(IdPrefix.TIMER)
            if key is None
            else keyed_id(IdPrefix.TIMER, agent_id, key)
        )
        timer = new_timer(timer_id, agent_id, armed, summary=summary, now=now)
        await commit_decided(self._store, lambda: self._creation(timer))
        if key is None:
            return timer
        return accepted(existing_timer(timer, await self._store.reads.wake.timer(timer.id)))

    async def _creation(self, timer: TimerRecord) -> Commit | Refusal | None:
        reads = self._store.reads
        target = await reads.agents.snapshot(timer.agent_id, now=timer.created_at)
        return creation_of(timer, kept=await reads.wake.timer(timer.id), target=target)

    async def cancel(self, timer_id: TimerId) -> None:
        """Stop a timer; a tick of it that has not been claimed is voided with it."""
        parse_record_id(timer_id, what="timer id")
        await commit_decided(self._store, lambda: self._cancellation(timer_id))

    async def _cancellation(self, timer_id: TimerId) -> Commit | Refusal | None:
        reads, now = self._store.reads, self._clock.now()
        timer = await reads.wake.timer(timer_id)
        if timer is None:
            return refuse_unknown_timer(timer_id)
        if timer.status is not TimerStatus.ACTIVE:
            return None
        return cancellation_commit(
            f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
            timer,
            queued_ticks=await reads.queue.queued_ticks(timer.agent_id, timer_id=timer_id),
            waits=await reads.wake.waits_on(timer.id),
            now=now,
        )
