"""Waits, wake hints, timers and external triggers.

Owns:  the records of all four and their states; trigger deliveries as a surface hands them over,
       their targets and receipts; the audit events about them.
Rule 1: a wait names its owner, what it waits for, the source that will end it, and a deadline.
Rule 2: active → triggered → resolved; active may also be cancelled or expire. A triggered wait has
        already been answered: replacing it must not drop what triggered it.
Rule 3: the commit that triggers a wait also queues the message that says so.
Rule 4: a wake hint is a signal, not a message. One row per source: a burst coalesces, and no
        source's last body is lost to another source.
Rule 5: an agent has one external trigger, found by its public id. Its secret is derived, never
        stored, and no event holds a secret or an address that carries one.
Rule 6: a repeating timer keeps its grid in all cases: slots are anchor + n × interval, or the times
        its cron expression names.
Rule 7: everything in a delivery is the sender's claim: evidence to be kept, never an instruction.
"""

from enum import StrEnum
from typing import TypeAlias

from holon.model.agents import AgentStatus
from holon.model.record import Record
from holon.model.values import (
    AgentId,
    Instant,
    JsonValue,
    MessageId,
    TimerId,
    TriggerId,
    WaitId,
    WorkItemId,
    require_json,
)


class WaitKind(StrEnum):
    """What will end the wait."""

    TASK = "task"
    EXTERNAL = "external"
    OPERATOR = "operator"
    TIMER = "timer"
    SYSTEM = "system"
    RECHECK = "recheck"  # a blocked item's reminder; it does not unblock anything
    REST = "rest"  # Sleep with a duration; anything may wake the agent earlier


class WaitState(StrEnum):
    """Where a wait stands."""

    ACTIVE = "active"
    TRIGGERED = "triggered"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_open(self) -> bool:
        """Whether the wait still stands between the agent and something."""
        return self in (WaitState.ACTIVE, WaitState.TRIGGERED)


class WaitRecord(Record, frozen=True, kw_only=True):
    """One wait. `source_id` is a task, timer or trigger id; the operator needs none."""

    id: WaitId
    agent_id: AgentId
    kind: WaitKind
    waiting_for: str
    created_at: Instant
    deadline_at: Instant | None
    state: WaitState = WaitState.ACTIVE
    work_item_id: WorkItemId | None = None
    source_id: str | None = None
    triggered_by: MessageId | None = None
    ended_at: Instant | None = None


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
    def has_content(self) -> bool:
        """Whether it carries more than the news that something changed."""
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


class TriggerDelivery(Record, frozen=True, kw_only=True):
    """What came in at a trigger's address."""

    addressed_mode: TriggerDeliveryMode = TriggerDeliveryMode.WAKE_HINT
    delivery_key: str | None = None  # a digest of the id under which the sender repeats itself
    body: JsonValue = None
    content_type: str | None = None
    source: str | None = None
    resource: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None

    def __post_init__(self) -> None:
        require_json(self.body)


class EarlierDelivery(Record, frozen=True, kw_only=True):
    """A delivery that came under the same key, as far as it is remembered."""

    disposition: WakeDisposition
    content_digest: str | None = None  # none is known of those from before digests were kept


class TriggerTarget(Record, frozen=True, kw_only=True):
    """A trigger and its agent at one moment, as far as a delivery needs them."""

    trigger: ExternalTrigger
    agent_status: AgentStatus
    is_archived: bool = False
    queued_count: int = 0
    parked_count: int = 0  # of all sources
    is_parked: bool = False  # whether this delivery's source has a hint waiting
    earlier: EarlierDelivery | None = None


class TriggerReceipt(Record, frozen=True, kw_only=True):
    """What became of a delivery. The same for each repeat of it, but for the mark of one."""

    agent_id: AgentId
    external_trigger_id: TriggerId
    disposition: WakeDisposition
    duplicate: bool = False


class TimerCreated(Record, tag_field="kind", tag="timer_created", frozen=True, kw_only=True):
    """A timer was armed."""

    timer_id: TimerId
    next_fire_at: Instant


class TimerFired(Record, tag_field="kind", tag="timer_fired", frozen=True, kw_only=True):
    """A timer's slot came due. `next_fire_at` is absent when it was the last.

    One fire makes up for every slot that was missed; `late_by_ms` is how long ago its own was.
    """

    timer_id: TimerId
    slot: Instant
    next_fire_at: Instant | None = None
    late_by_ms: int = 0


class TimerRescheduled(
    Record, tag_field="kind", tag="timer_rescheduled", frozen=True, kw_only=True
):
    """The wall clock was set: the timer waits for another moment than `slot`."""

    timer_id: TimerId
    slot: Instant
    next_fire_at: Instant


class TimerCancelled(Record, tag_field="kind", tag="timer_cancelled", frozen=True, kw_only=True):
    """A timer will not fire again."""

    timer_id: TimerId


class WakeHintParked(
    Record, tag_field="kind", tag="wake_hint_coalesced", frozen=True, kw_only=True
):
    """A wake hint waits for the agent; repeats of one source count up."""

    source_key: str
    revision: int


class WakeHintTriggered(
    Record, tag_field="kind", tag="wake_hint_triggered", frozen=True, kw_only=True
):
    """Parked hints became a system tick."""

    source_keys: tuple[str, ...]


class WakeHintIgnored(Record, tag_field="kind", tag="wake_hint_ignored", frozen=True, kw_only=True):
    """A wake hint could not wake this agent."""

    source_key: str
    reason: str


class WaitOpened(Record, tag_field="kind", tag="wait_opened", frozen=True, kw_only=True):
    """Something is being waited for."""

    wait_id: WaitId
    wait_kind: WaitKind
    deadline_at: Instant | None = None
    work_item_id: WorkItemId | None = None
    source_id: str | None = None


class WaitMoved(Record, tag_field="kind", tag="wait_moved", frozen=True, kw_only=True):
    """A wait was triggered, resolved, cancelled or expired."""

    wait_id: WaitId
    state: WaitState
    by: str


class SystemTickEmitted(
    Record, tag_field="kind", tag="system_tick_emitted", frozen=True, kw_only=True
):
    """The runtime decided that the agent should look again."""

    message_id: MessageId
    tick_key: str
    work_item_id: WorkItemId | None = None


class ExternalTriggerCreated(
    Record, tag_field="kind", tag="external_trigger_created", frozen=True, kw_only=True
):
    """An agent was given its trigger."""

    external_trigger_id: TriggerId
    delivery_mode: TriggerDeliveryMode


class ExternalTriggerRotated(
    Record, tag_field="kind", tag="external_trigger_rotated", frozen=True, kw_only=True
):
    """The trigger goes by a new address; every earlier one is void."""

    external_trigger_id: TriggerId
    epoch: int


class ExternalTriggerRevoked(
    Record, tag_field="kind", tag="external_trigger_revoked", frozen=True, kw_only=True
):
    """The trigger's address is void until it is rotated."""

    external_trigger_id: TriggerId


class CallbackDelivered(
    Record, tag_field="kind", tag="callback_delivered", frozen=True, kw_only=True
):
    """An outside system used the trigger; a requested older mode is named too."""

    external_trigger_id: TriggerId
    source_key: str
    delivery_mode: TriggerDeliveryMode
    disposition: WakeDisposition
    descriptor_delivery_mode: TriggerDeliveryMode | None = None
    source: str | None = None
    resource: str | None = None
    content_type: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class CallbackRefused(Record, tag_field="kind", tag="callback_refused", frozen=True, kw_only=True):
    """A delivery with the right address was refused; its sender got the reason."""

    external_trigger_id: TriggerId
    reason: str
