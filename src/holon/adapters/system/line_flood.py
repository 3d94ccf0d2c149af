"""How many lines a flood leaves in a log.

Owns:  counting lines in windows of time, and saying how many were held back.
Rule 1: the first few of the same line are written, and so are the first of one event; what follows
        within the window is counted and told as one line when the window is over.
Rule 2: what is remembered is bounded: with no room left, lines are only counted by their event.
Rule 3: nothing is held back in silence: every count is told, at the latest when the log is closed.
"""

from typing import NamedTuple

import msgspec

from holon.model.limits import (
    JOURNAL_EVENT_COUNT_MAX,
    JOURNAL_KEYS_COUNT_MAX,
    JOURNAL_SAME_COUNT_MAX,
    JOURNAL_WINDOW_MS,
)
from holon.ports.journal import LogLevel


class HeldBack(NamedTuple):
    """Lines that were not written."""

    event: str
    message: str  # empty: several messages of the event
    level: LogLevel
    lines_count: int


class _Window(msgspec.Struct):
    since_ms: int
    level: LogLevel
    seen_count: int = 0
    held_count: int = 0


class LineFlood:
    """Decides line by line. Moments are monotonic milliseconds and never go back."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], _Window] = {}

    def admits(self, event: str, message: str, level: LogLevel, *, now_ms: int) -> bool:
        """Whether the line may be written; one that may not is counted."""
        for key, count_max in (
            ((event, message), JOURNAL_SAME_COUNT_MAX),
            ((event, ""), JOURNAL_EVENT_COUNT_MAX),
        ):
            window = self._window(key, level, now_ms)
            if window is None:
                continue
            window.seen_count += 1
            if window.seen_count > count_max:
                window.held_count += 1
                return False
        return True

    def over(self, *, now_ms: int) -> list[HeldBack]:
        """Close the windows that are over and return what they held back."""
        return self._closed(now_ms - JOURNAL_WINDOW_MS)

    def rest(self) -> list[HeldBack]:
        """Close every window and return what they held back."""
        return self._closed(None)

    def _closed(self, until_ms: int | None) -> list[HeldBack]:
        due: list[tuple[str, str]] = []
        for key, window in self._windows.items():  # in the order in which they were opened
            if until_ms is not None and window.since_ms > until_ms:
                break
            due.append(key)
        closed = [(key, self._windows.pop(key)) for key in due]
        return [
            HeldBack(event, message, window.level, window.held_count)
            for (event, message), window in closed
            if window.held_count
        ]

    def _window(self, key: tuple[str, str], level: LogLevel, now_ms: int) -> _Window | None:
        window = self._windows.get(key)
        if window is None:
            if key[1] and len(self._windows) >= JOURNAL_KEYS_COUNT_MAX:
                return None
            window = self._windows[key] = _Window(now_ms, level)
        return window
