"""Agents: the snapshot that scheduling decides on, and the rows of `agents` and `briefs`.

Owns:  the agent reads; writing agents and briefs.
Rule 1: the snapshot is a fixed number of index lookups: its cost depends neither on the length of
        the history nor on the number of agents.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias, assert_never

import apsw

from holon.adapters.sqlite.database.error_mapping import running_errors
from holon.adapters.sqlite.database.row_codec import (
    EVENTS,
    IDENTITIES,
    ITEMS,
    LINES,
    USAGES,
    ActivityCountsRow,
    AgentRow,
    WaitRow,
    WorkItemRow,
    activation_memory,
    agent_state,
    encode,
    micros_or_none,
    wait_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    at_most,
    named_queries,
    number,
    numbers,
)
from holon.adapters.sqlite.events import SqliteEventReads
from holon.adapters.sqlite.memory import SqliteMemoryReads
from holon.adapters.sqlite.tasks import SqliteTaskReads
from holon.adapters.sqlite.wake import SqliteWakeReads
from holon.adapters.sqlite.work import SqliteWorkReads
from holon.adapters.sqlite.workspaces import SqliteWorkspaceReads
from holon.model.agents import AgentContext, AgentIdentity, AgentState, IdentityStatus
from holon.model.commits import (
    AppendBrief,
    ArchiveAgent,
    CreateAgent,
    FocusWorkItem,
    RecordClosure,
    SetAgentStatus,
    SetModelOverride,
)
from holon.model.events.event import ContinuationResolved
from holon.model.events.reads import (
    CENSUS_ROWS_COUNT_MAX,
    ActivityCounts,
    AgentCounts,
    AgentSnapshot,
    AgentSurface,
    LastExchange,
    ListedAgent,
    QueueHead,
    RuntimeCensus,
    WeighedItem,
)
from holon.model.guidance import TaintedInstructions
from holon.model.limits import (
    AGENT_ROWS_SHOWN_COUNT_MAX,
    AGENTS_COUNT_MAX,
    SELF_STARTED_HOLD_MS_MAX,
    STATE_TASKS_COUNT_MAX,
    STATE_TIMERS_COUNT_MAX,
    STATE_WAITS_COUNT_MAX,
    STATE_WORK_ITEMS_COUNT_MAX,
    SURFACE_COUNTED_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
    SURFACE_USAGE_TURNS_COUNT_MAX,
    WORK_ITEMS_WEIGHED_COUNT_MAX,
)
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import Priority
from holon.model.turns.turn import Continuation
from holon.model.values import (
    AgentId,
    MessageId,
    TurnId,
    WorkItemId,
    from_micros,
    to_micros,
)
from holon.model.wake import WaitRecord

_PRIORITIES: Final = {priority.band: priority for priority in Priority}
_NOTHING: Final = (None, 0, 0, 0, 0)
_LONGEST_HOLD: Final = timedelta(milliseconds=SELF_STARTED_HOLD_MS_MAX)
_WaitsByItem: TypeAlias = Mapping[str | None, list[WaitRecord]]
AgentChange: TypeAlias = (
    CreateAgent
    | SetAgentStatus
    | FocusWorkItem
    | SetModelOverride
    | ArchiveAgent
    | RecordClosure
    | AppendBrief
)
_MISSING = "agents_row_missing"


class SqliteAgentReads(ReadSession):
    """Agents, and the facts scheduling and surfaces need of them."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        work: SqliteWorkReads,
        tasks: SqliteTaskReads,
        wake: SqliteWakeReads,
        memory: SqliteMemoryReads,
        workspaces: SqliteWorkspaceReads,
        events: SqliteEventReads,
    ) -> None:
        super().__init__(connection)
        self._work = work
        self._tasks = tasks
        self._wake = wake
        self._memory = memory
        self._workspaces = workspaces
        self._events = events

    async def agent(self, agent_id: AgentId) -> AgentState | None:
        """One agent's state."""
        found = self._one("agent", (agent_id,))
        return None if found is None else agent_state(AgentRow._make(found))

    async def agent_context(self, agent_id: AgentId) -> AgentContext:
        """Where the agent's history begins, and what is left of the turns before."""
        match self._one("agent_context", (agent_id,)):
            case (int() as first, int() as epoch, str() as recap):
                return AgentContext(
                    history_from_turn=first, compression_epoch=epoch, recap=LINES.decode(recap)
                )
            case _:
                return AgentContext()

    async def snapshot(self, agent_id: AgentId, *, now: datetime) -> AgentSnapshot | None:
        """Everything scheduling decides on, at one moment."""
        with self._moment():
            found = self._one("agent", (agent_id,))
            if found is None:
                return None
            return self._snapshot_of(agent_id, AgentRow._make(found), now=to_micros(now))

    async def restless(self, *, now: datetime) -> Sequence[AgentId]:
        """Agents some row gives a reason to look at: queue, claim, hint, or open work item."""
        moments = (to_micros(now), to_micros(now + _LONGEST_HOLD))
        return [AgentId(str(row[0])) for row in self._all("restless", moments)]

    async def archived_without_history(
        self, agent_ids: Sequence[AgentId]
    ) -> Sequence[AgentIdentity]:
        """Those of these agents that are archived and of whose doings no row is left."""
        asked = json.dumps([str(each) for each in agent_ids])
        return [
            IDENTITIES.decode(str(row[0]))
            for row in self._all("archived_without_history", (asked,))
        ]

    async def agent_count(self, *, limit: int) -> int:
        """How many agents there are; counting stops at `limit`."""
        found = self._one("agent_count", (limit,))
        count = None if found is None else found[0]
        return count if isinstance(count, int) else 0

    async def public_agents(self, *, after: AgentId | None, limit: int) -> Sequence[ListedAgent]:
        """Public agents that are in use, by id, following `after`; private ones are left out."""
        with self._moment():
            found = self._all(
                "public_agents", (after or "", at_most(limit, SURFACE_PAGE_COUNT_MAX))
            )
            return [self._listed(row) for row in found]

    async def agent_surface(self, agent_id: AgentId) -> AgentSurface | None:
        """Everything any surface shows of one agent, at one moment."""
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
                last_failure=self._events.last_failure_of(agent_id),
                last_continuation=self._continuation(agent_id),
                let_go_turn_count=let_go_count,
                recap=recap,
                tasks=tuple(self._tasks.listed(agent_id, None, limit=STATE_TASKS_COUNT_MAX)),
                timers=tuple(
                    self._wake.listed_timers(agent_id, None, limit=STATE_TIMERS_COUNT_MAX)
                ),
                work_items=tuple(
                    self._work.listed(agent_id, None, limit=STATE_WORK_ITEMS_COUNT_MAX)
                ),
                waits=tuple(self._wake.some_waits(agent_id, limit=STATE_WAITS_COUNT_MAX)),
                hints=tuple(self._wake.hints(agent_id)),
                workspaces=self._workspaces.bindings(agent_id),
                memory=self._memory.figures(agent_id),
                tainted=self._tainted(agent_id),
            )

    async def census(self) -> RuntimeCensus:
        """How many agents of each status there are, and how much is kept."""
        with self._moment():
            queued, events = numbers(self._one("kept", (CENSUS_ROWS_COUNT_MAX,)) or (0, 0))
            found = self._all("statuses", (AGENTS_COUNT_MAX,))
            database_bytes, wal_bytes = self._file_bytes()
            return RuntimeCensus(
                agents={str(status): int(str(count)) for status, count in found},
                queued_message_count=queued,
                kept_event_count=events,
                database_bytes=database_bytes,
                wal_bytes=wal_bytes,
            )

    async def runtime_activity(self) -> ActivityCounts:
        """What goes on in the whole runtime."""
        found = self._one("activity", (SURFACE_COUNTED_COUNT_MAX,))
        assert found is not None, "counts are always one row"
        active, processing, waiting, tasks = numbers(found)
        return ActivityCounts(
            active_agent_count=active,
            processing_agent_count=processing,
            waiting_agent_count=waiting,
            active_task_count=tasks,
        )

    def _snapshot_of(self, agent_id: AgentId, row: AgentRow, *, now: int) -> AgentSnapshot:
        around = ActivityCountsRow._make(self._one("around", (agent_id,)) or _NOTHING)
        waits = self._open_waits(agent_id) if around.has_waits else {}
        current_id, most = row.current_work_item_id, WORK_ITEMS_WEIGHED_COUNT_MAX
        current = self._all("weighed_item", (current_id,)) if current_id is not None else []
        deferred_until, slowed_until, void = self._waits_until(row, agent_id, now=now)
        claimed, hints = around.claimed_message_id, around.has_hints
        focus = _weigh(current[0], waits) if current else None
        queued: tuple[WeighedItem, ...] = ()
        due: tuple[WeighedItem, ...] = ()
        if around.has_open_items:
            queued = self._weigh_all("weighed_queue", (agent_id, current_id, most), waits)
            due = self._weigh_all("due_rechecks", (agent_id, now, most), waits)
        return AgentSnapshot(
            agent=agent_state(row),
            heads=self._heads(agent_id, void, now=now) if row.queued_count else (),
            passed_over=row.passed_over,
            claimed_message_id=None if claimed is None else MessageId(claimed),
            hints=tuple(self._wake.hints(agent_id)) if hints else (),
            agent_waits=tuple(waits.get(None, ())),
            current=focus,
            queued=queued,
            due_rechecks=due,
            unweighed_waits=_unweighed(waits, (focus, *queued, *due)) if waits else (),
            deferred_until=deferred_until,
            slowed_until=slowed_until,
            active_timer_count=around.active_timer_count,
        )

    def _waits_until(
        self, row: AgentRow, agent_id: AgentId, *, now: int
    ) -> tuple[datetime | None, datetime | None, int | None]:
        """The first moment a message waits for that was put off, and one that is held back.

        The third is a message that was held back by a clock which has been set back since.
        """
        longest = now + SELF_STARTED_HOLD_MS_MAX * 1_000
        found = self._one("waits_until", (agent_id, now, longest)) if row.queued_count else None
        if found is None:
            return None, None, None
        put_off, held, void = found
        return (
            from_micros(put_off) if isinstance(put_off, int) else None,
            from_micros(held) if isinstance(held, int) else None,
            void if isinstance(void, int) else None,
        )

    def _heads(self, agent_id: AgentId, void: int | None, *, now: int) -> tuple[QueueHead, ...]:
        return tuple(
            QueueHead(
                seq=number(seq), message_id=MessageId(str(message_id)), priority=_PRIORITIES[band]
            )
            for seq, message_id, band in self._all("heads", (agent_id, now, void))
            if isinstance(band, int)
        )

    def _open_waits(self, agent_id: AgentId) -> _WaitsByItem:
        by_item: dict[str | None, list[WaitRecord]] = defaultdict(list)
        for found in self._all("open_waits", (agent_id,)):
            row = WaitRow._make(found)
            by_item[row.work_item_id].append(wait_record(row))
        return by_item

    def _weigh_all(
        self, name: str, parameters: tuple[str | int | None, ...], waits: _WaitsByItem
    ) -> tuple[WeighedItem, ...]:
        return tuple(_weigh(found, waits) for found in self._all(name, parameters))

    def _listed(self, found: Row) -> ListedAgent:
        row = AgentRow._make(found)
        agent = agent_state(row)
        agent_id = agent.identity.agent_id
        runnable = self._one("runnable_item", (agent_id, row.current_work_item_id))
        stuck = self._one("stuck_item", (agent_id,))
        return ListedAgent(
            agent=agent,
            queued_count=row.queued_count,
            runnable_work_item_id=None if runnable is None else WorkItemId(str(runnable[0])),
            stuck_work_item=None if stuck is None else ITEMS.decode(str(stuck[0])),
            waits=tuple(self._wake.some_waits(agent_id, limit=AGENT_ROWS_SHOWN_COUNT_MAX)),
            workspace=self._workspaces.active(agent_id),
        )

    def _counts(self, agent_id: AgentId) -> AgentCounts | None:
        found = self._one("agent_counts", (agent_id, SURFACE_COUNTED_COUNT_MAX))
        if found is None:
            return None
        queued, items, waits, tasks, timers, hints, briefs, events = numbers(found)
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

    def _usage(self, agent_id: AgentId) -> TokenUsage | None:
        """What the newest turn used, of the last settled ones that reported any tokens."""
        found = self._one("last_reported_usage", (agent_id, SURFACE_USAGE_TURNS_COUNT_MAX))
        return None if found is None else USAGES.decode(str(found[0]))

    def _exchange(self, agent_id: AgentId) -> LastExchange | None:
        """Which model was meant and which was asked last, in one of the newest turns."""
        found = self._one("last_exchange", (agent_id, SURFACE_USAGE_TURNS_COUNT_MAX))
        if found is None:
            return None
        requested, active = found
        return LastExchange(
            requested_model=str(requested), active_model=None if active is None else str(active)
        )

    def _continuation(self, agent_id: AgentId) -> Continuation | None:
        found = self._one("last_continuation", (agent_id, SURFACE_COUNTED_COUNT_MAX))
        event = None if found is None else EVENTS.decode(str(found[0]))
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

    def _file_bytes(self) -> tuple[int, int]:
        connection = self._statements.connection
        with running_errors():
            pages, size = map(connection.pragma, ("page_count", "page_size"))
        try:
            wal_bytes = Path(connection.filename_wal).stat().st_size
        except OSError:  # a database in memory has none, a new one not yet
            wal_bytes = 0
        return int(str(pages)) * int(str(size)), wal_bytes


