"""What operator surfaces read: bounded looks at rows, each taken at one moment.

Owns:  the types those reads answer with. Views of them are made in projections.
Rule 1: everything here is bounded: lists by a limit, counts by SURFACE_COUNTED_COUNT_MAX,
        a census by how many agents there may be.
Rule 2: what belongs to one answer was read in one transaction, so its parts agree.
"""

from enum import StrEnum

from holon.model.agent import AgentState
from holon.model.brief import BriefRecord
from holon.model.continuation import Continuation
from holon.model.event import AuditEvent
from holon.model.ids import WorkItemId
from holon.model.instructions import TaintedInstructions
from holon.model.memory import MemoryFigures
from holon.model.provider_attempt import TokenUsage
from holon.model.record import Record
from holon.model.snapshot import WeighedItem
from holon.model.task import TaskRecord
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord, WakeHint
from holon.model.work_item import WorkItemRecord
from holon.model.workspace import ActiveWorkspace, WorkspaceBindings


class ListedAgent(Record, frozen=True, kw_only=True):
    """An agent with what is needed to say why it runs or rests, and no more."""

    agent: AgentState
    queued_count: int = 0
    runnable_work_item_id: WorkItemId | None = None  # the current one if it may run, or the oldest
    stuck_work_item: WorkItemRecord | None = None  # the oldest open one that may not run
    waits: tuple[WaitRecord, ...] = ()  # open ones, oldest first, a few
    workspace: ActiveWorkspace | None = None  # the one it is in, unless it is at home


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
    """What goes on in a runtime. Each count stops at the bound; sleeping agents cost nothing."""

    active_agent_count: int = 0  # public agents that are up, or that wait for something
    processing_agent_count: int = 0  # of them, those booting or in a turn
    waiting_agent_count: int = 0  # of them, those with a task, a wait or a question, and no turn
    active_task_count: int = 0


class RuntimeCensus(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How much there is of what a runtime keeps, archived agents left out."""

    agents: dict[str, int]  # by status; one that nobody has is left out
    queued_message_count: int = 0
    kept_event_count: int = 0
    database_bytes: int = 0
    wal_bytes: int = 0  # 0 where there is no file


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
