"""TaskStatus: where a task stands.

Owns:  the TaskStatus tool. It tells of lifecycle and coordination, never of output.
"""

from typing import Final

import msgspec

from holon.model.json_value import JsonValue
from holon.model.tool import ToolOk, ToolSpec
from holon.projections.task_view import status_view
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.task_lookup import TaskIdArgument, own_task
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene


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
        """Look at the task."""
        asked = decode_arguments(arguments, TaskStatusArguments)
        if isinstance(asked, ToolExecution):
            return asked
        task = await own_task(asked.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        return ToolExecution(outcome=ToolOk(result={"task": status_view(task)}))
