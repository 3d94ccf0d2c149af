"""Append to the audit log.

Owns:  sequence numbers. They are allocated in the transaction of the change they record, and count
       1, 2, 3 … per agent without a gap, also across restarts.
Rule 1: within a group, events and the newest number of each agent are kept in memory and written at
        the end: each statement is a chance for another thread to take the interpreter. Rolling a
        commit back drops its events and numbers too.
Rule 2: an event of an unknown agent is refused when it is appended, while its commit is known; at
        the end of the group it would fail all others.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from holon.adapters.sqlite.database.row_codec import encode
from holon.adapters.sqlite.database.statements import ChangeRefusedError, Statements, named_queries
from holon.model.commits import LoggedEvent
from holon.model.values import AgentId, TurnId

_EventRow: TypeAlias = tuple[AgentId, int, int, str, TurnId | None]


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
