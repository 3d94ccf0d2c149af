"""A journal that records bugs the runtime survived.

Owns:  the event names of such bugs. A bug that costs a turn or a lane does not end the host, so a
       test that checks only the rows might miss it.
Rule 1: what a task logs while its killed process is torn down (see SimLoop) is ignored.
"""

import asyncio
from typing import Final

from holon.ports.journal import About, Journal, LogLevel

OF_AN_AGENT: Final = frozenset(
    {
        "settlement_crashed",
        "agent_left_down",
        "recovery_crashed",
        "episode_ledger_crashed",
        "memory_feed_crashed",
        "tick_crashed",
        "task_crashed",
    }
)
OF_A_TURN: Final = frozenset({"turn_crashed", "tool_crashed"})


class BugNotes:
    """Hands every line on, and keeps what these events say."""

    def __init__(self, inner: Journal, events: frozenset[str]) -> None:
        self._inner = inner
        self._events = events
        self.heard: list[tuple[str, str]] = []  # the event, and what broke

    def note(
        self,
        event: str,
        message: str,
        *,
        level: LogLevel = LogLevel.INFO,
        error: BaseException | None = None,
        **about: About,
    ) -> None:
        """Hear it."""
        if event in self._events and _is_alive():
            self.heard.append((event, f"{about.get('agent_id')}: {error!r}"))
        self._inner.note(event, message, level=level, error=error, **about)


def _is_alive() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
