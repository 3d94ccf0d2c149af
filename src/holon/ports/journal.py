"""The service log, and redaction of secrets in it.

Contract of Journal (kept by tests/contract/test_journal.py, run against every implementation):
- `note` never raises and never blocks: a log that cannot be written must not stop the runtime;
- an event has a short stable name; the message is one sentence for a person;
- a written line holds no secret the host knows, in an error's traceback neither.

The journal is not the audit log: events of agents are rows and have readers of their own.

Contract of Redactor: `redact` replaces every known secret in a text, in its usual forms (raw,
URL-encoded, base64, hexadecimal, JSON-escaped), by a mark that names the secret and not its value;
a text without a secret comes back unchanged. Half a secret is not found: redact, then cut.
"""

from enum import StrEnum
from typing import Protocol, TypeAlias

About: TypeAlias = str | int | None  # an id, a count; nothing: it does not apply


class LogLevel(StrEnum):
    """How much a line matters; a journal leaves out what is below its own level."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Journal(Protocol):
    """Something that keeps notes."""

    def note(
        self,
        event: str,
        message: str,
        *,
        level: LogLevel = LogLevel.INFO,
        error: BaseException | None = None,
        **about: About,
    ) -> None:
        """Write one line; with an error, its traceback beside it."""
        ...


class NoJournal:
    """A journal that discards all notes."""

    def note(
        self,
        event: str,
        message: str,
        *,
        level: LogLevel = LogLevel.INFO,
        error: BaseException | None = None,
        **about: About,
    ) -> None:
        """Forget it."""


class Redactor(Protocol):
    """Something that knows every secret of the host."""

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        ...


class NothingToRedact:
    """For a host that holds no secrets."""

    def redact(self, text: str) -> str:
        """Return the text as it is."""
        return text
