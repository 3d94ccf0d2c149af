"""Timer requests: arming and cancelling.

Owns:  the schedule a request asks for, whether a timer may be made, and what its end takes along.
Rule 1: cancelling a timer voids its queued ticks and ends the sleep that depended on it, in one
        commit.
Rule 2: a cron expression without a next slot is refused when the timer is armed.
Rule 3: a key stands for one timer. Requested again with another schedule it is a conflict; the
        first slot of a cron timer depends on the time of the request and is not compared.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.decide.agents.lifecycle import refuse_recipient, refuse_unknown
from holon.decide.budgets.budget import timer_quota
from holon.decide.queue.commits import cancel_timer_changes
from holon.decide.queue.idempotency import key_conflict
from holon.decide.wake.cron import BadCronError, next_cron_slot, read_cron
from holon.model.commits import AgentAdmits, Commit, CreateTimer, MoveWait, WaitInState
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import (
    LABEL_CHARS_MAX,
    TIMER_DURATION_MS_MAX,
    TIMER_DURATION_MS_MIN,
    TIMER_INTERVAL_MS_MIN,
)
from holon.model.record import Record
from holon.model.values import AgentId, Instant, MessageId, TimerId, later
from holon.model.wake import Cron, Every, OneShot, TimerRecord, TimerSchedule, WaitRecord, WaitState


class ArmedSchedule(Record, frozen=True, kw_only=True):
    """A schedule and its first slot."""

    schedule: TimerSchedule
    first: Instant


def armed_after(after_ms: int, *, every_ms: int | None, now: datetime) -> ArmedSchedule | Refusal:
    """Fire after a while, once or on a grid."""
    if not TIMER_DURATION_MS_MIN <= after_ms <= TIMER_DURATION_MS_MAX:
        return Refusal(
            code=RefusalCode.BAD_DURATION,
            message=f"a timer cannot fire after {after_ms} ms",
            hint=f"use {TIMER_DURATION_MS_MIN} to {TIMER_DURATION_MS_MAX} ms",
            field="after_ms",
        )
    if every_ms is not None and not TIMER_INTERVAL_MS_MIN <= every_ms <= TIMER_DURATION_MS_MAX:
        return Refusal(
            code=RefusalCode.BAD_DURATION,
            message=f"a timer cannot repeat every {every_ms} ms",
            hint=f"use {TIMER_INTERVAL_MS_MIN} to {TIMER_DURATION_MS_MAX} ms",
            field="every_ms",
        )
    return ArmedSchedule(
        schedule=OneShot() if every_ms is None else Every(interval_ms=every_ms),
        first=later(now, by_ms=after_ms),
    )


def armed_cron(expression: str, *, zone: str, now: datetime) -> ArmedSchedule | Refusal:
    """Fire when the wall clock of a time zone shows what is named."""
    try:
        cron = read_cron(expression, zone=zone)
    except BadCronError as bad:
        return Refusal(code=RefusalCode.BAD_SCHEDULE, message=str(bad), hint=bad.hint)
    first = next_cron_slot(cron, after=now)
    if first is None:
        return Refusal(
            code=RefusalCode.BAD_SCHEDULE,
            message=f"the cron expression {cron.expression!r} never comes round",
            hint="name a day that the month has",
            field="expression",
        )
    return ArmedSchedule(schedule=cron, first=first)


def new_timer(
    timer_id: TimerId,
    agent_id: AgentId,
    armed: ArmedSchedule,
    *,
    summary: str | None,
    now: datetime,
) -> TimerRecord:
    """Return the timer that a request asks for."""
    return TimerRecord(
        id=timer_id,
        agent_id=agent_id,
        created_at=now,
        anchor_at=armed.first,
        schedule=armed.schedule,
        next_fire_at=armed.first,
        summary=summary[:LABEL_CHARS_MAX] if summary else None,
    )


def creation_of(
    timer: TimerRecord, *, kept: TimerRecord | None, target: AgentSnapshot | None
) -> Commit | Refusal | None:
    """Make a timer, unless an earlier request with the same key has made it."""
    if kept is not None:
        return None
    if target is None:
        return refuse_unknown(timer.agent_id)
    if (refusal := refuse_recipient(target.agent)) is not None:
        return refusal
    if (full := timer_quota(target.active_timer_count)) is not None:
        return full
    return Commit(
        commit_id=f"timer:{timer.id}:created",
        at=timer.created_at,
        changes=(CreateTimer(timer=timer),),
        expects=(AgentAdmits(agent_id=timer.agent_id),),
    )


def existing_timer(asked: TimerRecord, existing: TimerRecord | None) -> TimerRecord | Refusal:
    """Return the timer that is kept under a key, whichever request made it."""
    if existing is None:
        return asked
    is_same = (existing.schedule, existing.summary) == (asked.schedule, asked.summary)
    if not isinstance(asked.schedule, Cron):
        after, wanted = existing.anchor_at - existing.created_at, asked.anchor_at - asked.created_at
        is_same = is_same and after == wanted
    return existing if is_same else key_conflict(asked.id)


def cancellation_commit(
    commit_id: str,
    timer: TimerRecord,
    *,
    queued_ticks: Sequence[MessageId],
    waits: Sequence[WaitRecord],
    now: datetime,
) -> Commit:
    """Stop an active timer; `waits` are those that stand on it."""
    changes, expects = cancel_timer_changes(timer, queued_ticks)
    # A wait that was triggered is left alone: its tick is on its way and ends it.
    resting = tuple(wait for wait in waits if wait.state is WaitState.ACTIVE)
    return Commit(
        commit_id=commit_id,
        at=now,
        changes=(
            *changes,
            *(
                MoveWait(
                    agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.CANCELLED, by=timer.id
                )
                for wait in resting
            ),
        ),
        expects=(
            *expects,
            *(WaitInState(wait_id=wait.id, state=wait.state) for wait in resting),
        ),
    )


def refuse_unknown_timer(timer_id: TimerId) -> Refusal:
    """Refuse a timer that does not exist."""
    return Refusal(
        code=RefusalCode.TIMER_NOT_FOUND,
        message=f"there is no timer {timer_id}",
        hint="list the agent's timers to find its id",
    )
