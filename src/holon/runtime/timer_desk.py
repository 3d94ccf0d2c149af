"""Arming and cancelling timers for an operator.

Owns:  timers as control-plane mutations: commits and events, never messages.
Rule 1: cancelling a timer voids its queued ticks in the same commit.
Rule 2: a cron expression that never comes round is refused when the timer is armed.
"""

from datetime import datetime

from holon.decide.agent_refusals import refuse_addressee, refuse_unknown
from holon.decide.cron import BadCronError, next_cron_slot, read_cron
from holon.decide.desk_commits import cancel_timer_changes
from holon.decide.keyed_record import key_conflict, keyed_id
from holon.decide.quotas import timer_quota
from holon.model.commit import Change, Commit, CreateTimer, MoveWait
from holon.model.expectation import AgentAdmits, Expect, WaitInState
from holon.model.ids import AgentId, IdPrefix, TimerId, parse_agent_id, parse_record_id
from holon.model.instant import Instant, later
from holon.model.limits import (
    LABEL_CHARS_MAX,
    TIMER_DURATION_MS_MAX,
    TIMER_DURATION_MS_MIN,
    TIMER_INTERVAL_MS_MIN,
)
from holon.model.record import Record
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.wait import WaitState
from holon.model.wake import Cron, Every, OneShot, TimerRecord, TimerSchedule, TimerStatus
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.runtime.decided_commit import commit_decided


class _Armed(Record, frozen=True, kw_only=True):
    """A schedule and its first slot."""

    schedule: TimerSchedule
    first: Instant


class TimerDesk:
    """Timers, as an operator handles them."""

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
        _require_span(after_ms, every_ms)
        now = self._clock.now()
        armed = _Armed(
            schedule=OneShot() if every_ms is None else Every(interval_ms=every_ms),
            first=later(now, by_ms=after_ms),
        )
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
        """Arm a timer that fires when the wall clock of a time zone shows what is named.

        The same `key` again gives the timer that was armed under it.
        """
        parse_agent_id(agent_id)
        now = self._clock.now()
        armed = _require_round(expression, zone, now=now)
        return await self._create(agent_id, armed, now=now, summary=summary, key=key)

    async def _create(
        self,
        agent_id: AgentId,
        armed: _Armed,
        *,
        now: datetime,
        summary: str | None,
        key: str | None,
    ) -> TimerRecord:
        timer = TimerRecord(
            id=TimerId(
                self._ids.fresh(IdPrefix.TIMER)
                if key is None
                else keyed_id(IdPrefix.TIMER, agent_id, key)
            ),
            agent_id=agent_id,
            created_at=now,
            anchor_at=armed.first,
            schedule=armed.schedule,
            next_fire_at=armed.first,
            summary=summary[:LABEL_CHARS_MAX] if summary else None,
        )
        await commit_decided(self._store, lambda: self._creation(timer))
        return timer if key is None else await self._kept(timer)

    async def _kept(self, asked: TimerRecord) -> TimerRecord:
        """The timer that is kept under a key, whichever request made it."""
        kept = await self._store.reads.timer(asked.id) or asked
        is_same = (kept.schedule, kept.summary) == (asked.schedule, asked.summary)
        if not isinstance(asked.schedule, Cron):  # whose first slot depends on the moment
            after, wanted = kept.anchor_at - kept.created_at, asked.anchor_at - asked.created_at
            is_same = is_same and after == wanted
        if not is_same:
            raise RefusedError(key_conflict(asked.id))
        return kept

    async def _creation(self, timer: TimerRecord) -> Commit | Refusal | None:
        if await self._store.reads.timer(timer.id) is not None:
            return None  # made by an earlier request with the same key
        target = await self._store.reads.snapshot(timer.agent_id, now=timer.created_at)
        if target is None:
            return refuse_unknown(timer.agent_id)
        if (refusal := refuse_addressee(target.agent)) is not None:
            return refusal
        if (full := timer_quota(target.active_timer_count)) is not None:
            return full
        return Commit(
            commit_id=f"timer:{timer.id}:created",
            at=timer.created_at,
            changes=(CreateTimer(timer=timer),),
            expects=(AgentAdmits(agent_id=timer.agent_id),),
        )

    async def cancel(self, timer_id: TimerId) -> None:
        """Stop a timer; a tick of it that has not been claimed is voided with it."""
        parse_record_id(timer_id, what="timer id")
        await commit_decided(self._store, lambda: self._cancellation(timer_id))

    async def _cancellation(self, timer_id: TimerId) -> Commit | Refusal | None:
        reads, now = self._store.reads, self._clock.now()
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
            commit_id=f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
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
        for wait in await self._store.reads.waits_on(timer.id):
            if wait.state is not WaitState.ACTIVE:
                continue  # its tick is on its way and will end it
            expects = (*expects, WaitInState(wait_id=wait.id, state=wait.state))
            moved = MoveWait(
                agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.CANCELLED, by=timer.id
            )
            changes = (*changes, moved)
        return changes, expects


def _require_round(expression: str, zone: str, *, now: datetime) -> _Armed:
    """Return the schedule and its first slot, or decline."""
    try:
        cron = read_cron(expression, zone=zone)
    except BadCronError as bad:
        refusal = Refusal(code=RefusalCode.BAD_SCHEDULE, message=str(bad), hint=bad.hint)
        raise RefusedError(refusal) from bad
    first = next_cron_slot(cron, after=now)
    if first is None:
        raise RefusedError(
            Refusal(
                code=RefusalCode.BAD_SCHEDULE,
                message=f"the cron expression {cron.expression!r} never comes round",
                hint="name a day that the month has",
                field="expression",
            )
        )
    return _Armed(schedule=cron, first=first)


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
