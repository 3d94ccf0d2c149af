"""What an agent's rows say at one moment: the facts scheduling decides on.

Owns:  the snapshot types. A snapshot is read in one transaction, so its parts agree.
Rule 1: a snapshot is bounded: heads not queues, weighed items not every item.
"""

from holon.model.agent import AgentState
from holon.model.agent_status import AgentStatus
from holon.model.ids import MessageId
from holon.model.instant import Instant
from holon.model.message import Priority
from holon.model.record import Record
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord, WakeHint
from holon.model.work_item import ActivationMemory, WorkItemRecord


class QueueHead(Record, frozen=True, kw_only=True):
    """A queued message that may be claimed: the oldest of its band, or one that waits no more."""

    seq: int
    message_id: MessageId
    priority: Priority


class WeighedItem(Record, frozen=True, kw_only=True):
    """An open work item with what bears on its readiness."""

    item: WorkItemRecord
    waits: tuple[WaitRecord, ...] = ()  # the item's open waits
    activation: ActivationMemory | None = None


class AgentSnapshot(Record, frozen=True, kw_only=True):
    """One agent's rows, as far as scheduling needs them."""

    agent: AgentState
    heads: tuple[QueueHead, ...] = ()
    passed_over: int = 0
    claimed_message_id: MessageId | None = None
    hints: tuple[WakeHint, ...] = ()
    agent_waits: tuple[WaitRecord, ...] = ()  # open waits owned by the agent itself
    current: WeighedItem | None = None  # the focus, whatever its state
    queued: tuple[WeighedItem, ...] = ()  # other open items, oldest first, bounded
    due_rechecks: tuple[WeighedItem, ...] = ()  # blocked items whose reminder has come
    unweighed_waits: tuple[WaitRecord, ...] = ()  # open waits on items that are none of these
    deferred_until: Instant | None = None  # the first moment a put-off message waits for, to come
    slowed_until: Instant | None = None  # the same of a message that is held before its first turn
    active_timer_count: int = 0

    @property
    def waits(self) -> tuple[WaitRecord, ...]:
        """Every open wait of the agent and of its items, each once."""
        items = (self.current, *self.queued, *self.due_rechecks)
        owned = (wait for weighed in items if weighed is not None for wait in weighed.waits)
        every = (*self.agent_waits, *owned, *self.unweighed_waits)
        return tuple({wait.id: wait for wait in every if wait.state.is_open}.values())


class AdmissionTarget(Record, frozen=True, kw_only=True):
    """What the door needs to know about an agent, and no more: it is read for every message."""

    status: AgentStatus
    is_archived: bool
    queued_count: int


class KeyedMessage(Record, frozen=True, kw_only=True):
    """The message an idempotency key stands for, and the digest of what it asked."""

    message_id: MessageId
    body_digest: str


class DueTimer(Record, frozen=True, kw_only=True):
    """An active timer whose next slot has come, and whether its last tick still waits."""

    timer: TimerRecord
    tick_pending: bool
