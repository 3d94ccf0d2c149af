"""Task commits: opening, advancing, ending and awaiting background tasks.

Owns:  what a task report makes durable, and the message that brings its result back.
Rule 1: a task's end, its result message and the waits it ends are one commit.
Rule 2: the first terminal status wins; a late report changes nothing and is no error.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.decide.agents.lifecycle import refuse_unknown
from holon.decide.queue.admission import Admitted
from holon.decide.queue.commits import TaskEnd, task_end_changes
from holon.decide.tasks.commands import is_terminal
from holon.model.agents import AgentState
from holon.model.commits import (
    AdvanceTask,
    AgentAdmits,
    Commit,
    CreateTask,
    OpenWait,
    TaskNotTerminal,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import WAIT_DEADLINE_DEFAULT_MS
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    Priority,
    TaskOrigin,
    TextBody,
)
from holon.model.tasks import TaskRecord
from holon.model.values import TaskId, WaitId, WorkItemId, later
from holon.model.wake import WaitKind, WaitRecord


def opening_of(task: TaskRecord, agent: AgentState | None) -> Commit | Refusal:
    """Record a task that is about to run."""
    if agent is None:
        return refuse_unknown(task.agent_id)
    return Commit(
        commit_id=f"task:{task.id}:created",
        at=task.created_at,
        changes=(CreateTask(task=task),),
        expects=(AgentAdmits(agent_id=task.agent_id),),
    )


def advance_commit(task: TaskRecord, advance: AdvanceTask, *, now: datetime) -> Commit:
    """Move a task to a status that does not end it."""
    return Commit(
        commit_id=f"task:{task.id}:{advance.status.value}",
        at=now,
        changes=(advance,),
        expects=(TaskNotTerminal(task_id=task.id),),
    )


def end_commit(
    task: TaskRecord,
    advance: AdvanceTask,
    *,
    result: Admitted | None,
    waits: Sequence[WaitRecord],
    now: datetime,
) -> Commit:
    """End a task, with its result and the waits on it; an archived agent gets no result."""
    end = TaskEnd(advance=advance, result=result, waits=tuple(waits))
    changes, expects = task_end_changes(end)
    return Commit(
        commit_id=f"task:{task.id}:{advance.status.value}",
        at=now,
        changes=changes,
        expects=expects,
    )


def result_request(
    task: TaskRecord, advance: AdvanceTask, waits: Sequence[WaitRecord]
) -> IngressRequest:
    """Return the message that brings a result back; it ends the first wait by identity."""
    text = advance.result_summary or f"task {task.id} ended: {advance.status.value}"
    return IngressRequest(
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


def wait_commit(
    wait_id: WaitId, task: TaskRecord, *, work_item_id: WorkItemId | None, now: datetime
) -> Commit | None:
    """Wait for a task's result; nothing when the task has ended, which would end the wait too."""
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
        source_id=task.id,
    )
    return Commit(
        commit_id=f"wait:{wait_id}:active",
        at=now,
        changes=(OpenWait(wait=wait),),
        expects=(TaskNotTerminal(task_id=task.id),),
    )


def refuse_unknown_task(task_id: TaskId) -> Refusal:
    """Refuse a task that does not exist."""
    return Refusal(
        code=RefusalCode.TASK_NOT_FOUND,
        message=f"there is no task {task_id}",
        hint="list the agent's tasks to find its id",
    )
