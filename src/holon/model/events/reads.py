"""What surfaces read: bounded snapshots of rows, each taken at one moment.

Owns:  the answer types of the read protocols, their queries and page bounds. Projections turn them
       into views.
Rule 1: everything is bounded: lists by a limit, counts by SURFACE_COUNTED_COUNT_MAX, a census by
        the number of agents allowed. A snapshot holds queue heads, and only the weighed items.
Rule 2: each answer is read in one transaction, so its parts agree.
"""

from enum import StrEnum
from typing import Final

from holon.model.agents import AgentState, AgentStatus
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import AuditEvent
from holon.model.guidance import TaintedInstructions
from holon.model.limits import AGENTS_COUNT_MAX
from holon.model.memory.records import MemoryFigures
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import Priority
from holon.model.record import Record
from holon.model.tasks import TaskRecord
from holon.model.turns.turn import Continuation
from holon.model.values import Instant, MessageId, WorkItemId
from holon.model.wake import TimerRecord, WaitRecord, WakeHint
from holon.model.work import ActivationMemory, WorkItemRecord
from holon.model.workspaces import ActiveWorkspace, WorkspaceBindings

# One scrape of the metrics.
TALLY_PAGES_COUNT_MAX: Final = 64  # of events; what is left over is counted by the next look
CENSUS_ROWS_COUNT_MAX: Final = 5 * AGENTS_COUNT_MAX  # of agents that ever were, archived ones too


class QueueHead(Record, frozen=True, kw_only=True):
    """A queued message that may be claimed: the oldest of its band, or one whose wait is over."""

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
    """What admission needs to know about an agent, and no more: it is read for every message."""

    status: AgentStatus
    is_archived: bool
    queued_count: int


class KeyedMessage(Record, frozen=True, kw_only=True):
    """The message an idempotency key stands for, and the digest of its request."""

    message_id: MessageId
    body_digest: str


class DueTimer(Record, frozen=True, kw_only=True):
    """An active timer whose next slot has come, and whether its last tick still waits."""

    timer: TimerRecord
    tick_pending: bool


class ListedAgent(Record, frozen=True, kw_only=True):
    """An agent with what is needed to explain why it runs or rests, and no more."""

    agent: AgentState
    queued_count: int = 0
    runnable_work_item_id: WorkItemId | None = None  # the current one if it may run, or the oldest
    stuck_work_item: WorkItemRecord | None = None  # the oldest open one that may not run
    waits: tuple[WaitRecord, ...] = ()  # open ones, oldest first, a few
    workspace: ActiveWorkspace | None = None  # the active one, unless the agent is at home


class AgentCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How much of everything an agent has. Each count but the events' stops at the bound."""

    queued_messages: int = 0
    open_work_items: int = 0
    waits: int = 0
    tasks: int = 0
    active_timers: int = 0
    wake_hints: int = 0
    briefs: int = 0
    events: int = 0


class ActivityCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Activity of a runtime. Each count stops at the bound; sleeping agents cost nothing."""

    active_agent_count: int = 0  # public agents that are up, or that wait for something
    processing_agent_count: int = 0  # of them, those booting or in a turn
    waiting_agent_count: int = 0  # of them, those with a task, a wait or a question, and no turn
    active_task_count: int = 0


class RuntimeCensus(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The size of what a runtime keeps, archived agents left out."""

    agents: dict[str, int]  # by status; statuses without an agent are left out
    queued_message_count: int = 0
    kept_event_count: int = 0
    database_bytes: int = 0
    wal_bytes: int = 0  # 0 without a file


class EventOrder(StrEnum):
    """In which direction a log is read."""

    ASC = "asc"
    DESC = "desc"


class EventQuery(Record, frozen=True, kw_only=True):
    """Which events of an agent: those strictly between the two, read from the end `order` names."""

    after_seq: int | None = None
    before_seq: int | None = None
    order: EventOrder = EventOrder.ASC
    limit: int = 0


class EventSlice(Record, frozen=True, kw_only=True):
    """Events of one agent, and how far its log reaches: all after the floor, up to the last."""

    events: tuple[AuditEvent, ...] = ()
    floor_seq: int = 0
    last_seq: int = 0


class LastExchange(Record, frozen=True, kw_only=True):
    """The model the newest round was meant for, and the one that was asked last for it."""

    requested_model: str
    active_model: str | None = None


class AgentSurface(Record, frozen=True, kw_only=True):
    """Everything a surface shows of one agent, with the event from which to follow it on."""

    listed: ListedAgent
    counts: AgentCounts
    last_event_seq: int = 0
    last_usage: TokenUsage | None = None  # of the newest settled turn that reported any
    last_exchange: LastExchange | None = None
    last_failure: BriefRecord | None = None  # the newest brief of a failed turn
    last_continuation: Continuation | None = None  # what the newest message amounted to
    let_go_turn_count: int = 0  # turns the agent no longer reads in full
    recap: tuple[str, ...] = ()  # what is left of them
    tasks: tuple[TaskRecord, ...] = ()  # open ones first, then newest
    timers: tuple[TimerRecord, ...] = ()  # active ones first, soonest first
    work_items: tuple[WeighedItem, ...] = ()  # current, queued, waiting, completed
    waits: tuple[WaitRecord, ...] = ()
    hints: tuple[WakeHint, ...] = ()
    workspaces: WorkspaceBindings = WorkspaceBindings()
    memory: MemoryFigures = MemoryFigures()
    tainted: TaintedInstructions | None = None
