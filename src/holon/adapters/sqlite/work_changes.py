"""Writing changes to work items and background tasks.

Owns:  the rows of `work_items`, `delivery_summaries`, `activations` and `tasks`.
"""

from typing import TypeAlias, assert_never

from holon.adapters.sqlite.change_codec import can_run, encode, micros_or_none, recheck_due_at
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.commit import (
    AdvanceTask,
    AppendDeliverySummary,
    CreateTask,
    PutWorkItem,
    RememberActivation,
)
from holon.model.instant import to_micros

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
