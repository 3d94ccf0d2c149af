"""What may wake an agent besides a message: wake hints, timers and external triggers.

Owns:  the records of all three.
Rule 1: a wake hint is a signal, not a message. One row per source: a burst coalesces, and no
        source's last body is lost to another source.
Rule 2: an agent has one external trigger, found by its public id. What opens it is derived, never
        kept.
Rule 3: a repeating timer keeps its grid, whatever happens: slots are anchor + n × interval, or the
        times its cron expression names.
"""

from enum import StrEnum
from typing import TypeAlias

from holon.model.ids import AgentId, TimerId, TriggerId, WaitId
from holon.model.instant import Instant
from holon.model.json_value import JsonValue, require_json
from holon.model.record import Record


class TriggerDeliveryMode(StrEnum):
    """What a delivery amounts to; the older mode is mapped to a wake hint."""

    WAKE_HINT = "wake_hint"
    ENQUEUE_MESSAGE = "enqueue_message"


class WakeHint(Record, frozen=True, kw_only=True):
    """A parked signal that something changed. `revision` counts coalesced repeats."""

    agent_id: AgentId
    source_key: str
    reason: str
    created_at: Instant
    updated_at: Instant
    revision: int = 1
    description: str | None = None
    source: str | None = None
    resource: str | None = None
    external_trigger_id: TriggerId | None = None
    delivery_mode: TriggerDeliveryMode | None = None  # as it took effect; of a trigger's hint
    descriptor_delivery_mode: TriggerDeliveryMode | None = None  # where the sender used another
    wait_id: WaitId | None = None
    body: JsonValue = None
    content_type: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None

    def __post_init__(self) -> None:
        require_json(self.body)

    @property
    def brings_something(self) -> bool:
        """Whether there is more to it than the news that something changed."""
        if isinstance(self.body, str):
            return not self.body.isspace() and self.body != ""
        return self.body is not None


class WakeDisposition(StrEnum):
    """What became of a hint."""

    TRIGGERED = "triggered"
    COALESCED = "coalesced"
    PARKED = "parked"
    IGNORED = "ignored"


class TimerStatus(StrEnum):
    """Where a timer stands."""

    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class OneShot(Record, tag_field="repeat", tag="once", frozen=True, kw_only=True):
    """Fires once."""


class Every(Record, tag_field="repeat", tag="every", frozen=True, kw_only=True):
    """Fires on a fixed grid that starts at the first slot."""

    interval_ms: int


class Cron(Record, tag_field="repeat", tag="cron", frozen=True, kw_only=True):
    """Fires when the wall clock of a time zone shows what the expression names."""

    expression: str
    zone: str = "UTC"


TimerSchedule: TypeAlias = OneShot | Every | Cron


class TimerRecord(Record, frozen=True, kw_only=True):
    """A durable timer. `next_fire_at` is the next slot of its grid while it is active."""

    id: TimerId
    agent_id: AgentId
    created_at: Instant
    anchor_at: Instant
    schedule: TimerSchedule
    status: TimerStatus = TimerStatus.ACTIVE
    next_fire_at: Instant | None = None
    last_fired_at: Instant | None = None
    fire_count: int = 0
    summary: str | None = None
    wait_id: WaitId | None = None


class TriggerStatus(StrEnum):
    """Whether a capability may still be used."""

    ACTIVE = "active"
    REVOKED = "revoked"


class ExternalTrigger(Record, frozen=True, kw_only=True):
    """A capability outsiders may use to wake an agent. No secret is stored.

    `epoch` is part of what its secret is derived from: the next one makes every older URL void.
    """

    external_trigger_id: TriggerId
    target_agent_id: AgentId
    delivery_mode: TriggerDeliveryMode
    status: TriggerStatus
    created_at: Instant
    epoch: int = 1
    revoked_at: Instant | None = None
    last_delivered_at: Instant | None = None
    delivery_count: int = 0
