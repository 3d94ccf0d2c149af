"""TaskList: what runs in the background.

Owns:  the TaskList tool. It shows the agent's own tasks: those that have not ended, and those that
       ended of late, newest first.
Rule 1: both lists are bounded, and what runs beyond the bound is counted.
"""

from typing import Final

import msgspec

from holon.model.json_value import JsonValue
from holon.model.limits import TASKS_ENDED_LISTED_COUNT_MAX, TASKS_LISTED_COUNT_MAX
from holon.model.tool import ToolOk, ToolSpec
from holon.projections.task_view import list_view
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene


class TaskListArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing needs to be said."""


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
        asked = decode_arguments(arguments, TaskListArguments)
        if isinstance(asked, ToolExecution):
            return asked
        tasks = [t for t in await ports.reads.open_tasks() if t.agent_id == scene.agent_id]
        ended = await ports.reads.ended_tasks(scene.agent_id, limit=TASKS_ENDED_LISTED_COUNT_MAX)
        result = list_view(tasks[:TASKS_LISTED_COUNT_MAX], ended, task_count=len(tasks))
        return ToolExecution(outcome=ToolOk(result=result))
