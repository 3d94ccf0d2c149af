"""TaskInput: more input for a command that runs in the background.

Owns:  the TaskInput tool.
Rule 1: a task that cannot take the input is no error: the receipt says that it was not accepted,
        and why.
"""

from typing import Annotated, Final

import msgspec

from holon.decide.task_lifecycle import is_terminal
from holon.model.command_limits import COMMAND_INPUT_BYTES_MAX
from holon.model.json_value import JsonValue
from holon.model.task import TaskRecord
from holon.model.tool import ToolOk, ToolSpec
from holon.ports.task_control import TaskControl
from holon.projections.task_view import input_target_of, status_view
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.task_lookup import TaskIdArgument, own_task
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse


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
        asked = decode_arguments(arguments, TaskInputArguments)
        if isinstance(asked, ToolExecution):
            return asked
        data = asked.input.encode()
        if len(data) > COMMAND_INPUT_BYTES_MAX:
            return refuse(
                "invalid_tool_input",
                f"the input is longer than {COMMAND_INPUT_BYTES_MAX} bytes",
                hint="send it in parts, or put it into a file the command reads",
                field="input",
            )
        task = await own_task(asked.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        written, said = await feed_task(task, data, ports.tasks)
        return _receipt(task, written, said)


async def feed_task(task: TaskRecord, data: bytes, tasks: TaskControl) -> tuple[int, str]:
    """Write to a task's command; return how many bytes it took, and a sentence about it."""
    target = input_target_of(task)
    if is_terminal(task.status):
        return 0, "the task has ended"
    if target is None:
        return 0, "the task was started without accepts_input"
    command = tasks.command(task.id)
    if command is None:
        return 0, "nothing runs for this task any more"
    written = await command.feed(data)
    return written, f"{written} bytes went to its {target}" if written else "it takes no more input"


def _receipt(task: TaskRecord, written: int, summary: str) -> ToolExecution:
    told: dict[str, JsonValue] = {
        "task": status_view(task),
        "accepted_input": written > 0,
        "input_target": input_target_of(task),
        "bytes_written": written,
        "summary_text": summary,
    }
    return ToolExecution(outcome=ToolOk(result=told))
