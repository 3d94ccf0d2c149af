"""History and surface reads: what operator surfaces show of agents.

Owns:  pages of briefs, messages, turns and events, each one index range from its cursor on; lists
       of agents and of their open work, their counts, and the runtime's activity.
Rule 1: a page is at most two index ranges: one over what is open, one over what has ended.
Rule 2: what one call returns is read in one transaction.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from holon.adapters.sqlite.database.error_mapping import running_errors
from holon.adapters.sqlite.database.row_codec import (
    BRIEFS,
    EVENTS,
    HINTS,
    ITEMS,
    LINES,
    USAGES,
    AgentRow,
    EventRow,
    TaskRow,
    TimerRow,
    TurnRow,
    WaitRow,
    agent_state,
    audit_event,
    task_record,
    timer_record,
    turn_record,
    wait_record,
)
from holon.adapters.sqlite.database.statements import ReadSession, Row, Value, at_most, numbers
from holon.adapters.sqlite.memory import MemoryLooks
from holon.adapters.sqlite.queue import queue_entry
from holon.adapters.sqlite.turns import SqliteTurnReads
from holon.adapters.sqlite.workspaces import WorkspaceLooks
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import AuditEvent, ContinuationResolved
from holon.model.events.reads import (
    CENSUS_ROWS_COUNT_MAX,
    ActivityCounts,
    AgentCounts,
    AgentSurface,
    EventOrder,
    EventQuery,
    EventSlice,
    LastExchange,
    ListedAgent,
    RuntimeCensus,
    WeighedItem,
)
from holon.model.guidance import TaintedInstructions
from holon.model.limits import (
    AGENT_ROWS_SHOWN_COUNT_MAX,
    AGENTS_COUNT_MAX,
    EVENT_PAGE_COUNT_MAX,
    FAILURES_LOOKED_AT_COUNT_MAX,
    STATE_TASKS_COUNT_MAX,
    STATE_TIMERS_COUNT_MAX,
    STATE_WAITS_COUNT_MAX,
    STATE_WORK_ITEMS_COUNT_MAX,
    SURFACE_COUNTED_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
    SURFACE_TURNS_COUNT_MAX,
    SURFACE_USAGE_TURNS_COUNT_MAX,
)
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import QueueEntry
from holon.model.tasks import TaskRecord
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import Continuation, TurnRecord
from holon.model.values import (
    AgentId,
    BriefId,
    MessageId,
    TaskId,
    TimerId,
    TurnId,
    WorkItemId,
    from_micros,
)
from holon.model.wake import TimerRecord, WaitRecord, WakeHint
from holon.model.work import WorkItemRecord
from holon.ports.reads import UnknownCursorError


class SqliteRecordReads(ReadSession):
    """The records' part of the port."""

    async def used_bytes(self) -> int:
        """How much of the database is in use; its file only grows when there is nothing else."""
        pragma = self._statements.connection.pragma
        with running_errors():
            pages, free, size = map(pragma, ("page_count", "freelist_count", "page_size"))
        return (int(str(pages)) - int(str(free))) * int(str(size))

    async def briefs(self, agent_id: AgentId, *, limit: int) -> Sequence[BriefRecord]:
        """The newest briefs, oldest of them first."""
        return [BRIEFS.decode(str(row[0])) for row in self._all("briefs", (agent_id, limit))]

    async def events_after(
        self, agent_id: AgentId, event_seq: int, *, limit: int
    ) -> Sequence[AuditEvent]:
        """Events that follow a sequence number, in order."""
        rows = self._all("events_after", (agent_id, event_seq, limit))
        return [audit_event(EventRow._make(row), agent_id=agent_id) for row in rows]

    async def event_bounds(self, agent_id: AgentId) -> tuple[int, int]:
        """The newest pruned sequence number (0 when none was), and the newest of all."""
        match self._one("event_bounds", (agent_id,)):
            case (int() as floor, int() as newest):
                return floor, newest
            case _:
                return 0, 0

    async def task(self, task_id: TaskId) -> TaskRecord | None:
        """One task."""
        row = self._one("task", (task_id,))
        return None if row is None else task_record(TaskRow._make(row))

    async def open_tasks(self) -> Sequence[TaskRecord]:
        """Tasks that have not ended, of all agents."""
        return [task_record(TaskRow._make(row)) for row in self._all("open_tasks")]

    async def timer(self, timer_id: TimerId) -> TimerRecord | None:
        """One timer."""
        row = self._one("timer", (timer_id,))
        return None if row is None else timer_record(TimerRow._make(row))

    async def work_item(self, work_item_id: WorkItemId) -> WorkItemRecord | None:
        """One work item."""
        row = self._one("work_item", (work_item_id,))
        return None if row is None else ITEMS.decode(str(row[0]))

    async def waits_on(self, source_id: str) -> Sequence[WaitRecord]:
        """Open waits that this source ends."""
        return self._waits("waits_on", source_id)

    async def item_waits(self, work_item_id: WorkItemId) -> Sequence[WaitRecord]:
        """Open waits this work item owns."""
        return self._waits("item_waits", work_item_id)

    def _waits(self, name: str, key: str) -> list[WaitRecord]:
        return [wait_record(WaitRow._make(row)) for row in self._all(name, (key,))]


