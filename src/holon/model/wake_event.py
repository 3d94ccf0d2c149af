"""The runtime events about waking: timers, wake hints, waits and ticks.

Owns:  what the audit log can say about time and signals. The rules are those of model/event.
"""

from holon.model.ids import MessageId, TimerId, WaitId, WorkItemId
from holon.model.instant import Instant
from holon.model.record import Record
from holon.model.wait import WaitKind, WaitState


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
