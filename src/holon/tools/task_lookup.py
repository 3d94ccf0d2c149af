"""A task by the id a model gives.

Owns:  the lookup the task tools share. A task of another agent does not exist here.
"""

from typing import Annotated, TypeAlias

import msgspec

from holon.model.ids import TaskId
from holon.model.limits import ID_CHARS_MAX
from holon.model.task import TaskRecord
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse

TaskIdArgument: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, description="The id from the task's handle.")
]


async def own_task(task_id: str, scene: ToolScene, ports: ToolPorts) -> TaskRecord | ToolExecution:
    """Return the agent's task of this id, or the refusal that says there is none."""
    task = await ports.reads.task(TaskId(task_id))
    if task is None or task.agent_id != scene.agent_id:
        return refuse(
            "task_not_found",
            f"there is no task {task_id[:ID_CHARS_MAX]}",
            hint="TaskList shows the tasks that run",
            field="task_id",
        )
    return task
