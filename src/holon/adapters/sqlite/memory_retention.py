"""What pruning leaves for memory search.

Owns:  telling indexes which records go, in the transaction that removes them, and forgetting that
       again once every index has had time to hear it.
"""

from datetime import datetime, timedelta
from typing import Final

from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.instant import to_micros
from holon.model.limits import MEMORY_GONE_KEPT_MS

_NOTED: Final = {
    "turns": ("gone_turn_briefs", "gone_turn_calls"),
    "briefs": ("gone_briefs",),
    "tasks": ("gone_tasks",),
    "work_items": ("gone_work_items",),
    "episodes": ("gone_episodes",),
}


class MemoryRetention:
    """Notes what goes, on the writer's connection and thread."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("memory_retention")
        self.noted_count = 0

    def note(self, family: str, keys: str, *, now: datetime) -> None:
        """Say of the rows with these keys, a JSON list, and of what goes with them: gone."""
        connection = self._statements.connection
        for name in _NOTED.get(family, ()):
            before = connection.total_changes()
            self._statements.run(self._sql[name], (keys, to_micros(now)))
            self.noted_count += connection.total_changes() - before

    def forget(self, batch_count: int, *, now: datetime) -> bool:
        """Forget a batch of what went long ago, and return whether there may be more of it.

        An index that is further behind begins anew.
        """
        until = to_micros(now - timedelta(milliseconds=MEMORY_GONE_KEPT_MS))
        before = self._statements.connection.total_changes()
        self._statements.run(self._sql["raise_memory_floors"], (batch_count, until))
        self.noted_count += self._statements.connection.total_changes() - before
        self._statements.run(self._sql["delete_gone"], (batch_count, until))
        return self._statements.connection.changes() >= batch_count