def _weigh(found: Row, waits: _WaitsByItem) -> WeighedItem:
    row = WorkItemRow._make(found)
    item = ITEMS.decode(row.record)
    return WeighedItem(
        item=item, waits=tuple(waits.get(item.id, ())), activation=activation_memory(row, item)
    )


def _unweighed(
    waits: _WaitsByItem, weighed: Sequence[WeighedItem | None]
) -> tuple[WaitRecord, ...]:
    """The waits on items that are not among these."""
    known = {None, *(each.item.id for each in weighed if each is not None)}
    return tuple(wait for item_id, some in waits.items() if item_id not in known for wait in some)


class AgentChanges:
    """Writes what changes about an agent itself."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("agents")

    def write(self, change: AgentChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case CreateAgent():
                self._create(change, at=at)
            case SetAgentStatus():
                self._set_status(change, at=at)
            case FocusWorkItem(agent_id=agent_id, work_item_id=item_id):
                self._update("set_focus", agent_id, item_id)
            case SetModelOverride(agent_id=agent_id, model=model):
                self._update("set_model_override", agent_id, model)
            case ArchiveAgent(agent_id=agent_id):
                self._statements.change_one(self._sql["archive"], (agent_id,), missing=_MISSING)
            case RecordClosure(agent_id=agent_id, closure=closure):
                self._update("record_closure", agent_id, encode(closure))
            case AppendBrief():
                self._append_brief(change)
            case _:
                assert_never(change)

    def _update(self, name: str, agent_id: str, value: str | int | None) -> None:
        self._statements.change_one(self._sql[name], (agent_id, value), missing=_MISSING)

    def _create(self, change: CreateAgent, *, at: int) -> None:
        identity = change.identity
        archived = identity.status is IdentityStatus.ARCHIVED
        self._statements.run(
            self._sql["create_agent"],
            (identity.agent_id, encode(identity), int(archived), change.status.value, at),
        )

    def _set_status(self, change: SetAgentStatus, *, at: int) -> None:
        self._statements.change_one(
            self._sql["set_status"],
            {
                "agent_id": change.agent_id,
                "status": change.status.value,
                "at": at,
                "reason": change.reason,
                "sleeping_until": micros_or_none(change.sleeping_until),
                "new_generation": change.new_generation,
                "wake_reason": change.wake_reason,
            },
            missing=_MISSING,
        )

    def _append_brief(self, change: AppendBrief) -> None:
        brief = change.brief
        told_at = to_micros(brief.created_at)
        self._statements.run(
            self._sql["append_brief"],
            (brief.id, brief.agent_id, brief.turn_id, brief.kind.value, told_at, encode(brief)),
        )
        self._update("brief_told", brief.agent_id, told_at)
