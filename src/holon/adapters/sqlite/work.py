"""Work items and background tasks.

Owns:  bounded lists of one agent's work items and tasks, with counts; the rows of `work_items`,
       `delivery_summaries`, `activations` and `tasks`.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, TypeAlias, assert_never

from holon.adapters.sqlite.database.row_codec import (
    ITEMS,
    WaitRow,
    can_run,
    encode,
    micros_or_none,
    recheck_due_at,
    wait_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    Value,
    at_most,
    named_queries,
    numbers,
)
from holon.model.commits import (
    AdvanceTask,
    AppendDeliverySummary,
    CreateTask,
    PutWorkItem,
    RememberActivation,
)
from holon.model.events.reads import (
    WeighedItem,
)
from holon.model.limits import (
    AGENT_ROWS_SHOWN_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.values import (
    AgentId,
    WorkItemId,
    to_micros,
)
from holon.model.wake import (
    WaitRecord,
)
from holon.model.work import WorkItemCounts, WorkItemRecord
from holon.ports.reads import UnknownCursorError

_LAST: Final = 2**63 - 1  # later than every moment
_FIRST: Final = -1  # earlier than every moment
WorkChange: TypeAlias = (
    PutWorkItem | AppendDeliverySummary | RememberActivation | CreateTask | AdvanceTask
)


class SqliteWorkReads(ReadSession):
    """Work items."""

    async def work_item(self, work_item_id: WorkItemId) -> WorkItemRecord | None:
        """One work item."""
        found = self._one("work_item", (work_item_id,))
        return None if found is None else ITEMS.decode(str(found[0]))

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

    async def work_items_page(
        self, agent_id: AgentId, *, after: WorkItemId | None, limit: int
    ) -> Sequence[WeighedItem]:
        """Items: the current one, queued and waiting ones oldest first, completed newest first."""
        with self._moment():
            return self.listed(agent_id, after, limit=at_most(limit, SURFACE_PAGE_COUNT_MAX))

    def listed(
        self, agent_id: AgentId, after: WorkItemId | None, *, limit: int
    ) -> list[WeighedItem]:
        """The current item, open ones, completed ones; the caller holds the transaction."""
        rows: list[Row] = []
        ended_start: tuple[Value, Value] = (_LAST, "")
        if after is None:
            rows += self._all("current_item", (agent_id,))[:limit]
            rows += self._all(
                "open_items_page", (agent_id, 0, _FIRST, "", at_most(limit - len(rows), limit))
            )
        else:
            is_open, is_waiting, created_at, updated_at, is_current = self._item_place(
                agent_id, after
            )
            if is_current:
                rows += self._all("open_items_page", (agent_id, 0, _FIRST, "", limit))
            elif is_open:
                rows += self._all(
                    "open_items_page", (agent_id, is_waiting, created_at, after, limit)
                )
            else:
                ended_start = (updated_at, after)
        rows += self._all(
            "completed_items_page", (agent_id, *ended_start, at_most(limit - len(rows), limit))
        )
        return [self._weighed(row) for row in rows]

    def _weighed(self, row: Row) -> WeighedItem:
        item = ITEMS.decode(str(row[0]))
        found = self._all("item_waits", (item.id,))
        waits = tuple(wait_record(WaitRow._make(wait)) for wait in found)
        return WeighedItem(item=item, waits=waits[:AGENT_ROWS_SHOWN_COUNT_MAX])

    def _item_place(self, agent_id: AgentId, after: WorkItemId) -> list[int]:
        found = self._one("item_place", (agent_id, after))
        if found is None:
            raise UnknownCursorError(f"{agent_id} has no work item {after}")
        return numbers(found)


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
