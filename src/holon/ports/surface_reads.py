"""The queries operator surfaces need: pages of records, and looks at agents and the runtime.

Contract (kept by tests/contract/test_surface_reads.py, run against every implementation): as for
store_reads; besides, every answer is bounded whatever limit is asked for, and a page goes on after
the record its cursor names. A cursor that names nothing of this agent raises UnknownCursorError.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.brief import BriefRecord
from holon.model.errors import BadInputError
from holon.model.event import AuditEvent
from holon.model.ids import AgentId, BriefId, MessageId, TaskId, TimerId, TurnId, WorkItemId
from holon.model.message import QueueEntry
from holon.model.snapshot import WeighedItem
from holon.model.surface import (
    ActivityCounts,
    AgentSurface,
    EventQuery,
    EventSlice,
    ListedAgent,
    RuntimeCensus,
)
from holon.model.task import TaskRecord
from holon.model.transcript import TurnLog
from holon.model.turn import TurnRecord
from holon.model.wake import TimerRecord


class UnknownCursorError(BadInputError):
    """A page was asked for after a record that is not there, or is another agent's."""

    code = "unknown_cursor"
    hint = "start again from the first page"


class AgentSurfaceReads(Protocol):
    """Agents as surfaces see them, and what they have in hand."""

    async def public_agents(self, *, after: AgentId | None, limit: int) -> Sequence[ListedAgent]:
        """Public agents that are in use, by id, following `after`; private ones are left out."""
        ...

    async def agent_surface(self, agent_id: AgentId) -> AgentSurface | None:
        """Everything a surface shows of one agent, whoever may see it, at one moment."""
        ...

    async def tasks_page(
        self, agent_id: AgentId, *, after: TaskId | None, limit: int
    ) -> Sequence[TaskRecord]:
        """Tasks of an agent: open ones first, each group by its newest movement."""
        ...

    async def timers_page(
        self, agent_id: AgentId, *, after: TimerId | None, limit: int
    ) -> Sequence[TimerRecord]:
        """Timers of an agent: active ones, soonest first; then ended ones, newest first."""
        ...

    async def work_items_page(
        self, agent_id: AgentId, *, after: WorkItemId | None, limit: int
    ) -> Sequence[WeighedItem]:
        """Items: the current one, queued and waiting ones oldest first, completed newest first."""
        ...

    async def runtime_activity(self) -> ActivityCounts:
        """What goes on in the whole runtime."""
        ...

    async def census(self) -> RuntimeCensus:
        """How many agents of each status there are, and how much is kept."""
        ...

    async def last_failure(self) -> BriefRecord | None:
        """The newest brief of a failed turn whose agent has completed none since."""
        ...


class HistoryReads(Protocol):
    """What happened, a page at a time."""

    async def briefs_page(
        self, agent_id: AgentId, *, before: BriefId | None, limit: int
    ) -> Sequence[BriefRecord]:
        """Briefs of an agent, newest first."""
        ...

    async def brief(self, brief_id: BriefId) -> BriefRecord | None:
        """One brief."""
        ...

    async def messages(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> Sequence[QueueEntry]:
        """Those of the named messages that are kept and are this agent's, in the order asked."""
        ...

    async def turns(self, agent_id: AgentId, turn_ids: Sequence[TurnId]) -> Sequence[TurnRecord]:
        """Those of the named turns that are kept and are this agent's, without what they hold."""
        ...

    async def turns_page(
        self, agent_id: AgentId, *, before_index: int | None, limit: int
    ) -> Sequence[TurnLog]:
        """Turns with everything recorded in them, newest first, the open one included."""
        ...

    async def events_page(self, agent_id: AgentId, query: EventQuery) -> EventSlice:
        """Events of an agent in either direction, and how far its log reaches."""
        ...

    async def log_after(self, log_seq: int, *, limit: int) -> Sequence[AuditEvent]:
        """Events of all agents after a number, in order. A number left out was pruned."""
        ...

    async def log_epoch(self) -> str | None:
        """The timeline the numbers of the log belong to, where they can belong to another one."""
        ...

    async def last_log_seq(self) -> int:
        """The number of the newest event of all, 0 when there is none."""
        ...


class SurfaceReads(AgentSurfaceReads, HistoryReads, Protocol):
    """Every query of the operator surfaces."""
