"""Task routes: list, show, start, input, stop.

Owns:  the routes of background tasks.
Rule 1: a command started by the operator becomes the agent's task: its result reaches the agent
        through the queue, like that of any task.
Rule 2: input to a task that takes none or has ended is not an error; the response says so.
"""

from typing import Final

import msgspec

from holon.decide.tasks.commands import retrieval_status_of
from holon.http.context import HttpContext, named_agent, own_task, shown_agent
from holon.http.query import AfterQuery, after_id, next_after
from holon.http.request_headers import REPEATABLE, idempotency_key
from holon.http.route import Access, Call, Route
from holon.model.tasks import TaskRecord
from holon.model.values import TaskId
from holon.projections.agents.state import task_slim_view
from holon.projections.tasks import input_target_of, output_view, status_view
from holon.runtime.tasks.commands import CommandRequest
from holon.wire.requests import TaskInputRequest, TaskRequest
from holon.wire.responses import (
    TaskAnswer,
    TaskInputAnswer,
    TaskOutputAnswer,
    TaskPage,
    TaskStatusView,
    TaskStopAnswer,
)


async def list_tasks(context: HttpContext, call: Call) -> TaskPage:
    """Page through an agent's tasks."""
    agent_id, query = await shown_agent(context, call), call.query_as(AfterQuery)
    after = after_id(query, TaskId, what="task id")
    tasks = await context.host.reads.tasks.tasks_page(agent_id, after=after, limit=query.limit)
    return TaskPage(
        tasks=tuple(task_slim_view(each) for each in tasks),
        limit=query.limit,
        next_after=next_after(query, [each.id for each in tasks]),
    )


async def show(context: HttpContext, call: Call) -> TaskStatusView:
    """Show where one task stands."""
    await shown_agent(context, call)
    return _status(context, await own_task(context, call))


def _status(context: HttpContext, task: TaskRecord) -> TaskStatusView:
    return msgspec.convert(context.host.shown_view(status_view(task)), TaskStatusView)


async def output(context: HttpContext, call: Call) -> TaskOutputAnswer:
    """Look at what a task has written."""
    await shown_agent(context, call)
    task = await own_task(context, call)
    look = await context.host.commands.output(task)
    status = retrieval_status_of(task, waited=False)
    return msgspec.convert(output_view(task, status, look), TaskOutputAnswer)


async def create(context: HttpContext, call: Call) -> TaskAnswer:
    """Run a command in the background, for an agent."""
    request = call.body_as(TaskRequest)
    order = CommandRequest(
        cmd=request.cmd,
        summary=request.summary,
        workdir=request.workdir,
        shell=request.shell,
        login=request.login,
        tty=request.tty,
        accepts_input=request.tty if request.accepts_input is None else request.accepts_input,
        yield_time_ms=request.yield_time_ms,
        max_output_tokens=request.max_output_tokens,
    )
    task = await context.host.commands.start(named_agent(call), order, key=idempotency_key(call))
    return TaskAnswer(ok=True, task=task_slim_view(task))


async def feed(context: HttpContext, call: Call) -> TaskInputAnswer:
    """Send input to a task."""
    task = await own_task(context, call)
    receipt = await context.host.commands.feed(task, call.body_as(TaskInputRequest).input)
    return TaskInputAnswer(
        ok=True,
        task_id=task.id,
        task=_status(context, task),
        accepted_input=receipt.bytes_written > 0,
        input_target=input_target_of(task),
        bytes_written=receipt.bytes_written,
        summary_text=receipt.summary_text,
    )


async def stop(context: HttpContext, call: Call) -> TaskStopAnswer:
    """End a task."""
    task = await own_task(context, call)
    stopping = await context.host.commands.stop(task.id)
    return TaskStopAnswer(
        ok=True,
        task_id=task.id,
        stop_requested=stopping.stop_requested,
        force_stop_requested=stopping.force_stop_requested,
    )


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/tasks",
        access=Access.READ,
        summary="The tasks of an agent: open ones first, most recently changed first.",
        answer=list_tasks,
        query=AfterQuery,
        returns=TaskPage,
        refusals=(404,),
        tags=("tasks",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/tasks/{task_id}",
        access=Access.READ,
        summary="Show a task.",
        answer=show,
        returns=TaskStatusView,
        refusals=(404,),
        tags=("tasks",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/tasks/{task_id}/output",
        access=Access.READ,
        summary="The output of a task so far, bounded.",
        answer=output,
        returns=TaskOutputAnswer,
        refusals=(404,),
        tags=("tasks",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/tasks",
        access=Access.CONTROL,
        summary="Run a command in the background; the agent gets the result. Idempotent under an"
        " Idempotency-Key.",
        answer=create,
        headers=REPEATABLE,
        takes=TaskRequest,
        returns=TaskAnswer,
        refusals=(404, 409, 429),
        tags=("tasks",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/tasks/{task_id}/input",
        access=Access.CONTROL,
        summary="Send input to a task.",
        answer=feed,
        takes=TaskInputRequest,
        returns=TaskInputAnswer,
        refusals=(404,),
        tags=("tasks",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/tasks/{task_id}/stop",
        access=Access.CONTROL,
        summary="Stop a task; a second stop kills it.",
        answer=stop,
        returns=TaskStopAnswer,
        refusals=(404,),
        tags=("tasks",),
    ),
)
