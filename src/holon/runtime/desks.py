"""The desks at which others ask a host for something.

Owns:  a desk of each kind for one host, made when the first one comes to it.
Rule 1: a desk that nobody comes to costs nothing: what it needs is imported with it, and a run of
        one exchange needs none of them.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from holon.runtime.services import Services
from holon.runtime.task_desk import TaskDesk
from holon.runtime.task_supervisor import TaskSupervisor

if TYPE_CHECKING:
    from holon.runtime.agent_inspection import AgentInspection
    from holon.runtime.command_desk import CommandDesk
    from holon.runtime.prompt_desk import PromptDesk
    from holon.runtime.skill_desk import SkillDesk
    from holon.runtime.timer_desk import TimerDesk
    from holon.runtime.trigger_desk import TriggerDesk
    from holon.runtime.wake_desk import WakeDesk
    from holon.runtime.work_desk import WorkDesk
    from holon.runtime.workspace_desk import WorkspaceDesk


class Desks:
    """The desks of one host."""

    def __init__(self, services: Services, tasks: TaskDesk, supervisor: TaskSupervisor) -> None:
        self._services = services
        self.tasks = tasks
        self._supervisor = supervisor

    @cached_property
    def timers(self) -> "TimerDesk":
        """Where timers are set and taken back."""
        from holon.runtime.timer_desk import TimerDesk

        return TimerDesk(self._services)

    @cached_property
    def wake(self) -> "WakeDesk":
        """Where hints to wake an agent are left."""
        from holon.runtime.wake_desk import WakeDesk

        return WakeDesk(self._services)

    @cached_property
    def triggers(self) -> "TriggerDesk":
        """Where the outside world wakes agents."""
        from holon.runtime.trigger_desk import TriggerDesk

        return TriggerDesk(self._services)

    @cached_property
    def work(self) -> "WorkDesk":
        """Where an operator steers work items."""
        from holon.runtime.work_desk import WorkDesk

        return WorkDesk(self._services)

    @cached_property
    def inspection(self) -> "AgentInspection":
        """Where agents are looked at."""
        from holon.runtime.agent_inspection import AgentInspection

        return AgentInspection(self._services)

    @cached_property
    def prompts(self) -> "PromptDesk":
        """Where one sees what an agent would be told."""
        from holon.runtime.prompt_desk import PromptDesk

        return PromptDesk(self._services)

    @cached_property
    def workspaces(self) -> "WorkspaceDesk":
        """Where it is chosen in which directories an agent works."""
        from holon.runtime.workspace_desk import WorkspaceDesk

        return WorkspaceDesk(self._services)

    @cached_property
    def skills(self) -> "SkillDesk":
        """Where skills are installed and removed."""
        from holon.runtime.skill_desk import SkillDesk

        return SkillDesk(self._services)

    @cached_property
    def commands(self) -> "CommandDesk":
        """Where an operator runs commands as an agent's tasks."""
        from holon.runtime.command_desk import CommandDesk

        return CommandDesk(self._services, self.tasks, self._supervisor)
