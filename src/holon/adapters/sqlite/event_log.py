"""Appending to the audit log.

Owns:  sequence numbers. They are given out in the transaction of the change they tell of, one row
       per agent holding the newest, so that they count 1, 2, 3 … with no gap, also across restarts.
"""

from collections.abc import Iterable

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.event import Event
from holon.model.ids import AgentId


class EventLog:
    """Writes events, in order, per agent."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("log")

    def append(self, audited: Iterable[tuple[AgentId, Event]], *, at: int) -> None:
        """Append events to the logs of the agents they concern."""
        for agent_id, event in audited:
            ((event_seq,),) = self._statements.rows(self._sql["next_event_seq"], (agent_id,))
            assert isinstance(event_seq, int), "next_event_seq returns a number"
            self._statements.run(
                self._sql["append_event"], (agent_id, event_seq, at, encode(event))
            )
