"""Progress output of a run.

Owns:  the text for an agent's current activity; the live lines on a terminal, the plain lines in a
       pipe, and no output for scripts.
Rule 1: all output goes to stderr. stdout is reserved for the answer.
Rule 2: a terminal is redrawn in place, at a bounded rate and only on a change, and cleared at the
        end.
Rule 3: a pipe gets one short line per step, without control characters.
Rule 4: a step is shown once: the start of a call, the start and end of a background task. The
        outcome of the run is not a step.
Rule 5: the text of an event is its presentation (projections/events/presented). Only calls, growing
        answers and the command of a task, which no event contains, are worded here.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol, TextIO

from holon.cli.console.terminal_text import fitted, one_line
from holon.decide.tasks.commands import is_terminal
from holon.model.events.event import (
    Event,
    MessageProcessingStarted,
    ProviderRoundCompleted,
    TaskCreated,
    TaskStatusUpdated,
    ToolExecuted,
    ToolExecutionFailed,
    TurnEnded,
)
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.turn import AnswerProgress, CallGrew, TextGrew, ThinkingGrew
from holon.model.values import AgentId, JsonValue, TaskId
from holon.ports.clock import Clock
from holon.projections.events.presented import present

THINKING: Final = "thinking"
_COMMAND_CELLS_MAX: Final = 160

_SAID: Final = {
    "ApplyPatch": "changing files",
    "Sleep": "going to rest",
    "TaskOutput": "reading a task's output",
}
REDRAW_MS: Final = 200
_CELLS_DEFAULT: Final = 80
_CLEAR_LINE: Final = "\r\x1b[2K"
_UP: Final = "\x1b[1A"


class RunView(Protocol):
    """Shows the progress of a run."""

    def growing(self, agent_id: AgentId, progress: AnswerProgress) -> None:
        """Update the growing answer."""
        ...

    def began(self, call: ToolCallRecord) -> None:
        """Show the start of a tool call."""
        ...

    def told(self, event: Event) -> None:
        """Show a durable event."""
        ...

    async def keep_fresh(self) -> None:
        """Redraw until cancelled."""
        ...

    def close(self) -> None:
        """Remove temporary output."""
        ...


class NoView:
    """Shows nothing."""

    def growing(self, agent_id: AgentId, progress: AnswerProgress) -> None:
        """Ignore it."""

    def began(self, call: ToolCallRecord) -> None:
        """Ignore it."""

    def told(self, event: Event) -> None:
        """Ignore it."""

    async def keep_fresh(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class LineView(NoView):
    """Prints one line per step, for pipes and logs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._activity = Activity()

    def began(self, call: ToolCallRecord) -> None:
        """Print the step of a call."""
        self._say(self._activity.began(call))

    def told(self, event: Event) -> None:
        """Print the step of an event, if it is one."""
        step = self._activity.told(event)
        if step is not None:
            self._say(step)

    def _say(self, step: str) -> None:
        self._out.write(f"holon: {step}\n")
        self._out.flush()


class LiveView:
    """Redraws two lines in place."""

    def __init__(
        self, out: TextIO, clock: Clock, *, cells: Callable[[], int] | None = None
    ) -> None:
        self._out = out
        self._clock = clock
        self._cells = cells or (lambda: _cells_of(out))
        self._activity = Activity()
        self._began_ns = clock.monotonic_ns()
        self._shown: tuple[str, ...] = ()

    def growing(self, agent_id: AgentId, progress: AnswerProgress) -> None:
        """Store it for the next redraw."""
        self._activity.growing(progress)

    def began(self, call: ToolCallRecord) -> None:
        """Show the step of a call at once."""
        self._activity.began(call)
        self.draw()

    def told(self, event: Event) -> None:
        """Store it for the next redraw."""
        self._activity.told(event)

    async def keep_fresh(self) -> None:
        """Redraw periodically until cancelled."""
        while True:
            self.draw()
            await self._clock.sleep_until(self._clock.now() + timedelta(milliseconds=REDRAW_MS))

    def draw(self) -> None:
        """Redraw if something changed."""
        cells_max = max(1, self._cells() - 1)
        lines = tuple(fitted(line, cells_max=cells_max) for line in self._lines())
        if lines == self._shown:
            return
        self._out.write(self._erased() + "\n".join(lines))
        self._out.flush()
        self._shown = lines

    def close(self) -> None:
        """Clear the lines."""
        self._out.write(self._erased())
        self._out.flush()
        self._shown = ()

    def _erased(self) -> str:
        if not self._shown:
            return ""
        return _CLEAR_LINE + (_UP + _CLEAR_LINE) * (len(self._shown) - 1)

    def _lines(self) -> tuple[str, str]:
        activity = self._activity
        seconds = (self._clock.monotonic_ns() - self._began_ns) // 1_000_000_000
        rounds = "round" if activity.rounds_count == 1 else "rounds"
        tokens = _short(activity.tokens_count)
        return (
            f"● {activity.doing}",
            f"  {_elapsed(seconds)} · {activity.rounds_count} {rounds} · {tokens} tokens",
        )


def view_for(out: TextIO, clock: Clock, *, terminal_kind: str | None) -> RunView:
    """Return the view for the kind of stderr."""
    if out.isatty() and terminal_kind not in (None, "", "dumb"):
        return LiveView(out, clock)
    return LineView(out)


def _cells_of(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or _CELLS_DEFAULT
    except (OSError, ValueError):
        return _CELLS_DEFAULT


def _elapsed(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    if minutes >= 60:
        return f"{minutes // 60}h {minutes % 60:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def _short(count: int) -> str:
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


class Activity:
    """The current activity of a run."""

    def __init__(self) -> None:
        self.doing = THINKING
        self.rounds_count = 0
        self.tokens_count = 0
        self._last_command = "a task"
        self._tasks: dict[TaskId, str] = {}

    def growing(self, progress: AnswerProgress) -> None:
        """Update the growing answer."""
        match progress:
            case TextGrew():
                self.doing = "answering"
            case ThinkingGrew():
                self.doing = THINKING
            case CallGrew(name=name):
                self.doing = f"preparing {one_line(name)}"

    def began(self, call: ToolCallRecord) -> str:
        """Return the step of a starting call."""
        self.doing = _step_of(call)
        if call.name == "ExecCommand":
            self._last_command = _command_in(call.input)
        return self.doing

    def told(self, event: Event) -> str | None:
        """Return the step of an event, or None."""
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
