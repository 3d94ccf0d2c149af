"""The open memory indexes of a host.

Owns:  which indexes are open: a few, the most recently used ones.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from holon.model.limits import MEMORY_INDEXES_OPEN_COUNT_MAX

if TYPE_CHECKING:
    from holon.adapters.sqlite.memory_index.index import SqliteMemoryIndex


class SqliteMemoryIndexes:
    """The indexes of a host, a few of them open."""

    is_kept = True

    def __init__(self) -> None:
        self._open: OrderedDict[str, SqliteMemoryIndex] = OrderedDict()

    def of(self, agent_home: str) -> "SqliteMemoryIndex":
        """Return the index that lies in an agent's home."""
        from holon.adapters.sqlite.memory_index.index import SqliteMemoryIndex  # most runs use none

        index = self._open.pop(agent_home, None) or SqliteMemoryIndex(agent_home)
        self._open[agent_home] = index
        if len(self._open) > MEMORY_INDEXES_OPEN_COUNT_MAX:
            self._drop_oldest()
        return index

    def _drop_oldest(self) -> None:
        """Drop an index that is not in use; its connection closes when it is collected."""
        idle = next((home for home, each in self._open.items() if not each.is_busy), None)
        if idle is not None:
            del self._open[idle]

    async def close(self) -> None:
        """Let go of every file."""
        for index in self._open.values():
            await index.close()
        self._open.clear()
