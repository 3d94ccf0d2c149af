"""Commands that run in the background, as tools may steer them.

Contract (kept by runtime/task_supervisor):
- `offer` hands over a running command together with the record a commit is about to create. Once
  that record is durable the command is supervised to its end; when it never becomes durable, the
  command is ended;
- `running` is exact: what it lists has a live owner in this process;
- `stop` asks politely the first time and insists the second time; the record says `cancelling`
  before anyone hears that the stop was asked for.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.ids import AgentId, TaskId, TurnId
from holon.model.record import Record
from holon.model.task import TaskRecord
from holon.ports.shell import RunningCommand


class StopRequest(Record, frozen=True, kw_only=True):
    """What a stop set in motion."""

    stop_requested: bool
    force_stop_requested: bool = False


class TaskControl(Protocol):
    """The background commands of one host."""

    def offer(
        self, task: TaskRecord, command: RunningCommand, *, turn_id: TurnId, effect_id: str
    ) -> None:
        """Hand over a command; `effect_id` names the call whose result creates the record."""
        ...

    def running(self, agent_id: AgentId) -> Sequence[TaskRecord]:
        """The agent's command tasks that run right now, oldest first."""
        ...

    def running_count(self) -> int:
        """How many command tasks of all agents run right now."""
        ...

    def command(self, task_id: TaskId) -> RunningCommand | None:
        """The command of a running task."""
        ...

    async def wait_ended(self, task_id: TaskId) -> None:
        """Return once the task's end is durable; at once for a task that does not run here."""
        ...

    async def stop(self, task_id: TaskId) -> StopRequest:
        """End a task: politely the first time, for certain the second time."""
        ...
