"""Python's own log, joined to the journal in both directions.

Owns:  the handler that passes records on to a journal; the journal that passes notes on to Python's
       log, for a process that has no log file; and what becomes of an exception nobody caught.
Rule 1: a library speaks at `warning` and above; below that only what is ours is heard.
Rule 2: a traceback nobody caught is cleaned of secrets before anything prints it.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final

from holon.ports.journal import About, LogLevel
from holon.ports.redactor import Redactor

if TYPE_CHECKING:
    from holon.adapters.system.journal_file import JournalFile

OURS: Final = "holon"
EVENT: Final = "event"  # the field of a record that names its event
_ABOUT: Final = ("agent_id", "turn_id", "task_id")
_LEVELS: Final = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}


class JournalHandler(logging.Handler):
    """Passes records on to a journal."""

    def __init__(self, journal: "JournalFile") -> None:
        super().__init__()
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record as a line."""
        level = _level_of(record.levelno)
        if self._journal.leaves_out(level):
            return
        self._journal.put(
            level,
            str(getattr(record, EVENT, "log")),
            _message_of(record),
            trace=_trace_of(record),
            about={"logger": record.name} | {n: getattr(record, n, None) for n in _ABOUT},
        )


@contextmanager
def python_log_into(journal: "JournalFile", level: LogLevel) -> Iterator[None]:
    """Have the journal keep what Python's log is told, while the block runs."""
    root, ours = logging.getLogger(), logging.getLogger(OURS)
    before = root.level, ours.level
    handler = JournalHandler(journal)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    ours.setLevel(_LEVELS[level])
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        ours.setLevel(before[1])


class PythonLog:
    """A journal that is Python's log: only errors, in a process that tells the rest otherwise."""

    def note(
        self,
        event: str,
        message: str,
        *,
        level: LogLevel = LogLevel.INFO,
        error: BaseException | None = None,
        **about: About,
    ) -> None:
        """Pass on what is an error."""
        if level is not LogLevel.ERROR:
            return
        known = {name: value for name, value in about.items() if name in _ABOUT}
        text = message.encode("utf-8", "backslashreplace").decode()  # a stream takes no half signs
        logging.getLogger(OURS).log(
            logging.ERROR, "%s", text, exc_info=error, extra={EVENT: event, **known}
        )


def clean_crashes(redactor: Redactor) -> None:
    """For the rest of this process, print uncaught exceptions without secrets."""

    def told(
        kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        print(redactor.redact(text), file=sys.stderr, end="", flush=True)

    sys.excepthook = told
    threading.excepthook = lambda crash: told(crash.exc_type, crash.exc_value, crash.exc_traceback)


def _level_of(number: int) -> LogLevel:
    fitting = [level for level, least in _LEVELS.items() if number >= least]
    return fitting[-1] if fitting else LogLevel.DEBUG


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg!s} [arguments do not fit]"


def _trace_of(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[1] is not None:
        return "".join(traceback.format_exception(record.exc_info[1]))
    return record.exc_text or ""