_NEWEST: Final = 2**63 - 1  # what a page begins before when no cursor is given


class SqliteHistoryReads(SqliteRecordReads, SqliteTurnReads):
    """The part of the port that looks back."""

    async def briefs_page(
        self, agent_id: AgentId, *, before: BriefId | None, limit: int
    ) -> Sequence[BriefRecord]:
        """Briefs of an agent, newest first."""
        with self._moment():
            seq = _NEWEST if before is None else self._brief_place(agent_id, before)
            rows = self._all("briefs_page", (agent_id, seq, at_most(limit, SURFACE_PAGE_COUNT_MAX)))
        return [BRIEFS.decode(str(row[0])) for row in rows]

    async def brief(self, brief_id: BriefId) -> BriefRecord | None:
        """One brief."""
        row = self._one("brief", (brief_id,))
        return None if row is None else BRIEFS.decode(str(row[0]))

    async def messages(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> Sequence[QueueEntry]:
        """Those of the named messages that are kept and are this agent's, in the order asked."""
        with self._moment():
            page = message_ids[:SURFACE_PAGE_COUNT_MAX]
            columns = [self._one("message", (message_id,)) for message_id in page]
        entries = (queue_entry(row) for row in columns if row is not None)
        return [entry for entry in entries if entry.message.agent_id == agent_id]

    async def turns(self, agent_id: AgentId, turn_ids: Sequence[TurnId]) -> Sequence[TurnRecord]:
        """Those of the named turns that are kept and are this agent's, without what they hold."""
        with self._moment():
            columns = [self._one("turn", (turn_id,)) for turn_id in turn_ids[:EVENT_PAGE_COUNT_MAX]]
        turns = (turn_record(TurnRow._make(row)) for row in columns if row is not None)
        return [turn for turn in turns if turn.agent_id == agent_id]

    async def turns_page(
        self, agent_id: AgentId, *, before_index: int | None, limit: int
    ) -> Sequence[TurnLog]:
        """Turns with everything recorded in them, newest first, the open one included."""
        before = _NEWEST if before_index is None else before_index
        count = at_most(limit, SURFACE_TURNS_COUNT_MAX)
        with self._moment():
            rows = self._all("turns_page", (agent_id, before, count))
            return [self._log_of(row) for row in rows]

    async def events_page(self, agent_id: AgentId, query: EventQuery) -> EventSlice:
        """Events of an agent in either direction, and how far its log reaches."""
        with self._moment():
            floor_seq, last_seq = _bounds(self._one("event_bounds", (agent_id,)))
            after = floor_seq if query.after_seq is None else query.after_seq
            before = last_seq + 1 if query.before_seq is None else query.before_seq
            name = "events_up" if query.order is EventOrder.ASC else "events_down"
            count = at_most(query.limit, EVENT_PAGE_COUNT_MAX)
            rows = self._all(name, (agent_id, after, before, count))
        return EventSlice(
            events=tuple(audit_event(EventRow._make(row), agent_id=agent_id) for row in rows),
            floor_seq=floor_seq,
            last_seq=last_seq,
        )

    async def log_after(self, log_seq: int, *, limit: int) -> Sequence[AuditEvent]:
        """Events of all agents after a number, in order. A number left out was pruned."""
        rows = self._all("log_after", (log_seq, at_most(limit, EVENT_PAGE_COUNT_MAX)))
        return [
            audit_event(EventRow._make(columns), agent_id=AgentId(str(agent_id)))
            for *columns, agent_id in rows
        ]

    async def log_epoch(self) -> str | None:
        """The timeline the numbers of the log belong to."""
        match self._one("log_epoch"):
            case (str() as epoch,):
                return epoch
            case _:
                return None

    async def last_log_seq(self) -> int:
        """The number of the newest event of all, 0 when there is none."""
        match self._one("last_log_seq"):
            case (int() as newest,):
                return newest
            case _:
                return 0

    def _brief_place(self, agent_id: AgentId, brief_id: BriefId) -> int:
        match self._one("brief_place", (agent_id, brief_id)):
            case (int() as seq,):
                return seq
            case _:
                raise UnknownCursorError(f"{agent_id} has no brief {brief_id}")


def _bounds(row: Row | None) -> tuple[int, int]:
    match row:
        case (int() as floor_seq, int() as last_seq):
            return floor_seq, last_seq
        case _:
            return 0, 0  # the agent has no events


_LAST: Final = 2**63 - 1  # later than every moment
_FIRST: Final = -1  # earlier than every moment


class _AgentLooks(WorkspaceLooks, MemoryLooks):
    """Reads of one agent inside the caller's transaction."""

    def _listed(self, columns: Row) -> ListedAgent:
        row = AgentRow._make(columns)
        agent = agent_state(row)
        agent_id = agent.identity.agent_id
        runnable = self._one("runnable_item", (agent_id, row.current_work_item_id))
        stuck = self._one("stuck_item", (agent_id,))
        return ListedAgent(
            agent=agent,
            queued_count=row.queued_count,
            runnable_work_item_id=None if runnable is None else WorkItemId(str(runnable[0])),
            stuck_work_item=None if stuck is None else ITEMS.decode(str(stuck[0])),
            waits=tuple(self._some_waits(agent_id, limit=AGENT_ROWS_SHOWN_COUNT_MAX)),
            workspace=self._active_workspace(agent_id),
        )

    def _counts(self, agent_id: AgentId) -> AgentCounts | None:
        row = self._one("agent_counts", (agent_id, SURFACE_COUNTED_COUNT_MAX))
        if row is None:
            return None
        queued, items, waits, tasks, timers, hints, briefs, events = numbers(row)
        return AgentCounts(
            queued_messages=queued,
            open_work_items=items,
            waits=waits,
            tasks=tasks,
            active_timers=timers,
            wake_hints=hints,
            briefs=briefs,
            events=events,
        )

    def _some_waits(self, agent_id: AgentId, *, limit: int) -> list[WaitRecord]:
        rows = self._all("some_open_waits", (agent_id, limit))
        return [wait_record(WaitRow._make(row)) for row in rows]

    def _hints(self, agent_id: AgentId) -> list[WakeHint]:
        return [HINTS.decode(str(row[0])) for row in self._all("hints", (agent_id,))]

    def _usage(self, agent_id: AgentId) -> TokenUsage | None:
        """What the newest turn used, of the last settled ones that reported any tokens."""
        row = self._one("last_reported_usage", (agent_id, SURFACE_USAGE_TURNS_COUNT_MAX))
        return None if row is None else USAGES.decode(str(row[0]))

    def _exchange(self, agent_id: AgentId) -> LastExchange | None:
        """Which model was meant and which was asked last, in one of the newest turns."""
        row = self._one("last_exchange", (agent_id, SURFACE_USAGE_TURNS_COUNT_MAX))
        if row is None:
            return None
        requested, active = row
        return LastExchange(
            requested_model=str(requested), active_model=None if active is None else str(active)
        )

    def _failure(self, name: str, *key: Value) -> BriefRecord | None:
        row = self._one(name, key)
        return None if row is None else BRIEFS.decode(str(row[0]))

    def _continuation(self, agent_id: AgentId) -> Continuation | None:
        row = self._one("last_continuation", (agent_id, SURFACE_COUNTED_COUNT_MAX))
        event = None if row is None else EVENTS.decode(str(row[0]))
        return event.continuation if isinstance(event, ContinuationResolved) else None

    def _let_go(self, agent_id: AgentId) -> tuple[int, tuple[str, ...]]:
        """How many turns are no longer read in full, and what is left of them."""
        match self._one("agent_context", (agent_id,)):
            case (int() as first, _, str() as recap):
                return first - 1, LINES.decode(recap)
            case _:
                return 0, ()

    def _tainted(self, agent_id: AgentId) -> TaintedInstructions | None:
        match self._one("tainted_instructions", (agent_id,)):
            case (path, turn_id, int() as changed_at, int() as change_count):
                return TaintedInstructions(
                    path=str(path),
                    changed_at=from_micros(changed_at),
                    turn_id=TurnId(str(turn_id)),
                    change_count=change_count,
                )
            case _:
                return None


class _Pages(ReadSession):
    """Pages of what one agent has: what is open, then what has ended."""

    def _tasks(self, agent_id: AgentId, after: TaskId | None, *, limit: int) -> list[TaskRecord]:
        is_open, moment = self._place("task_place", agent_id, after)
        rows: list[Row] = []
        if is_open:
            start = (_LAST, "") if after is None else (moment, after)
            rows += self._all("open_tasks_page", (agent_id, *start, limit))
        start = (_LAST, "") if is_open or after is None else (moment, after)
        rows += self._all("ended_tasks_page", (agent_id, *start, at_most(limit - len(rows), limit)))
        return [task_record(TaskRow._make(row)) for row in rows]

    def _timers(self, agent_id: AgentId, after: TimerId | None, *, limit: int) -> list[TimerRecord]:
        is_active, moment = self._place("timer_place", agent_id, after)
        rows: list[Row] = []
        if is_active:
            start = (_FIRST, "") if after is None else (moment, after)
            rows += self._all("active_timers_page", (agent_id, *start, limit))
        start = (_LAST, "") if is_active or after is None else (moment, after)
        rows += self._all(
            "ended_timers_page", (agent_id, *start, at_most(limit - len(rows), limit))
        )
        return [timer_record(TimerRow._make(row)) for row in rows]

    def _items(
        self, agent_id: AgentId, after: WorkItemId | None, *, limit: int
    ) -> list[WeighedItem]:
        rows: list[Row] = []
        ended_start: tuple[Value, Value] = (_LAST, "")
        if after is None:
            rows += self._all("current_item", (agent_id,))[:limit]
            rows += self._all(
                "open_items_page", (agent_id, 0, _FIRST, "", at_most(limit - len(rows), limit))
            )
        else:
            is_open, is_waiting, created_at, updated_at, is_current = self._item_place(
                agent_id, after
            )
            if is_current:
                rows += self._all("open_items_page", (agent_id, 0, _FIRST, "", limit))
            elif is_open:
                rows += self._all(
                    "open_items_page", (agent_id, is_waiting, created_at, after, limit)
                )
            else:
                ended_start = (updated_at, after)
        rows += self._all(
            "completed_items_page", (agent_id, *ended_start, at_most(limit - len(rows), limit))
        )
        return [self._weighed(row) for row in rows]

    def _weighed(self, row: Row) -> WeighedItem:
        item = ITEMS.decode(str(row[0]))
        rows = self._all("item_waits", (item.id,))
        waits = tuple(wait_record(WaitRow._make(wait)) for wait in rows)
        return WeighedItem(item=item, waits=waits[:AGENT_ROWS_SHOWN_COUNT_MAX])

    def _place(self, name: str, agent_id: AgentId, after: str | None) -> tuple[bool, int]:
        if after is None:
            return True, 0
        match self._one(name, (agent_id, after)):
            case (int() as is_open, int() as moment):
                return bool(is_open), moment
            case _:
                raise UnknownCursorError(f"{agent_id} has no record {after}")

    def _item_place(self, agent_id: AgentId, after: WorkItemId) -> list[int]:
        row = self._one("item_place", (agent_id, after))
        if row is None:
            raise UnknownCursorError(f"{agent_id} has no work item {after}")
        return numbers(row)


class SqliteSurfaceReads(_AgentLooks, _Pages):
    """The part of the port that shows agents and what they have in hand."""

    async def public_agents(self, *, after: AgentId | None, limit: int) -> Sequence[ListedAgent]:
        """Public agents that are in use, by id, following `after`; private ones are left out."""
        with self._moment():
            rows = self._all("public_agents", (after or "", at_most(limit, SURFACE_PAGE_COUNT_MAX)))
            return [self._listed(row) for row in rows]

    async def agent_surface(self, agent_id: AgentId) -> AgentSurface | None:
        """Everything a surface shows of one agent, read in one transaction."""
        with self._moment():
            found, counts = self._one("agent", (agent_id,)), self._counts(agent_id)
            if found is None or counts is None:
                return None
            let_go_count, recap = self._let_go(agent_id)
            _, last_seq = numbers(self._one("event_bounds", (agent_id,)) or (0, 0))
            return AgentSurface(
                listed=self._listed(found),
                counts=counts,
                last_event_seq=last_seq,
                last_usage=self._usage(agent_id),
                last_exchange=self._exchange(agent_id),
                last_failure=self._failure("last_failure_of", agent_id),
                last_continuation=self._continuation(agent_id),
                let_go_turn_count=let_go_count,
                recap=recap,
                tasks=tuple(self._tasks(agent_id, None, limit=STATE_TASKS_COUNT_MAX)),
                timers=tuple(self._timers(agent_id, None, limit=STATE_TIMERS_COUNT_MAX)),
                work_items=tuple(self._items(agent_id, None, limit=STATE_WORK_ITEMS_COUNT_MAX)),
                waits=tuple(self._some_waits(agent_id, limit=STATE_WAITS_COUNT_MAX)),
                hints=tuple(self._hints(agent_id)),
                workspaces=self._bindings(agent_id),
                memory=self._memory_figures(agent_id),
                tainted=self._tainted(agent_id),
            )

    async def tasks_page(
        self, agent_id: AgentId, *, after: TaskId | None, limit: int
    ) -> Sequence[TaskRecord]:
        """Tasks of an agent: open ones first, each group by its newest movement."""
        with self._moment():
            return self._tasks(agent_id, after, limit=at_most(limit, SURFACE_PAGE_COUNT_MAX))

    async def timers_page(
        self, agent_id: AgentId, *, after: TimerId | None, limit: int
    ) -> Sequence[TimerRecord]:
        """Timers of an agent: active ones, soonest first; then ended ones, newest first."""
        with self._moment():
            return self._timers(agent_id, after, limit=at_most(limit, SURFACE_PAGE_COUNT_MAX))

    async def work_items_page(
        self, agent_id: AgentId, *, after: WorkItemId | None, limit: int
    ) -> Sequence[WeighedItem]:
        """Items: the current one, queued and waiting ones oldest first, completed newest first."""
        with self._moment():
            return self._items(agent_id, after, limit=at_most(limit, SURFACE_PAGE_COUNT_MAX))

    async def runtime_activity(self) -> ActivityCounts:
        """What goes on in the whole runtime."""
        row = self._one("activity", (SURFACE_COUNTED_COUNT_MAX,))
        assert row is not None, "counts are always one row"
        active, processing, waiting, tasks = numbers(row)
        return ActivityCounts(
            active_agent_count=active,
            processing_agent_count=processing,
            waiting_agent_count=waiting,
            active_task_count=tasks,
        )

    async def census(self) -> RuntimeCensus:
        """How many agents of each status there are, and how much is kept."""
        with self._moment():
            queued, events = numbers(self._one("kept", (CENSUS_ROWS_COUNT_MAX,)) or (0, 0))
            rows = self._all("statuses", (AGENTS_COUNT_MAX,))
            database_bytes, wal_bytes = self._file_bytes()
            return RuntimeCensus(
                agents={str(status): int(str(count)) for status, count in rows},
                queued_message_count=queued,
                kept_event_count=events,
                database_bytes=database_bytes,
                wal_bytes=wal_bytes,
            )

    def _file_bytes(self) -> tuple[int, int]:
        connection = self._statements.connection
        with running_errors():
            pages, size = map(connection.pragma, ("page_count", "page_size"))
        try:
            wal_bytes = Path(connection.filename_wal).stat().st_size
        except OSError:  # a database in memory has none, a new one not yet
            wal_bytes = 0
        return int(str(pages)) * int(str(size)), wal_bytes

    async def last_failure(self) -> BriefRecord | None:
        """The newest brief of a failed turn whose agent has completed none since."""
        return self._failure("last_failure", FAILURES_LOOKED_AT_COUNT_MAX)
