"""Reading single records and pages of them."""

from collections.abc import Sequence

from holon.adapters.sqlite.error_mapping import running_errors
from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.row_codec import (
    BRIEFS,
    ITEMS,
    EventRow,
    TaskRow,
    TimerRow,
    WaitRow,
    audit_event,
    task_record,
    timer_record,
    wait_record,
)
from holon.model.brief import BriefRecord
from holon.model.event import AuditEvent
from holon.model.ids import AgentId, TaskId, TimerId, WorkItemId
from holon.model.task import TaskRecord
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord
from holon.model.work_item import WorkItemRecord


class SqliteRecordReads(ReadSession):
    """The records' part of the port."""

    async def used_bytes(self) -> int:
        """How much of the database is in use; its file only grows when there is nothing else."""
        pragma = self._statements.connection.pragma
        with running_errors():
            pages, free, size = map(pragma, ("page_count", "freelist_count", "page_size"))
        return (int(str(pages)) - int(str(free))) * int(str(size))

    async def briefs(self, agent_id: AgentId, *, limit: int) -> Sequence[BriefRecord]:
        """The newest briefs, oldest of them first."""
        return [BRIEFS.decode(str(row[0])) for row in self._all("briefs", (agent_id, limit))]

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

    async def task(self, task_id: TaskId) -> TaskRecord | None:
        """One task."""
        found = self._one("task", (task_id,))
        return None if found is None else task_record(TaskRow._make(found))

    async def open_tasks(self) -> Sequence[TaskRecord]:
        """Tasks that have not ended, of all agents."""
        return [task_record(TaskRow._make(row)) for row in self._all("open_tasks")]

    async def timer(self, timer_id: TimerId) -> TimerRecord | None:
        """One timer."""
        found = self._one("timer", (timer_id,))
        return None if found is None else timer_record(TimerRow._make(found))

    async def work_item(self, work_item_id: WorkItemId) -> WorkItemRecord | None:
        """One work item."""
        found = self._one("work_item", (work_item_id,))
        return None if found is None else ITEMS.decode(str(found[0]))

    async def waits_on(self, source_id: str) -> Sequence[WaitRecord]:
        """Open waits that this source ends."""
        return self._waits("waits_on", source_id)

    async def item_waits(self, work_item_id: WorkItemId) -> Sequence[WaitRecord]:
        """Open waits this work item owns."""
        return self._waits("item_waits", work_item_id)

    def _waits(self, name: str, key: str) -> list[WaitRecord]:
        return [wait_record(WaitRow._make(row)) for row in self._all(name, (key,))]
