"""Arming and cancelling timers for an operator.

Owns:  timers as control-plane mutations: commits and events, never messages.
Rule 1: cancelling a timer voids its queued ticks in the same commit.
"""

from holon.decide.agent_lifecycle import admits
from holon.decide.agent_refusals import refuse_stopped, refuse_unknown
from holon.decide.desk_commits import cancel_timer_changes
from holon.model.commit import Change, Commit, CreateTimer, MoveWait
from holon.model.expectation import AgentAdmits, Expect, WaitInState
from holon.model.ids import AgentId, IdPrefix, TimerId, parse_agent_id, parse_record_id
from holon.model.instant import later
from holon.model.limits import (
    LABEL_CHARS_MAX,
    TIMER_DURATION_MS_MAX,
    TIMER_DURATION_MS_MIN,
    TIMER_INTERVAL_MS_MIN,
)
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.wait import WaitState
from holon.model.wake import Every, OneShot, TimerRecord, TimerStatus
from holon.runtime.decided_commit import commit_decided
from holon.runtime.services import Services


class TimerDesk:
    """Timers, as an operator handles them."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def create(
        self,
        agent_id: AgentId,
        *,
        after_ms: int,
        every_ms: int | None = None,
        summary: str | None = None,
    ) -> TimerRecord:
        """Arm a timer that fires after a while, once or on a grid."""
        parse_agent_id(agent_id)
        _require_span(after_ms, every_ms)
        services, now = self._services, self._services.clock.now()
        first = later(now, by_ms=after_ms)
        timer = TimerRecord(
            id=TimerId(services.ids.fresh(IdPrefix.TIMER)),
            agent_id=agent_id,
            created_at=now,
            anchor_at=first,
            schedule=OneShot() if every_ms is None else Every(interval_ms=every_ms),
            next_fire_at=first,
            summary=summary[:LABEL_CHARS_MAX] if summary else None,
        )
        await commit_decided(services.store, lambda: self._creation(timer))
        return timer

    async def _creation(self, timer: TimerRecord) -> Commit | Refusal:
        target = await self._services.store.reads.agent(timer.agent_id)
        if target is None:
            return refuse_unknown(timer.agent_id)
        if not admits(target.posture.status):
            return refuse_stopped(timer.agent_id)
        return Commit(
            commit_id=f"timer:{timer.id}:created",
            at=timer.created_at,
            changes=(CreateTimer(timer=timer),),
            expects=(AgentAdmits(agent_id=timer.agent_id),),
        )

    async def cancel(self, timer_id: TimerId) -> None:
        """Stop a timer; a tick of it that has not been claimed is voided with it."""
        parse_record_id(timer_id, what="timer id")
        await commit_decided(self._services.store, lambda: self._cancellation(timer_id))

    async def _cancellation(self, timer_id: TimerId) -> Commit | Refusal | None:
        reads, now = self._services.store.reads, self._services.clock.now()
        timer = await reads.timer(timer_id)
        if timer is None:
            return Refusal(
                code=RefusalCode.TIMER_NOT_FOUND,
                message=f"there is no timer {timer_id}",
                hint="list the agent's timers to find its id",
            )
        if timer.status is not TimerStatus.ACTIVE:
            return None
        ticks = await reads.queued_ticks(timer.agent_id, timer_id=timer_id)
        changes, expects = cancel_timer_changes(timer, ticks)
        ended, unmoved = await self._ended_rest(timer)
        return Commit(
            commit_id=f"control:{self._services.ids.fresh(IdPrefix.REQUEST)}",
            at=now,
            changes=(*changes, *ended),
            expects=(*expects, *unmoved),
        )

    async def _ended_rest(
        self, timer: TimerRecord
    ) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
        """The rest that stood on this timer ends with it."""
        changes: tuple[Change, ...] = ()
        expects: tuple[Expect, ...] = ()
        for wait in await self._services.store.reads.waits_on(timer.id):
            if wait.state is not WaitState.ACTIVE:
                continue  # its tick is on its way and will end it
            expects = (*expects, WaitInState(wait_id=wait.id, state=wait.state))
            moved = MoveWait(
                agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.CANCELLED, by=timer.id
            )
            changes = (*changes, moved)
        return changes, expects


def _require_span(after_ms: int, every_ms: int | None) -> None:
    if not TIMER_DURATION_MS_MIN <= after_ms <= TIMER_DURATION_MS_MAX:
        raise RefusedError(
            Refusal(
                code=RefusalCode.BAD_DURATION,
                message=f"a timer cannot fire after {after_ms} ms",
                hint=f"use {TIMER_DURATION_MS_MIN} to {TIMER_DURATION_MS_MAX} ms",
                field="after_ms",
            )
        )
    if every_ms is not None and not TIMER_INTERVAL_MS_MIN <= every_ms <= TIMER_DURATION_MS_MAX:
        raise RefusedError(
            Refusal(
                code=RefusalCode.BAD_DURATION,
                message=f"a timer cannot repeat every {every_ms} ms",
                hint=f"use {TIMER_INTERVAL_MS_MIN} to {TIMER_DURATION_MS_MAX} ms",
                field="every_ms",
            )
        )
