"""Reading what an agent has to do, did of late, and how long its tools took.

Owns:  bounded lists of one agent's work items and tasks, and the counts beside them.
"""

from collections import defaultdict
from collections.abc import Sequence

from holon.adapters.sqlite.number_columns import number, numbers
from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.row_codec import ITEMS, TaskRow, WaitRow, task_record, wait_record
from holon.model.ids import AgentId, MessageId
from holon.model.snapshot import WeighedItem
from holon.model.task import TaskRecord
from holon.model.tool import ToolLatency
from holon.model.wait import WaitRecord
from holon.model.work_item import WorkItemCounts, WorkItemRecord


class SqliteWorkReads(ReadSession):
    """The part of the port that lists an agent's work."""

    async def open_items(self, agent_id: AgentId, *, limit: int) -> Sequence[WeighedItem]:
        """The current item, then the other open ones, oldest first, each with its open waits."""
        with self._moment():
            current = self._all("current_item", (agent_id,))
            others = self._all("other_open_items", (agent_id, limit - len(current)))
            waits: defaultdict[str | None, list[WaitRecord]] = defaultdict(list)
            for found in self._all("open_waits", (agent_id,)):
                row = WaitRow._make(found)
                waits[row.work_item_id].append(wait_record(row))
        items = (ITEMS.decode(str(row[0])) for row in (*current, *others))
        return [WeighedItem(item=item, waits=tuple(waits.get(item.id, ()))) for item in items]

    async def completed_items(self, agent_id: AgentId, *, limit: int) -> Sequence[WorkItemRecord]:
        """Completed items, newest first."""
        return [
            ITEMS.decode(str(row[0])) for row in self._all("completed_items", (agent_id, limit))
        ]

    async def work_item_counts(self, agent_id: AgentId) -> WorkItemCounts:
        """How many items the agent has open, and how many completed ones are kept."""
        found = self._one("item_counts", (agent_id,))
        assert found is not None, "counts are always one row"
        open_count, completed_count = numbers(found)
        return WorkItemCounts(open_count=open_count, completed_count=completed_count)

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

    async def followup_count(self, root_id: MessageId) -> int:
        """How many follow-ups of one chain are known."""
        found = self._one("followup_count", (root_id,))
        assert found is not None, "counts are always one row"
        return number(found[0])

    async def tool_latencies(self, agent_id: AgentId, *, limit: int) -> Sequence[ToolLatency]:
        """How long the agent's calls took, by tool."""
        return [
            ToolLatency(
                tool_name=str(name), call_count=calls, total_ms=total, max_ms=longest, last_ms=last
            )
            for name, *columns in self._all("tool_latencies", (agent_id, limit))
            for calls, total, longest, last in [numbers(columns)]
        ]
