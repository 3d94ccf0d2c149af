"""The journal of one service: its log file, its level, and what is summed up by the minute.

Owns:  opening and closing it, who else sees its lines, and telling of refused requests as counts.
Rule 1: lines go to the log file. Whoever sits in front of a service in the foreground also sees
        warnings and worse, as text; but not why it ended, which the command itself says last.
Rule 2: requests that were turned away are counted, and told once a minute: no caller fills a log.
"""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.home_checks import home_errors
from holon.adapters.system.journal_file import JournalFile, JournalLine, unheard
from holon.adapters.system.log_file import GrowingLog
from holon.adapters.system.python_log import python_log_into
from holon.adapters.system.run_files import RunFiles
from holon.http.traffic import Traffic
from holon.model.limits import JOURNAL_WINDOW_MS
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.ports.redactor import Redactor
from holon.serve.lifecycle_failures import LAST_WORDS


@contextmanager
def service_journal(files: RunFiles, level: LogLevel, redactor: Redactor) -> Iterator[JournalFile]:
    """Keep a journal while the block runs; raises UnsafePlaceError before it begins."""
    with home_errors(files.home):
        opened = GrowingLog(files.log)
    with closing(opened) as log:
        echo = unheard if log.is_printed_to else _print
        journal = JournalFile(log, redactor=redactor, clock=SystemClock(), level=level, echo=echo)
        try:
            with python_log_into(journal, level):
                yield journal
        finally:
            journal.close()


async def sum_up(journal: JournalFile, traffic: Traffic, clock: Clock) -> None:
    """Once a minute, tell of what was only counted; for ever."""
    while True:
        await clock.sleep_for(JOURNAL_WINDOW_MS)  # of real time, wherever the clock is set
        journal.sweep()
        tell_refusals(journal, traffic)


def tell_refusals(journal: Journal, traffic: Traffic) -> None:
    """Tell how many requests were turned away since last time, by status."""
    counts = traffic.take_refusals()
    if not counts:
        return
    told = ", ".join(f"{count} with {status}" for status, count in sorted(counts.items()))
    journal.note(
        "requests_refused",
        f"requests were turned away: {told}",
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
