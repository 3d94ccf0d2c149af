"""Tool registry: the tools that exist, in catalog order.

Owns:  the catalog, its order (part of the prompt, so it never changes), and its policy view.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from holon.decide.turns.step import ToolPolicy
from holon.model.turns.tools import ToolSpec
from holon.prompt.facts import OfferedTools, offered_tools
from holon.tools.agents import AgentGet
from holon.tools.memory import MemoryGet, MemorySearch
from holon.tools.queue import Enqueue
from holon.tools.tasks.exec_command import ExecCommand, ExecCommandBatch
from holon.tools.tasks.task_tools import TaskInput, TaskList, TaskOutput, TaskStatusTool, TaskStop
from holon.tools.tool import Tool
from holon.tools.wake import Sleep
from holon.tools.work.change import CompleteWorkItem, CreateWorkItem, PickWorkItem, UpdateWorkItem
from holon.tools.work.read import GetWorkItem, ListWorkItems
from holon.tools.workspaces.apply_patch import ApplyPatch


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


class ToolRegistry:
    """A fixed catalog of tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools: Final[Mapping[str, Tool]] = {tool.spec.name: tool for tool in tools}

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The catalog as offered to a model."""
        return tuple(tool.spec for tool in self._tools.values())

    @cached_property
    def offered(self) -> OfferedTools:
        """The catalog with its size and digest."""
        return offered_tools(self.specs)

    @cached_property
    def policy(self) -> ToolPolicy:
        """The names a turn checks calls against."""
        names = frozenset(self._tools)
        mutating = frozenset(name for name, tool in self._tools.items() if tool.spec.mutates)
        return ToolPolicy(exposed=names, known=names, mutating=mutating)

    @cached_property
    def acting(self) -> frozenset[str]:
        """The tools with an effect outside the database: commands, patches, task control."""
        return frozenset(name for name, tool in self._tools.items() if not tool.only_plans)

    def named(self, name: str) -> Tool:
        """Return a tool by name; unknown names were refused earlier."""
        return self._tools[name]


def builtin_tools() -> ToolRegistry:
    """Return the tools of every agent: rest, follow-ups, its own state, work items, memory."""
    return ToolRegistry(_own_tools())


def local_registry() -> ToolRegistry:
    """Return the tools of an agent on a host that runs commands and changes files."""
    return ToolRegistry((*local_tools(), ApplyPatch(), *_own_tools()))


def _own_tools() -> tuple[Tool, ...]:
    return (
        Sleep(),
        Enqueue(),
        AgentGet(),
        CreateWorkItem(),
        PickWorkItem(),
        GetWorkItem(),
        ListWorkItems(),
        UpdateWorkItem(),
        CompleteWorkItem(),
        MemorySearch(),
        MemoryGet(),
    )
