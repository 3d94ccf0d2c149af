"""Background tasks, as rows tell them.

Owns:  the reads of `tasks`.
"""

from collections.abc import Sequence
from typing import Final

from holon.adapters.sqlite.database.row_codec import (
    TaskRow,
    task_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    at_most,
)
from holon.model.limits import (
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.tasks import TaskRecord
from holon.model.values import (
    AgentId,
    TaskId,
)

_LAST: Final = 2**63 - 1  # later than every moment


class SqliteTaskReads(ReadSession):
    """Background tasks."""

    async def task(self, task_id: TaskId) -> TaskRecord | None:
        """One task."""
        found = self._one("task", (task_id,))
        return None if found is None else task_record(TaskRow._make(found))

    async def open_tasks(self) -> Sequence[TaskRecord]:
        """Tasks that have not ended, of all agents."""
        return [task_record(TaskRow._make(row)) for row in self._all("open_tasks")]

    async def ended_tasks(self, agent_id: AgentId, *, limit: int) -> Sequence[TaskRecord]:
        """Tasks of the agent that have ended, newest first."""
        found = self._all("ended_tasks", (agent_id, limit))
        return [task_record(TaskRow._make(row)) for row in found]

    async def unread_tasks(self) -> Sequence[TaskRecord]:
        """Tasks of all agents that have ended and whose result no turn has taken in yet."""
        return [task_record(TaskRow._make(row)) for row in self._all("unread_tasks")]

    async def unread_results(self, agent_id: AgentId, *, limit: int) -> Sequence[TaskRecord]:
        """Ended tasks of the agent whose result no turn has taken in yet, newest first."""
        found = self._all("unread_results", (agent_id, limit))
        return [task_record(TaskRow._make(row)) for row in found]

    async def tasks_page(
        self, agent_id: AgentId, *, after: TaskId | None, limit: int
    ) -> Sequence[TaskRecord]:
        """Tasks of an agent: open ones first, each group by its newest movement."""
        with self._moment():
            return self.listed(agent_id, after, limit=at_most(limit, SURFACE_PAGE_COUNT_MAX))

    def listed(self, agent_id: AgentId, after: TaskId | None, *, limit: int) -> list[TaskRecord]:
        """Tasks of an agent: open ones, then ended ones; the caller holds the transaction."""
        is_open, moment = self._cursor_place("task_place", agent_id, after)
        rows: list[Row] = []
        if is_open:
            start = (_LAST, "") if after is None else (moment, after)
            rows += self._all("open_tasks_page", (agent_id, *start, limit))
        start = (_LAST, "") if is_open or after is None else (moment, after)
        rows += self._all("ended_tasks_page", (agent_id, *start, at_most(limit - len(rows), limit)))
        return [task_record(TaskRow._make(row)) for row in rows]
