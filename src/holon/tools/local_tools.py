"""The tools of a host that can run commands.

Owns:  their order in the catalog.
"""

from holon.tools.exec_command import ExecCommand
from holon.tools.exec_command_batch import ExecCommandBatch
from holon.tools.task_input import TaskInput
from holon.tools.task_list import TaskList
from holon.tools.task_output import TaskOutput
from holon.tools.task_status import TaskStatusTool
from holon.tools.task_stop import TaskStop
from holon.tools.tool import Tool


def local_tools() -> tuple[Tool, ...]:
    """Return the command and task tools."""
    return (
        ExecCommand(),
        ExecCommandBatch(),
        TaskList(),
        TaskStatusTool(),
        TaskOutput(),
        TaskInput(),
        TaskStop(),
    )
