"""TaskStop: end a task.

Owns:  the TaskStop tool. The first stop asks the command to end and ends it for certain after a
       grace; a second one does not wait that long.
"""

from typing import Final

import msgspec

from holon.decide.task_lifecycle import is_terminal
from holon.model.json_value import JsonValue
from holon.model.tool import ToolOk, ToolSpec
from holon.ports.task_control import StopRequest
from holon.projections.task_view import status_view
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.task_lookup import TaskIdArgument, own_task
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene


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
        """Have the task ended."""
        asked = decode_arguments(arguments, TaskStopArguments)
        if isinstance(asked, ToolExecution):
            return asked
        task = await own_task(asked.task_id, scene, ports)
        if isinstance(task, ToolExecution):
            return task
        request = StopRequest(stop_requested=False)
        if not is_terminal(task.status):
            request = await ports.tasks.stop(task.id)
            task = await ports.reads.task(task.id) or task
        return ToolExecution(
            outcome=ToolOk(
                result={
                    "task": status_view(task),
                    "stop_requested": request.stop_requested,
                    "force_stop_requested": request.force_stop_requested,
                }
            )
        )
