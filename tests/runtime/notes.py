"""A journal a test can read."""

from dataclasses import dataclass
from typing import NamedTuple

from holon.ports.journal import About, LogLevel


class Note(NamedTuple):
    """One line."""

    event: str
    message: str
    level: LogLevel
    error: BaseException | None
    about: dict[str, About]


@dataclass
class Notes:
    """Keeps every line."""

    def __post_init__(self) -> None:
        self.lines: list[Note] = []

    def note(
        self,
        event: str,
        message: str,
        *,
        level: LogLevel = LogLevel.INFO,
        error: BaseException | None = None,
        **about: About,
    ) -> None:
        """Keep it."""
        self.lines.append(Note(event, message, level, error, about))

    def of(self, event: str) -> list[Note]:
        """The lines of one event."""
        return [line for line in self.lines if line.event == event]
