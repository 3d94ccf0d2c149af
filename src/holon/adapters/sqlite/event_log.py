"""Appending to the audit log.

Owns:  sequence numbers. They are given out in the transaction of the change they tell of, and count
       1, 2, 3 … per agent with no gap, also across restarts.
Rule 1: within a group the newest number of an agent is kept here and its row is written once, at
        the end. Whoever takes a commit back takes its numbers back too.
"""

from collections.abc import Iterable
from typing import TypeAlias

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.event import Event
from holon.model.ids import AgentId

LogMark: TypeAlias = dict[AgentId, int]


class EventLog:
    """Writes events, in order, per agent."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("log")
        self._seqs: dict[AgentId, int] = {}  # the newest of each agent this group has written of

    def begin(self) -> None:
        """Know nothing: a group begins, and others may have written since the last one."""
        self._seqs.clear()

    def append(self, audited: Iterable[tuple[AgentId, Event]], *, at: int) -> None:
        """Append events to the logs of the agents they concern."""
        for agent_id, event in audited:
            event_seq = self._newest(agent_id) + 1
            self._statements.run(
                self._sql["append_event"], (agent_id, event_seq, at, encode(event))
            )
            self._seqs[agent_id] = event_seq

    def mark(self) -> LogMark:
        """Return where the logs stand, to come back to when a commit is refused."""
        return dict(self._seqs)

    def take_back(self, mark: LogMark) -> None:
        """Forget the numbers given out since the mark; their events are gone."""
        self._seqs = mark

    def finish(self) -> None:
        """Write how far each log has come, at the end of a group."""
        for agent_id, event_seq in self._seqs.items():
            self._statements.run(self._sql["move_event_head"], (agent_id, event_seq))

    def _newest(self, agent_id: AgentId) -> int:
        known = self._seqs.get(agent_id)
        if known is not None:
            return known
        row = self._statements.row(self._sql["last_event_seq"], (agent_id,))
        return 0 if row is None else int(str(row[0]))
