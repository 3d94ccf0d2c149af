"""The task tools: TaskList, TaskStatus, TaskOutput, TaskInput, TaskStop.

Owns:  the five tools, and the lookup they share. A task of another agent counts as unknown.
Rule 1: TaskList shows the agent's own tasks: those that have not ended, and those that ended
        recently, newest first. Both lists are bounded, and what exceeds the bound is counted.
Rule 2: TaskStatus reports lifecycle and coordination, never output.
Rule 3: TaskOutput reads the task's files while they exist, and otherwise the result recorded with
        its end. Secrets are redacted. A waiting read ends with the task or with its deadline.
Rule 4: input that a task cannot take is no error: the receipt says that it was not accepted, and
        why.
Rule 5: the first TaskStop asks the command to end and kills it after a grace period; a second one
        does not wait that long.
"""

from typing import Annotated, Final, TypeAlias

import anyio
import msgspec

from holon.decide.tasks.commands import is_terminal, retrieval_status_of, run_id_of
from holon.decide.text.bounded import BoundedText, transcript_of
from holon.model.limits import (
    COMMAND_INPUT_BYTES_MAX,
    ESTIMATED_TOKEN_BYTES,
    ID_CHARS_MAX,
    TASK_OUTPUT_TOKENS,
    TASK_OUTPUT_WAIT_MS_DEFAULT,
    TASK_OUTPUT_WAIT_MS_MAX,
    TASKS_ENDED_LISTED_COUNT_MAX,
    TASKS_LISTED_COUNT_MAX,
)
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import JsonValue, TaskId
from holon.ports.clock import Clock
from holon.ports.journal import Redactor
from holon.ports.tasks import Shell, StopRequest, TaskControl
from holon.projections.tasks import (
    OutputExcerpt,
    input_target_of,
    list_view,
    output_view,
    status_view,
)
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tasks.foreground import looked_at
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse

TaskIdArgument: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, description="The id from the task's handle.")
]
_PREVIEW_BYTES: Final = TASK_OUTPUT_TOKENS * ESTIMATED_TOKEN_BYTES


async def own_task(task_id: str, scene: ToolScene, ports: ToolPorts) -> TaskRecord | ToolExecution:
    """Return the agent's task with this id, or a refusal."""
    task = await ports.reads.tasks.task(TaskId(task_id))
    if task is None or task.agent_id != scene.agent_id:
        return refuse(
            "task_not_found",
            f"there is no task {task_id[:ID_CHARS_MAX]}",
            hint="TaskList shows the tasks that run",
            field="task_id",
        )
    return task


class TaskInputArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task, and what to write."""

    task_id: TaskIdArgument
    input: Annotated[
        str,
        msgspec.Meta(min_length=1, description="The text, with a newline where Enter is meant."),
    ]


class TaskInput:
    """The tool."""

    only_plans: Final = False

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="TaskInput",
            description=guidance_for("task_input"),
            input_schema=schema_of(TaskInputArguments),
            mutates=True,
        )

    @leniently(("id", "task_id"), ("text", "input"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Write to the command."""
        request = decode_arguments(arguments, TaskInputArguments)
        if isinstance(request, ToolExecution):
            return request
        data = request.input.encode()
        if len(data) > COMMAND_INPUT_BYTES_MAX:
            return refuse(
                "invalid_tool_input",
                f"the input is longer than {COMMAND_INPUT_BYTES_MAX} bytes",
                hint="send it in parts, or put it into a file the command reads",
                field="input",
            )
        task = await own_task(request.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        written, summary = await feed_task(task, data, ports.tasks)
        return _receipt(task, written, summary)


async def feed_task(task: TaskRecord, data: bytes, tasks: TaskControl) -> tuple[int, str]:
    """Write to a task's command; return the number of bytes written, and a summary."""
    target = input_target_of(task)
    if is_terminal(task.status):
        return 0, "the task has ended"
    if target is None:
        return 0, "the task was started without accepts_input"
    command = tasks.command(task.id)
    if command is None:
        return 0, "no command is running for this task"
    written = await command.feed(data)
    return written, f"{written} bytes went to its {target}" if written else "it takes no more input"


def _receipt(task: TaskRecord, written: int, summary: str) -> ToolExecution:
    result: dict[str, JsonValue] = {
        "task": status_view(task),
        "accepted_input": written > 0,
        "input_target": input_target_of(task),
        "bytes_written": written,
        "summary_text": summary,
    }
    return ToolExecution(outcome=ToolOk(result=result))


class TaskListArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No arguments."""


class TaskList:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="TaskList",
            description=guidance_for("task_list"),
            input_schema=schema_of(TaskListArguments),
        )

    @leniently()
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """List the tasks."""
        request = decode_arguments(arguments, TaskListArguments)
        if isinstance(request, ToolExecution):
            return request
        tasks = [t for t in await ports.reads.tasks.open_tasks() if t.agent_id == scene.agent_id]
        ended = await ports.reads.tasks.ended_tasks(
            scene.agent_id, limit=TASKS_ENDED_LISTED_COUNT_MAX
        )
        result = list_view(tasks[:TASKS_LISTED_COUNT_MAX], ended, task_count=len(tasks))
        return ToolExecution(outcome=ToolOk(result=result))


class TaskOutputArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task, and whether to wait for its end."""

    task_id: TaskIdArgument
    block: Annotated[bool, msgspec.Meta(description="Wait for the task's end before looking.")] = (
        False
    )
    timeout_ms: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        msgspec.Meta(description="With block: how many milliseconds at most; default 30000."),
    ] = None

    @property
    def wait_ms(self) -> int:
        """The time to wait for the task's end."""
        wait_ms = TASK_OUTPUT_WAIT_MS_DEFAULT if self.timeout_ms is None else self.timeout_ms
        return min(wait_ms, TASK_OUTPUT_WAIT_MS_MAX)


