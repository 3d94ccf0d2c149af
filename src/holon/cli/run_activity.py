"""What an agent is doing now, in a few words.

Owns:  the reading of events, calls and growing answers as a person would tell them.
Rule 1: nothing is shown here; a view asks for the words. All of them are fit for a terminal.
Rule 2: a step is told once: the beginning of a call, the beginning and end of a background task.
        How the run ended is not a step; the end of the run says it.
Rule 3: what an event says is its presentation (projections/operator_event); worded here are only
        calls and growing answers, and the command a task was made of, which no event has.
"""

from typing import Final

from holon.cli.terminal_text import fitted, one_line
from holon.decide.task_lifecycle import is_terminal
from holon.model.answer import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.model.event import (
    Event,
    MessageProcessingStarted,
    ProviderRoundCompleted,
    TaskCreated,
    TaskStatusUpdated,
    ToolExecuted,
    ToolExecutionFailed,
    TurnEnded,
)
from holon.model.ids import TaskId
from holon.model.json_value import JsonValue
from holon.model.tool import ToolCallRecord
from holon.projections.operator_event import present

THINKING: Final = "thinking"
_COMMAND_CELLS_MAX: Final = 160

_SAID: Final = {
    "ApplyPatch": "changing files",
    "Sleep": "going to rest",
    "TaskOutput": "reading a task's output",
}


class Activity:
    """A run, as far as it has come."""

    def __init__(self) -> None:
        self.doing = THINKING
        self.rounds_count = 0
        self.tokens_count = 0
        self._last_command = "a task"
        self._tasks: dict[TaskId, str] = {}

    def growing(self, progress: AnswerProgress) -> None:
        """The model has said a little more."""
        match progress:
            case TextGrew():
                self.doing = "answering"
            case ThinkingGrew():
                self.doing = THINKING
            case CallGrew(name=name):
                self.doing = f"preparing {one_line(name)}"

    def began(self, call: ToolCallRecord) -> str:
        """Return the step a call begins."""
        self.doing = _step_of(call)
        if call.name == "ExecCommand":
            self._last_command = _command_in(call.input)
        return self.doing

    def told(self, event: Event) -> str | None:
        """Return the step an event tells of, if it is one."""
        match event:
            case ProviderRoundCompleted(token_usage=usage):
                self.rounds_count += 1
                self.tokens_count += usage.total_tokens
            case MessageProcessingStarted() | ToolExecuted() | ToolExecutionFailed():
                self.doing = THINKING
            case TurnEnded():
                self.doing = self._resting()
            case TaskCreated(task_id=task_id):
                self._tasks[task_id] = self._last_command
                return f"{present(event).summary}: {self._last_command}"
            case TaskStatusUpdated(task_id=task_id, status=status) if is_terminal(status):
                command, said = self._tasks.pop(task_id, None), present(event).summary
                return said if command is None else f"{said}: {command}"
            case _:
                pass
        return None

    def _resting(self) -> str:
        if not self._tasks:
            return "finishing"
        if len(self._tasks) > 1:
            return f"waiting for {len(self._tasks)} tasks"
        return f"waiting for {next(iter(self._tasks.values()))}"


def _step_of(call: ToolCallRecord) -> str:
    if call.name == "ExecCommand":
        return f"running {_command_in(call.input)}"
    if call.name == "ExecCommandBatch":
        items = call.input.get("items") if isinstance(call.input, dict) else None
        return f"running {len(items) if isinstance(items, list) else 'several'} commands"
    return _SAID.get(call.name, f"using {one_line(call.name)}")


def _command_in(arguments: JsonValue) -> str:
    told = arguments if isinstance(arguments, dict) else {}
    command = told.get("cmd") or told.get("command")
    shown = one_line(command) if isinstance(command, str) else ""
    return f"`{fitted(shown, cells_max=_COMMAND_CELLS_MAX)}`" if shown else "a command"
