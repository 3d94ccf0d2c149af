"""Reading what happened, a page at a time.

Owns:  pages of briefs, messages, turns and events. Each walks one index from its cursor on.
"""

from collections.abc import Sequence
from typing import Final

from holon.adapters.sqlite.queue_reads import queue_entry
from holon.adapters.sqlite.read_session import at_most
from holon.adapters.sqlite.record_reads import SqliteRecordReads
from holon.adapters.sqlite.row_codec import BRIEFS, EventRow, TurnRow, audit_event, turn_record
from holon.adapters.sqlite.statements import Row
from holon.adapters.sqlite.turn_reads import SqliteTurnReads
from holon.model.brief import BriefRecord
from holon.model.event import AuditEvent
from holon.model.ids import AgentId, BriefId, MessageId, TurnId
from holon.model.limits import (
    EVENT_PAGE_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
    SURFACE_TURNS_COUNT_MAX,
)
from holon.model.message import QueueEntry
from holon.model.surface import EventOrder, EventQuery, EventSlice
from holon.model.transcript import TurnLog
from holon.model.turn import TurnRecord
from holon.ports.surface_reads import UnknownCursorError

_NEWEST: Final = 2**63 - 1  # what a page begins before when no cursor is given


class SqliteHistoryReads(SqliteRecordReads, SqliteTurnReads):
    """The part of the port that looks back."""

    async def briefs_page(
        self, agent_id: AgentId, *, before: BriefId | None, limit: int
    ) -> Sequence[BriefRecord]:
        """Briefs of an agent, newest first."""
        with self._moment():
            seq = _NEWEST if before is None else self._brief_place(agent_id, before)
            found = self._all(
                "briefs_page", (agent_id, seq, at_most(limit, SURFACE_PAGE_COUNT_MAX))
            )
        return [BRIEFS.decode(str(row[0])) for row in found]

    async def brief(self, brief_id: BriefId) -> BriefRecord | None:
        """One brief."""
        found = self._one("brief", (brief_id,))
        return None if found is None else BRIEFS.decode(str(found[0]))

    async def messages(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> Sequence[QueueEntry]:
        """Those of the named messages that are kept and are this agent's, in the order asked."""
        with self._moment():
            asked = message_ids[:SURFACE_PAGE_COUNT_MAX]
            found = [self._one("message", (message_id,)) for message_id in asked]
        entries = (queue_entry(row) for row in found if row is not None)
        return [entry for entry in entries if entry.message.agent_id == agent_id]

    async def turns(self, agent_id: AgentId, turn_ids: Sequence[TurnId]) -> Sequence[TurnRecord]:
        """Those of the named turns that are kept and are this agent's, without what they hold."""
        with self._moment():
            found = [self._one("turn", (turn_id,)) for turn_id in turn_ids[:EVENT_PAGE_COUNT_MAX]]
        turns = (turn_record(TurnRow._make(row)) for row in found if row is not None)
        return [turn for turn in turns if turn.agent_id == agent_id]

    async def turns_page(
        self, agent_id: AgentId, *, before_index: int | None, limit: int
    ) -> Sequence[TurnLog]:
        """Turns with everything recorded in them, newest first, the open one included."""
        before = _NEWEST if before_index is None else before_index
        most = at_most(limit, SURFACE_TURNS_COUNT_MAX)
        with self._moment():
            found = self._all("turns_page", (agent_id, before, most))
            return [self._log_of(row) for row in found]

    async def events_page(self, agent_id: AgentId, query: EventQuery) -> EventSlice:
        """Events of an agent in either direction, and how far its log reaches."""
        with self._moment():
            floor_seq, last_seq = _bounds(self._one("event_bounds", (agent_id,)))
            after = floor_seq if query.after_seq is None else query.after_seq
            before = last_seq + 1 if query.before_seq is None else query.before_seq
            name = "events_up" if query.order is EventOrder.ASC else "events_down"
            most = at_most(query.limit, EVENT_PAGE_COUNT_MAX)
            found = self._all(name, (agent_id, after, before, most))
        return EventSlice(
            events=tuple(audit_event(EventRow._make(row), agent_id=agent_id) for row in found),
            floor_seq=floor_seq,
            last_seq=last_seq,
        )

    async def log_after(self, log_seq: int, *, limit: int) -> Sequence[AuditEvent]:
        """Events of all agents after a number, in order. A number left out was pruned."""
        found = self._all("log_after", (log_seq, at_most(limit, EVENT_PAGE_COUNT_MAX)))
        return [
            audit_event(EventRow._make(columns), agent_id=AgentId(str(agent_id)))
            for *columns, agent_id in found
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


def _bounds(found: Row | None) -> tuple[int, int]:
    match found:
        case (int() as floor_seq, int() as last_seq):
            return floor_seq, last_seq
        case _:
            return 0, 0  # nothing was ever told of this agent
