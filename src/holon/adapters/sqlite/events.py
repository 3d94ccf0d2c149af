"""Append to the audit log.

Owns:  sequence numbers. They are allocated in the transaction of the change they record, and count
       1, 2, 3 … per agent without a gap, also across restarts.
Rule 1: within a group, events and the newest number of each agent are kept in memory and written at
        the end: each statement is a chance for another thread to take the interpreter. Rolling a
        commit back drops its events and numbers too.
Rule 2: an event of an unknown agent is refused when it is appended, while its commit is known; at
        the end of the group it would fail all others.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from holon.adapters.sqlite.database.error_mapping import running_errors
from holon.adapters.sqlite.database.row_codec import (
    BRIEFS,
    EventRow,
    audit_event,
    encode,
)
from holon.adapters.sqlite.database.statements import (
    ChangeRefusedError,
    ReadSession,
    Row,
    Statements,
    Value,
    at_most,
    named_queries,
)
from holon.model.commits import (
    LoggedEvent,
)
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import AuditEvent
from holon.model.events.reads import (
    EventOrder,
    EventQuery,
    EventSlice,
)
from holon.model.limits import (
    EVENT_PAGE_COUNT_MAX,
    FAILURES_READ_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.values import (
    AgentId,
    BriefId,
    TurnId,
    from_micros,
    to_micros,
)
from holon.ports.reads import UnknownCursorError

_NEWEST: Final = 2**63 - 1  # what a page begins before when no cursor is given
_EventRow: TypeAlias = tuple[AgentId, int, int, str, TurnId | None]


class SqliteEventReads(ReadSession):
    """The audit log, briefs, and how far back the log reaches."""

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

    async def briefs(self, agent_id: AgentId, *, limit: int) -> Sequence[BriefRecord]:
        """The newest briefs, oldest of them first."""
        return [BRIEFS.decode(str(row[0])) for row in self._all("briefs", (agent_id, limit))]

    async def last_failure(self) -> BriefRecord | None:
        """The newest brief of a failed turn whose agent has completed none since."""
        return self._failure("last_failure", FAILURES_READ_COUNT_MAX)

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

    async def events_after(
        self, agent_id: AgentId, event_seq: int, *, limit: int
    ) -> Sequence[AuditEvent]:
        """Events that follow a sequence number, in order."""
        found = self._all("events_after", (agent_id, event_seq, limit))
        return [audit_event(EventRow._make(row), agent_id=agent_id) for row in found]

    async def event_bounds(self, agent_id: AgentId) -> tuple[int, int]:
        """The newest pruned sequence number (0 when none was), and the newest of all."""
        match self._one("event_bounds", (agent_id,)):
            case (int() as floor, int() as newest):
                return floor, newest
            case _:
                return 0, 0

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

    async def used_bytes(self) -> int:
        """How much of the database is in use; its file only grows when there is nothing else."""
        pragma = self._statements.connection.pragma
        with running_errors():
            pages, free, size = map(pragma, ("page_count", "freelist_count", "page_size"))
        return (int(str(pages)) - int(str(free))) * int(str(size))

    async def settled_by(self, moment: datetime) -> datetime | None:
        """When the newest message that was settled by that moment was; None without one."""
        found = self._one("settled_by", (to_micros(moment),))
        settled_at = None if found is None else found[0]
        return from_micros(settled_at) if isinstance(settled_at, int) else None

    async def logged_since(self) -> datetime | None:
        """When the first event that is still in the log happened; None when there is none."""
        found = self._one("logged_since", ())
        created_at = None if found is None else found[0]
        return from_micros(created_at) if isinstance(created_at, int) else None

    def _failure(self, name: str, *key: Value) -> BriefRecord | None:
        found = self._one(name, key)
        return None if found is None else BRIEFS.decode(str(found[0]))

    def _brief_place(self, agent_id: AgentId, brief_id: BriefId) -> int:
        match self._one("brief_place", (agent_id, brief_id)):
            case (int() as seq,):
                return seq
            case _:
                raise UnknownCursorError(f"{agent_id} has no brief {brief_id}")

    def last_failure_of(self, agent_id: AgentId) -> BriefRecord | None:
        """The brief of the agent's last failure; the caller holds the transaction."""
        return self._failure("last_failure_of", agent_id)


def _bounds(found: Row | None) -> tuple[int, int]:
    match found:
        case (int() as floor_seq, int() as last_seq):
            return floor_seq, last_seq
        case _:
            return 0, 0  # no event of this agent was logged


class LogMark(NamedTuple):
    """Where the logs of a group stood."""

    seqs: dict[AgentId, int]
    rows_count: int


class EventLog:
    """Writes events, in order, per agent."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("log")
        self._seqs: dict[AgentId, int] = {}  # the newest of each agent this group has written of
        self._rows: list[_EventRow] = []  # of this group, in the order they happened

    def begin(self) -> None:
        """Know nothing: a group begins, and others may have written since the last one."""
        self._seqs.clear()
        self._rows.clear()

    def append(self, events: Iterable[LoggedEvent], *, at: int) -> None:
        """Append events to the logs of the agents they concern; raises ChangeRefusedError."""
        for each in events:
            event_seq = self._newest(each.agent_id) + 1
            self._rows.append((each.agent_id, event_seq, at, encode(each.event), each.turn_id))
            self._seqs[each.agent_id] = event_seq

    def mark(self) -> LogMark:
        """Return where the logs stand, to come back to when a commit is refused."""
        return LogMark(dict(self._seqs), len(self._rows))

    def take_back(self, mark: LogMark) -> None:
        """Forget the events since the mark, and the numbers given out to them."""
        self._seqs = mark.seqs
        del self._rows[mark.rows_count :]

    def finish(self) -> None:
        """Write the events and how far each log has come, at the end of a group."""
        self._statements.insert(self._sql["append_event"], self._rows)
        for agent_id, event_seq in self._seqs.items():
            self._statements.run(self._sql["move_event_head"], (agent_id, event_seq))

    def _newest(self, agent_id: AgentId) -> int:
        known = self._seqs.get(agent_id)
        if known is not None:
            return known
        row = self._statements.row(self._sql["last_event_seq"], (agent_id,))
        if row is not None:
            return int(str(row[0]))
        if self._statements.row(self._sql["agent_is_there"], (agent_id,)) is None:
            raise ChangeRefusedError("row_refers_to_nothing")
        return 0