class TaskOutput:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="TaskOutput",
            description=guidance_for("task_output"),
            input_schema=schema_of(TaskOutputArguments),
        )

    @leniently(("id", "task_id"), ("wait", "block"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Return the output, waiting for the task's end if asked to."""
        request = decode_arguments(arguments, TaskOutputArguments)
        if isinstance(request, ToolExecution):
            return request
        task = await own_task(request.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        if request.block and not is_terminal(task.status):
            await _wait(task, request.wait_ms, ports)
            task = await ports.reads.tasks.task(task.id) or task
        look = await read_output(task, ports.redactor, tasks=ports.tasks, shell=ports.shell)
        status = retrieval_status_of(task, waited=request.block)
        return ToolExecution(outcome=ToolOk(result=output_view(task, status, look)))


async def _wait(task: TaskRecord, wait_ms: int, ports: ToolPorts) -> None:
    async with anyio.create_task_group() as race:
        race.start_soon(_cancel_at, ports.clock, wait_ms, race.cancel_scope)
        await ports.tasks.wait_ended(task.id)
        race.cancel_scope.cancel()


async def _cancel_at(clock: Clock, ms: int, race: anyio.CancelScope) -> None:
    await clock.sleep_for(ms)
    race.cancel()


async def read_output(
    task: TaskRecord, redactor: Redactor, *, tasks: TaskControl, shell: Shell
) -> OutputExcerpt:
    """Return a bounded excerpt of a task's output so far, or of its recorded result."""
    command = tasks.command(task.id)
    run_id = run_id_of(task)
    if command is None and run_id is not None:
        command = await shell.attach(run_id)
    if command is None:
        return OutputExcerpt(shown=BoundedText(text=redactor.redact(task.result_summary or "")))
    spans = looked_at(command, redactor, bytes_max=_PREVIEW_BYTES)
    shown = transcript_of(spans, bytes_max=_PREVIEW_BYTES)
    return OutputExcerpt(shown=shown, combined_path=command.combined_path)


class TaskStatusArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task."""

    task_id: TaskIdArgument


class TaskStatusTool:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="TaskStatus",
            description=guidance_for("task_status"),
            input_schema=schema_of(TaskStatusArguments),
        )

    @leniently(("id", "task_id"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Return the task's status."""
        request = decode_arguments(arguments, TaskStatusArguments)
        if isinstance(request, ToolExecution):
            return request
        task = await own_task(request.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        return ToolExecution(outcome=ToolOk(result={"task": status_view(task)}))


class TaskStopArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task."""

    task_id: TaskIdArgument


class TaskStop:
    """The tool."""

    only_plans: Final = False

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="TaskStop",
            description=guidance_for("task_stop"),
            input_schema=schema_of(TaskStopArguments),
            mutates=True,
        )

    @leniently(("id", "task_id"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Request the task's end."""
        request = decode_arguments(arguments, TaskStopArguments)
        if isinstance(request, ToolExecution):
            return request
        task = await own_task(request.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        stop_request = StopRequest(stop_requested=False)
        if not is_terminal(task.status):
            stop_request = await ports.tasks.stop(task.id)
            task = await ports.reads.tasks.task(task.id) or task
        return ToolExecution(
            outcome=ToolOk(
                result={
                    "task": status_view(task),
                    "stop_requested": stop_request.stop_requested,
                    "force_stop_requested": stop_request.force_stop_requested,
                }
            )
        )
