"""Background tasks as rows: opened, advanced, ended once, and waited for.

Owns:  the durable side of tasks. Whoever runs the work reports here; results re-enter by the queue.
Rule 1: a task's end, its result message and the waits it ends are one commit.
Rule 2: the first terminal status wins; a late report changes nothing and is no error.
"""

from holon.decide.admission import Admitted
from holon.decide.agent_refusals import refuse_unknown
from holon.decide.desk_commits import TaskEnd, task_end_changes
from holon.decide.task_lifecycle import IgnoreLate, decide_advance, is_terminal
from holon.model.commit import AdvanceTask, Commit, CreateTask, OpenWait
from holon.model.expectation import AgentAdmits, TaskNotTerminal
from holon.model.ids import IdPrefix, TaskId, WaitId, WorkItemId, parse_record_id
from holon.model.ingress import IngressRequest
from holon.model.instant import later
from holon.model.limits import WAIT_DEADLINE_DEFAULT_MS
from holon.model.message import MessageKind, Priority, TextBody
from holon.model.provenance import AdmissionContext, DeliverySurface, TaskOrigin
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.task import TaskRecord
from holon.model.wait import WaitKind, WaitRecord
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.runtime.decided_commit import commit_decided
from holon.runtime.ingress import Ingress


class TaskDesk:
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
            if await self._store.reads.agent(task.agent_id) is None:
                return refuse_unknown(task.agent_id)
            return Commit(
                commit_id=f"task:{task.id}:created",
                at=task.created_at,
                changes=(CreateTask(task=task),),
                expects=(AgentAdmits(agent_id=task.agent_id),),
            )

        await commit_decided(self._store, decide)

    async def find(self, task_id: TaskId) -> TaskRecord | None:
        """The task of this id, if there is one."""
        return await self._store.reads.task(task_id)

    async def report(self, advance: AdvanceTask) -> bool:
        """Move a task forward; False when the report came too late to matter."""

        async def decide() -> Commit | Refusal | None:
            task = await self._store.reads.task(advance.task_id)
            if task is None:
                return _not_found(advance.task_id)
            if isinstance(decide_advance(task.status, advance.status), IgnoreLate):
                return None
            if not is_terminal(advance.status):
                return Commit(
                    commit_id=f"task:{task.id}:{advance.status.value}",
                    at=self._clock.now(),
                    changes=(advance,),
                    expects=(TaskNotTerminal(task_id=task.id),),
                )
            return await self._end(task, advance)

        return await commit_decided(self._store, decide) is not None

    async def _end(self, task: TaskRecord, advance: AdvanceTask) -> Commit:
        waits = tuple(await self._store.reads.waits_on(task.id))
        end = TaskEnd(advance=advance, result=await self._result(task, advance, waits), waits=waits)
        changes, expects = task_end_changes(end)
        return Commit(
            commit_id=f"task:{task.id}:{advance.status.value}",
            at=self._clock.now(),
            changes=changes,
            expects=expects,
        )

    async def _result(
        self, task: TaskRecord, advance: AdvanceTask, waits: tuple[WaitRecord, ...]
    ) -> Admitted | None:
        """The message that brings the result back; an archived agent gets none."""
        text = advance.result_summary or f"task {task.id} ended: {advance.status.value}"
        request = IngressRequest(
            agent_id=task.agent_id,
            kind=MessageKind.TASK_RESULT,
            origin=TaskOrigin(task_id=task.id),
            body=TextBody(text=text),
            surface=DeliverySurface.TASK_REJOIN,
            admission=AdmissionContext.RUNTIME_OWNED,
            priority=Priority.NEXT,
            task_id=task.id,
            work_item_id=task.work_item_id,
            wait_id=waits[0].id if waits else None,
            causation_id=task.parent_message_id,
        )
        try:
            return await self._ingress.judge(request)
        except RefusedError:
            return None

    async def wait_for(
        self, task_id: TaskId, *, work_item_id: WorkItemId | None = None
    ) -> WaitId | None:
        """Wait for a task's result; None when it has already ended, which ends the wait at once."""
        wait_id = WaitId(self._ids.fresh(IdPrefix.WAIT))

        async def decide() -> Commit | Refusal | None:
            now = self._clock.now()
            task = await self._store.reads.task(task_id)
            if task is None:
                return _not_found(task_id)
            if is_terminal(task.status):
                return None
            wait = WaitRecord(
                id=wait_id,
                agent_id=task.agent_id,
                kind=WaitKind.TASK,
                waiting_for=task.summary or task.kind.value,
                created_at=now,
                deadline_at=later(now, by_ms=WAIT_DEADLINE_DEFAULT_MS),
                work_item_id=work_item_id,
                source_id=task_id,
            )
            return Commit(
                commit_id=f"wait:{wait_id}:active",
                at=now,
                changes=(OpenWait(wait=wait),),
                expects=(TaskNotTerminal(task_id=task_id),),
            )

        opened = await commit_decided(self._store, decide)
        return wait_id if opened is not None else None


def _not_found(task_id: TaskId) -> Refusal:
    parse_record_id(task_id, what="task id")
    return Refusal(
        code=RefusalCode.TASK_NOT_FOUND,
        message=f"there is no task {task_id}",
        hint="list the agent's tasks to find its id",
    )
