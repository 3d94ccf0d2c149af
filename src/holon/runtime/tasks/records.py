"""Task records: opened, advanced, ended once, and waited for.

Owns:  the durable side of tasks. The supervisor reports here; results re-enter through the queue.
       What a report makes durable is decided in decide/tasks/commits.
"""

from holon.decide.tasks.commands import IgnoreLate, decide_advance, is_terminal
from holon.decide.tasks.commits import (
    advance_commit,
    end_commit,
    opening_of,
    refuse_unknown_task,
    result_request,
    wait_commit,
)
from holon.model.commits import AdvanceTask, Commit
from holon.model.errors import Refusal, RefusedError
from holon.model.tasks import TaskRecord
from holon.model.values import IdPrefix, TaskId, WaitId, WorkItemId, parse_record_id
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.runtime.commits import commit_decided
from holon.runtime.queue import Ingress


class TaskService:
    """Tasks of one host."""

    def __init__(
        self,
        ingress: Ingress,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._ingress = ingress

    async def open(self, task: TaskRecord) -> None:
        """Record a task that is about to run."""

        async def decide() -> Commit | Refusal:
            return opening_of(task, await self._store.reads.agents.agent(task.agent_id))

        await commit_decided(self._store, decide)

    async def find(self, task_id: TaskId) -> TaskRecord | None:
        """Return the task with this id, or None."""
        return await self._store.reads.tasks.task(task_id)

    async def report(self, advance: AdvanceTask) -> bool:
        """Advance a task; False when the report is too late to matter."""

        async def decide() -> Commit | Refusal | None:
            task = await self._store.reads.tasks.task(advance.task_id)
            if task is None:
                return _not_found(advance.task_id)
            if isinstance(decide_advance(task.status, advance.status), IgnoreLate):
                return None
            if not is_terminal(advance.status):
                return advance_commit(task, advance, now=self._clock.now())
            return await self._end(task, advance)

        return await commit_decided(self._store, decide) is not None

    async def _end(self, task: TaskRecord, advance: AdvanceTask) -> Commit:
        waits = await self._store.reads.wake.waits_on(task.id)
        try:
            result = await self._ingress.judge(result_request(task, advance, waits))
        except RefusedError:
            result = None  # the agent is archived
        return end_commit(task, advance, result=result, waits=waits, now=self._clock.now())

    async def wait_for(
        self, task_id: TaskId, *, work_item_id: WorkItemId | None = None
    ) -> WaitId | None:
        """Wait for a task's result; None when it has already ended, which ends the wait at once."""
        wait_id = WaitId(self._ids.fresh(IdPrefix.WAIT))

        async def decide() -> Commit | Refusal | None:
            now = self._clock.now()
            task = await self._store.reads.tasks.task(task_id)
            if task is None:
                return _not_found(task_id)
            return wait_commit(wait_id, task, work_item_id=work_item_id, now=now)

        opened = await commit_decided(self._store, decide)
        return wait_id if opened is not None else None


def _not_found(task_id: TaskId) -> Refusal:
    parse_record_id(task_id, what="task id")
    return refuse_unknown_task(task_id)
