"""Views of timers, external triggers and hints.

Owns:  what surfaces show about the sources that may wake an agent.
Rule 1: no view of a trigger contains its token: its address is masked. Reading a state must not
        grant the power to wake.
"""

from holon.decide.wake.triggers import masked_url
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.values import AgentId, Instant, TimerId, TriggerId
from holon.model.wake import (
    Cron,
    Every,
    ExternalTrigger,
    OneShot,
    TimerRecord,
    TimerStatus,
    TriggerDeliveryMode,
    TriggerStatus,
    WakeHint,
)


class TimerView(Record, frozen=True, kw_only=True):
    """One timer."""

    id: TimerId
    agent_id: AgentId
    created_at: Instant
    duration_ms: int  # from its creation to its first slot
    repeat: bool
    status: TimerStatus
    fire_count: int
    interval_ms: int | None = None
    expression: str | None = None  # of a cron timer, with its time zone
    zone: str | None = None
    summary: str | None = None
    next_fire_at: Instant | None = None
    last_fired_at: Instant | None = None


class TriggerView(Record, frozen=True, kw_only=True):
    """An external trigger, without the secret part of its address."""

    external_trigger_id: TriggerId
    target_agent_id: AgentId
    delivery_mode: TriggerDeliveryMode
    status: TriggerStatus
    created_at: Instant
    delivery_count: int
    revoked_at: Instant | None = None
    last_delivered_at: Instant | None = None
    trigger_url: str | None = None  # with its secret part masked


class HintView(Record, frozen=True, kw_only=True):
    """A stored wake hint, without its body."""

    source_key: str
    reason: str
    revision: int
    created_at: Instant
    updated_at: Instant
    has_body: bool
    description: str | None = None
    resource: str | None = None


def timer_view(timer: TimerRecord) -> TimerView:
    """Return the view of a timer."""
    first = timer.anchor_at - timer.created_at
    schedule = timer.schedule
    return TimerView(
        id=timer.id,
        agent_id=timer.agent_id,
        created_at=timer.created_at,
        duration_ms=max(0, round(first.total_seconds() * 1_000)),
        repeat=not isinstance(schedule, OneShot),
        status=timer.status,
        fire_count=timer.fire_count,
        interval_ms=schedule.interval_ms if isinstance(schedule, Every) else None,
        expression=schedule.expression if isinstance(schedule, Cron) else None,
        zone=schedule.zone if isinstance(schedule, Cron) else None,
        summary=None if timer.summary is None else one_line(timer.summary),
        next_fire_at=timer.next_fire_at,
        last_fired_at=timer.last_fired_at,
    )


def trigger_view(trigger: ExternalTrigger, *, base_url: str | None) -> TriggerView:
    """Return the view of a trigger, without its secret."""
    return TriggerView(
        external_trigger_id=trigger.external_trigger_id,
        target_agent_id=trigger.target_agent_id,
        delivery_mode=trigger.delivery_mode,
        status=trigger.status,
        created_at=trigger.created_at,
        delivery_count=trigger.delivery_count,
        revoked_at=trigger.revoked_at,
        last_delivered_at=trigger.last_delivered_at,
        trigger_url=masked_url(trigger, base_url),
    )


def hint_view(hint: WakeHint) -> HintView:
    """Return the view of a stored hint, without its body."""
    return HintView(
        source_key=one_line(hint.source_key),
        reason=one_line(hint.reason),
        revision=hint.revision,
        created_at=hint.created_at,
        updated_at=hint.updated_at,
        has_body=hint.body is not None,
        description=None if hint.description is None else one_line(hint.description),
        resource=None if hint.resource is None else one_line(hint.resource),
    )
