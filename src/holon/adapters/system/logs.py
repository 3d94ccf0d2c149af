"""Log files and Python logging of a service.

Owns:  the redacting log filter and its installation; the rotating log file: append, rotate, read
       the tail; the handler that passes log records to a journal; the journal that writes to
       Python's log, for a process without a log file; the hook for uncaught exceptions.
Rule 1: a record is redacted before any formatter sees it, so no handler can print the original. A
        record that cannot be rendered is still logged, with the fault instead of its message.
Rule 2: a link or a foreign file at the log's path is never opened.
Rule 3: reading the tail costs a bounded number of bytes, whatever the size of the log.
Rule 4: several processes may write: a line is one write, and a process that finds the file rotated
        or deleted continues in the new one. Only the holder of the file's lock rotates it.
Rule 5: standard output and error follow the log into the new file, if they pointed to it before.
Rule 6: libraries log at `warning` and above; below that only Holon's own records are kept.
Rule 7: an uncaught traceback is redacted before it is printed.
"""

import fcntl
import logging
import os
import stat
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from holon.adapters.system.run_files import require_own_file
from holon.model.limits import DAEMON_LOG_BYTES_MAX, DAEMON_LOG_READ_BYTES_MAX
from holon.ports.journal import About, LogLevel, Redactor

if TYPE_CHECKING:
    from holon.adapters.system.journal import JournalFile


_STANDARD_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
OURS: Final = "holon"
EVENT: Final = "event"  # the field of a record that names its event
_ABOUT: Final = ("agent_id", "turn_id", "task_id")
_LEVELS: Final = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}


class LogRedaction(logging.Filter):
    """Passes every record, cleaned."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean the record in place."""
        redact = self._redactor.redact
        record.msg, record.args = redact(_message_of(record)), None
        if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        for name in vars(record).keys() - _STANDARD_FIELDS:
            value = getattr(record, name)
            shown = value if isinstance(value, str) else repr(value)
            if (cleaned := redact(shown)) != shown:
                setattr(record, name, cleaned)
        return True


def install_log_redaction(
    redactor: Redactor, handlers: Iterable[logging.Handler] | None = None
) -> None:
    """Clean what these handlers write: by default those of the root logger, and the last resort."""
    if handlers is None:
        fallback = [logging.lastResort] if logging.lastResort is not None else []
        handlers = [*logging.getLogger().handlers, *fallback]
    for handler in handlers:
        for earlier in [f for f in handler.filters if isinstance(f, LogRedaction)]:
            handler.removeFilter(earlier)
        handler.addFilter(LogRedaction(redactor))


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError) as error:
        return f"{record.msg!s} [arguments do not fit: {type(error).__name__}]"


class LogTail(NamedTuple):
    """The last lines of a log, oldest first, unchanged."""

    lines: tuple[str, ...]
    truncated: bool  # there is more before them


def open_log(path: Path) -> int:
    """Open it for appending; a large one becomes `<name>.1`, in place of the one before."""
    if require_own_file(path) and path.stat().st_size > DAEMON_LOG_BYTES_MAX:
        move_aside(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def earlier_log(path: Path) -> Path:
    """Where a log goes that was moved aside."""
    return path.with_name(f"{path.name}.1")


def move_aside(path: Path) -> None:
    """Make a log the earlier one, in place of the one before."""
    earlier = earlier_log(path)
    require_own_file(earlier)
    path.replace(earlier)


class RotatingLog:
    """A log that is written line by line and never grows beyond its bound."""

    def __init__(self, path: Path, *, bytes_max: int = DAEMON_LOG_BYTES_MAX) -> None:
        """Open it; raises UnsafePathError or OSError."""
        self._path = path
        self._bytes_max = bytes_max
        self._handle = open_log(path)
        self._printed = tuple(h for h in (1, 2) if _is_same(h, self._handle))

    @property
    def is_printed_to(self) -> bool:
        """Whether what this process prints ends up here as well."""
        return bool(self._printed)

    def append(self, line: bytes) -> None:
        """Write one line; raises OSError or UnsafePathError when that is not possible now."""
        facts = os.fstat(self._handle)
        if not self._is_current(facts):
            self._reopen()
        elif facts.st_size and facts.st_size + len(line) > self._bytes_max:
            self._rotate()
        os.write(self._handle, line)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._handle)

    def _is_current(self, held: os.stat_result) -> bool:
        try:
            named = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(held, named)

    def _rotate(self) -> None:
        """Rotate the file, unless another process does or did."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # this line still goes into the old one
        if self._is_current(os.fstat(self._handle)):
            move_aside(self._path)
        self._reopen()

    def _reopen(self) -> None:
        handle = open_log(self._path)
        for printed in self._printed:
            os.dup2(handle, printed)
        os.close(self._handle)
        self._handle = handle


def _is_same(one: int, other: int) -> bool:
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:
        return False  # nothing is open there


def read_tail(path: Path, *, lines_max: int, line_chars_max: int) -> LogTail:
    """Return its last lines; none when there is no log, or none that may be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return LogTail((), truncated=False)
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return LogTail((), truncated=False)
        start = max(0, facts.st_size - DAEMON_LOG_READ_BYTES_MAX)
        file.seek(start)
        text = file.read(DAEMON_LOG_READ_BYTES_MAX).decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n") if text else []
    if start > 0 and len(lines) > 1:
        lines = lines[1:]  # begun before what was read
    tail = lines[-lines_max:] if lines_max > 0 else []
    return LogTail(
        tuple(line[:line_chars_max] for line in tail), truncated=start > 0 or len(tail) < len(lines)
    )


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
            _record_message(record),
            trace=_trace_of(record),
            about={"logger": record.name} | {n: getattr(record, n, None) for n in _ABOUT},
        )


@contextmanager
def python_log_into(journal: "JournalFile", level: LogLevel) -> Iterator[None]:
    """Send Python's log records to the journal while the block runs."""
    root, own_logger = logging.getLogger(), logging.getLogger(OURS)
    before = root.level, own_logger.level
    handler = JournalHandler(journal)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    own_logger.setLevel(_LEVELS[level])
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        own_logger.setLevel(before[1])


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
        fields = {name: value for name, value in about.items() if name in _ABOUT}
        text = message.encode("utf-8", "backslashreplace").decode()  # a stream takes no half signs
        logging.getLogger(OURS).log(
            logging.ERROR, "%s", text, exc_info=error, extra={EVENT: event, **fields}
        )


def clean_crashes(redactor: Redactor) -> None:
    """For the rest of this process, print uncaught exceptions without secrets."""

    def log_uncaught(
        kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        print(redactor.redact(text), file=sys.stderr, end="", flush=True)

    sys.excepthook = log_uncaught
    threading.excepthook = lambda crash: log_uncaught(
        crash.exc_type, crash.exc_value, crash.exc_traceback
    )


def _level_of(number: int) -> LogLevel:
    fitting = [level for level, least in _LEVELS.items() if number >= least]
    return fitting[-1] if fitting else LogLevel.DEBUG


def _record_message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg!s} [arguments do not fit]"


def _trace_of(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[1] is not None:
        return "".join(traceback.format_exception(record.exc_info[1]))
    return record.exc_text or ""
