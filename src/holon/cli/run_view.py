"""How a run is shown while it runs.

Owns:  the two lines on a terminal, the plain lines of a pipe, and the silence of a script.
Rule 1: everything goes to stderr. stdout belongs to the answer.
Rule 2: a terminal is redrawn in place, a few times a second at most and only when something
        changed, and left as it was found: the lines are gone at the end.
Rule 3: a pipe gets one short line a step and no control characters.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol, TextIO

from holon.cli.run_activity import Activity
from holon.cli.terminal_text import fitted
from holon.model.answer import AnswerProgress
from holon.model.event import Event
from holon.model.ids import AgentId
from holon.model.tool import ToolCallRecord
from holon.ports.clock import Clock

REDRAW_MS: Final = 200
_CELLS_DEFAULT: Final = 80
_CLEAR_LINE: Final = "\r\x1b[2K"
_UP: Final = "\x1b[1A"


class RunView(Protocol):
    """Whoever watches a run."""

    def growing(self, agent_id: AgentId, progress: AnswerProgress) -> None:
        """The model has said a little more."""
        ...

    def began(self, call: ToolCallRecord) -> None:
        """A tool call begins."""
        ...

    def told(self, event: Event) -> None:
        """Something became durable."""
        ...

    async def keep_fresh(self) -> None:
        """Keep what is shown up to date, until cancelled."""
        ...

    def close(self) -> None:
        """Take away what is not there to stay."""
        ...


class NoView:
    """Nothing is shown."""

    def growing(self, agent_id: AgentId, progress: AnswerProgress) -> None:
        """Say nothing."""

    def began(self, call: ToolCallRecord) -> None:
        """Say nothing."""

    def told(self, event: Event) -> None:
        """Say nothing."""

    async def keep_fresh(self) -> None:
        """There is nothing to keep."""

    def close(self) -> None:
        """There is nothing to take away."""


class LineView(NoView):
    """One line a step, for pipes and logs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._activity = Activity()

    def began(self, call: ToolCallRecord) -> None:
        """Say what begins."""
        self._say(self._activity.began(call))

    def told(self, event: Event) -> None:
        """Say what happened, if it is worth a line."""
        step = self._activity.told(event)
        if step is not None:
            self._say(step)

    def _say(self, step: str) -> None:
        self._out.write(f"holon: {step}\n")
        self._out.flush()


class LiveView:
    """Two lines that change in place."""

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
        """Note it; the next redraw shows it."""
        self._activity.growing(progress)

    def began(self, call: ToolCallRecord) -> None:
        """Show what begins, at once."""
        self._activity.began(call)
        self.draw()

    def told(self, event: Event) -> None:
        """Note it; the next redraw shows it."""
        self._activity.told(event)

    async def keep_fresh(self) -> None:
        """Redraw while the run goes on."""
        while True:
            self.draw()
            await self._clock.sleep_until(self._clock.now() + timedelta(milliseconds=REDRAW_MS))

    def draw(self) -> None:
        """Show how things stand, if that is news."""
        cells_max = max(1, self._cells() - 1)
        lines = tuple(fitted(line, cells_max=cells_max) for line in self._lines())
        if lines == self._shown:
            return
        self._out.write(self._erased() + "\n".join(lines))
        self._out.flush()
        self._shown = lines

    def close(self) -> None:
        """Leave the terminal as it was."""
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
    """Return the view that suits where stderr goes."""
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
