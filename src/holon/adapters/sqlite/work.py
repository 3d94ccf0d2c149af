"""Work items and background tasks.

Owns:  bounded lists of one agent's work items and tasks, with counts; the rows of `work_items`,
       `delivery_summaries`, `activations` and `tasks`.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias, assert_never

from holon.adapters.sqlite.database.row_codec import (
    ITEMS,
    TaskRow,
    WaitRow,
    can_run,
    encode,
    micros_or_none,
    recheck_due_at,
    task_record,
    wait_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Statements,
    named_queries,
    number,
    numbers,
)
from holon.model.commits import (
    AdvanceTask,
    AppendDeliverySummary,
    CreateTask,
    PutWorkItem,
    RememberActivation,
)
from holon.model.events.reads import WeighedItem
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolLatency
from holon.model.values import AgentId, MessageId, to_micros
from holon.model.wake import WaitRecord
from holon.model.work import WorkItemCounts, WorkItemRecord


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
        row = self._one("item_counts", (agent_id,))
        assert row is not None, "counts are always one row"
        open_count, completed_count = numbers(row)
        return WorkItemCounts(open_count=open_count, completed_count=completed_count)

    async def ended_tasks(self, agent_id: AgentId, *, limit: int) -> Sequence[TaskRecord]:
        """Tasks of the agent that have ended, newest first."""
        rows = self._all("ended_tasks", (agent_id, limit))
        return [task_record(TaskRow._make(row)) for row in rows]

    async def unread_tasks(self) -> Sequence[TaskRecord]:
        """Tasks of all agents that have ended and whose result no turn has taken in yet."""
        return [task_record(TaskRow._make(row)) for row in self._all("unread_tasks")]

    async def unread_results(self, agent_id: AgentId, *, limit: int) -> Sequence[TaskRecord]:
        """Ended tasks of the agent whose result no turn has taken in yet, newest first."""
        rows = self._all("unread_results", (agent_id, limit))
        return [task_record(TaskRow._make(row)) for row in rows]

    async def followup_count(self, root_id: MessageId) -> int:
        """How many follow-ups of one chain are known."""
        row = self._one("followup_count", (root_id,))
        assert row is not None, "counts are always one row"
        return number(row[0])

    async def tool_latencies(self, agent_id: AgentId, *, limit: int) -> Sequence[ToolLatency]:
        """How long the agent's calls took, by tool."""
        return [
            ToolLatency(
                tool_name=str(name), call_count=calls, total_ms=total, max_ms=longest, last_ms=last
            )
            for name, *columns in self._all("tool_latencies", (agent_id, limit))
            for calls, total, longest, last in [numbers(columns)]
        ]


WorkChange: TypeAlias = (
    PutWorkItem | AppendDeliverySummary | RememberActivation | CreateTask | AdvanceTask
)


class WorkChanges:
    """Writes what changes about work."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("work")

    def write(self, change: WorkChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case PutWorkItem():
                self._put_item(change)
            case AppendDeliverySummary(summary=summary):
                self._statements.run(
                    self._sql["append_delivery_summary"],
                    (
                        summary.id,
                        summary.work_item_id,
                        to_micros(summary.created_at),
                        encode(summary),
                    ),
                )
            case RememberActivation():
                self._remember(change)
            case CreateTask():
                self._create_task(change)
            case AdvanceTask():
                self._advance_task(change, at=at)
            case _:
                assert_never(change)

    def _put_item(self, change: PutWorkItem) -> None:
        item = change.item
        parameters = (
            item.id,
            item.agent_id,
            item.state.value,
            item.revision,
            int(can_run(item)),
            micros_or_none(recheck_due_at(item)),
            to_micros(item.created_at),
            to_micros(item.updated_at),
            encode(item),
        )
        self._statements.run(self._sql["update_work_item"], parameters)
        if self._statements.connection.changes() == 0:
            self._statements.run(self._sql["insert_work_item"], parameters)

    def _remember(self, change: RememberActivation) -> None:
        memory = change.memory
        self._statements.run(
            self._sql["remember_activation"],
            (
                memory.agent_id,
                memory.work_item_id,
                memory.revision_seen,
                memory.no_progress_count,
                to_micros(memory.last_at),
                to_micros(memory.not_before),
            ),
        )

    def _create_task(self, change: CreateTask) -> None:
        task = change.task
        self._statements.run(
            self._sql["create_task"],
            (
                task.id,
                task.agent_id,
                task.kind.value,
                task.status.value,
                to_micros(task.updated_at),
                task.result_summary,
                task.exit_status,
                None if task.failure is None else encode(task.failure),
                encode(task),
            ),
        )

    def _advance_task(self, change: AdvanceTask, *, at: int) -> None:
        self._statements.change_one(
            self._sql["advance_task"],
            (
                change.task_id,
                change.agent_id,
                change.status.value,
                at,
                change.result_summary,
                change.exit_status,
                None if change.failure is None else encode(change.failure),
            ),
            missing="tasks_row_missing",
        )
