"""TaskOutput: what a task has written, now or once it has ended.

Owns:  the TaskOutput tool.
Rule 1: the task's files are shown where they can be read; where they are gone, the result that was
        recorded with its end is.
Rule 2: what is shown is freed of secrets.
Rule 3: a look that waits ends with the task or with its time, whichever comes first.
"""

from typing import Annotated, Final

import anyio
import msgspec

from holon.decide.bounded_text import BoundedText, transcript_of
from holon.decide.command_promotion import run_id_of
from holon.decide.task_lifecycle import is_terminal
from holon.decide.task_output import retrieval_status_of
from holon.model.json_value import JsonValue
from holon.model.limits import (
    ESTIMATED_TOKEN_BYTES,
    TASK_OUTPUT_TOKENS,
    TASK_OUTPUT_WAIT_MS_DEFAULT,
    TASK_OUTPUT_WAIT_MS_MAX,
)
from holon.model.task import TaskRecord
from holon.model.tool import ToolOk, ToolSpec
from holon.ports.clock import Clock
from holon.ports.redactor import Redactor
from holon.ports.shell import Shell
from holon.ports.task_control import TaskControl
from holon.projections.task_view import OutputLook, output_view
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.command_output import looked_at
from holon.tools.guidance_texts import guidance_for
from holon.tools.task_lookup import TaskIdArgument, own_task
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene

_PREVIEW_BYTES: Final = TASK_OUTPUT_TOKENS * ESTIMATED_TOKEN_BYTES


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
    def patience_ms(self) -> int:
        """How long the look may take."""
        asked = TASK_OUTPUT_WAIT_MS_DEFAULT if self.timeout_ms is None else self.timeout_ms
        return min(asked, TASK_OUTPUT_WAIT_MS_MAX)


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
        """Look at the output."""
        asked = decode_arguments(arguments, TaskOutputArguments)
        if isinstance(asked, ToolExecution):
            return asked
        task = await own_task(asked.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        if asked.block and not is_terminal(task.status):
            await _wait(task, asked.patience_ms, ports)
            task = await ports.reads.task(task.id) or task
        look = await look_at_output(task, ports.redactor, tasks=ports.tasks, shell=ports.shell)
        status = retrieval_status_of(task, waited=asked.block)
        return ToolExecution(outcome=ToolOk(result=output_view(task, status, look)))


async def _wait(task: TaskRecord, patience_ms: int, ports: ToolPorts) -> None:
    async with anyio.create_task_group() as race:
        race.start_soon(_give_up, ports.clock, patience_ms, race.cancel_scope)
        await ports.tasks.wait_ended(task.id)
        race.cancel_scope.cancel()


async def _give_up(clock: Clock, ms: int, race: anyio.CancelScope) -> None:
    await clock.sleep_for(ms)
    race.cancel()


async def look_at_output(
    task: TaskRecord, redactor: Redactor, *, tasks: TaskControl, shell: Shell
) -> OutputLook:
    """Return a bounded look at what a task has written so far, or at its recorded result."""
    command = tasks.command(task.id)
    run_id = run_id_of(task)
    if command is None and run_id is not None:
        command = await shell.attach(run_id)
    if command is None:
        return OutputLook(shown=BoundedText(text=redactor.redact(task.result_summary or "")))
    spans = looked_at(command, redactor, bytes_max=_PREVIEW_BYTES)
    shown = transcript_of(spans, bytes_max=_PREVIEW_BYTES)
    return OutputLook(shown=shown, combined_path=command.combined_path)
