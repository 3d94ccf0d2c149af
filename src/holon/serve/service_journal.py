"""The service log, and the record of failed starts and shutdowns.

Owns:  opening and closing the log, its copy on stderr, its entries about start and shutdown; the
       failure files; the counts of refused requests.
Rule 1: a successful start clears earlier failures; so does a clean shutdown.
Rule 2: a home that another process serves or has taken over is not changed: that process is well.
Rule 3: entries go to the log file. A service in the foreground also prints warnings and errors to
        stderr, except the reason of its end, which the command itself prints last.
Rule 4: refused requests are counted and logged once a minute, so that no caller can fill the log.
"""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Final

from holon import __version__
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.home_checks import home_errors
from holon.adapters.system.journal import JournalFile, JournalLine, unheard
from holon.adapters.system.logs import RotatingLog, python_log_into
from holon.adapters.system.run_files import RunFiles
from holon.http.context import Traffic
from holon.model.errors import HolonError, HomeInUseError, HomeReplacedError
from holon.model.limits import JOURNAL_WINDOW_MS
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel, Redactor
from holon.projections.runtime_status import FailurePhase
from holon.runtime.background import leaves_of

_REFUSED: Final = "start_refused"
_ENDED_BADLY: Final = "ended_badly"
LAST_WORDS: Final = frozenset({_REFUSED, _ENDED_BADLY})  # nothing comes after these


class LifecycleFailures:
    """A context manager that records the failed start or shutdown of a service."""

    def __init__(
        self, files: FailureFiles, clock: Clock, *, journal: Journal, redactor: Redactor
    ) -> None:
        self._files = files
        self._clock = clock
        self._journal = journal
        self._redactor = redactor
        self._phase = FailurePhase.STARTUP

    def started(self) -> None:
        """Record a successful start; a later failure counts as one of the shutdown."""
        self._files.clear()
        self._phase = FailurePhase.SHUTDOWN

    def __enter__(self) -> "LifecycleFailures":
        """Log the start."""
        self._journal.note("starting", f"holon {__version__} starts")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record a failure and let it propagate."""
        del kind, trace
        if error is None:
            self._files.clear()
            self._journal.note("ended", "ended cleanly; accepted work is durable")
            return
        leaf = next(leaves_of(error), error)
        said = self._redactor.redact(sentence_of(leaf))
        self._journal.note(
            _REFUSED if self._phase is FailurePhase.STARTUP else _ENDED_BADLY,
            said,
            level=LogLevel.ERROR,
            error=None if isinstance(leaf, HolonError) else error,
        )
        is_anothers = isinstance(leaf, HomeInUseError | HomeReplacedError)
        if isinstance(leaf, Exception) and not is_anothers:
            self._files.note(self._phase, said, now=self._clock.now())


def sentence_of(error: BaseException) -> str:
    """Return the message of an error, with its hint."""
    if isinstance(error, HolonError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"


@contextmanager
def service_journal(files: RunFiles, level: LogLevel, redactor: Redactor) -> Iterator[JournalFile]:
    """Open the service log while the block runs; may raise UnsafePathError."""
    with home_errors(files.home):
        opened = RotatingLog(files.log)
    with closing(opened) as log:
        echo = unheard if log.is_printed_to else _print
        journal = JournalFile(log, redactor=redactor, clock=SystemClock(), level=level, echo=echo)
        try:
            with python_log_into(journal, level):
                yield journal
        finally:
            journal.close()


async def sum_up(journal: JournalFile, traffic: Traffic, clock: Clock) -> None:
    """Log suppressed lines and refused requests once a minute, until cancelled."""
    while True:
        await clock.sleep_for(JOURNAL_WINDOW_MS)  # of real time, wherever the clock is set
        journal.sweep()
        tell_refusals(journal, traffic)


def tell_refusals(journal: Journal, traffic: Traffic) -> None:
    """Log the requests refused since the last call, by status."""
    counts = traffic.take_refusals()
    if not counts:
        return
    told = ", ".join(f"{count} with {status}" for status, count in sorted(counts.items()))
    journal.note(
        "requests_refused",
        f"requests were refused: {told}",
        level=LogLevel.WARNING if any(status >= 500 for status in counts) else LogLevel.INFO,
        count=sum(counts.values()),
    )


def _print(line: JournalLine) -> None:
    if line.level not in (LogLevel.WARNING, LogLevel.ERROR):
        return
    if line.event in LAST_WORDS and not line.trace:
        return
    when = line.at.isoformat(timespec="seconds")
    text = f"{when} {line.level.upper()} {line.event}: {line.message}"
    print(f"{text}\n{line.trace}" if line.trace else text, file=sys.stderr, flush=True)
