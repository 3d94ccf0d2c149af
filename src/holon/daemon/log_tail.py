"""What `holon daemon logs` says: where to look, what failed, and the last lines of the log.

Owns:  the report. Lines are as they were written; making them fit for a terminal is the terminal's.
"""

from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.log_file import read_tail
from holon.adapters.system.run_files import RunFiles
from holon.model.limits import DAEMON_LOG_LINE_CHARS_MAX, DAEMON_LOG_LINES_COUNT_MAX
from holon.model.record import Record
from holon.projections.runtime_status import DaemonStatus, FailurePhase, LastFailure


class LogReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything there is to read about a runtime in the background."""

    ok: bool
    log_path: str
    metadata_path: str
    last_failure: LastFailure | None  # as `holon daemon status` tells it
    last_failure_path: str | None
    startup_failure_path: str
    shutdown_failure_path: str
    startup_failure: LastFailure | None
    shutdown_failure: LastFailure | None
    lines: tuple[str, ...]
    truncated: bool


def log_report(files: RunFiles, *, lines_max: int, status: DaemonStatus | None = None) -> LogReport:
    """Return the report; a log that is not there has no lines. `status` tells the last failure."""
    failures = FailureFiles(files)
    tail = read_tail(
        files.log,
        lines_max=min(lines_max, DAEMON_LOG_LINES_COUNT_MAX),
        line_chars_max=DAEMON_LOG_LINE_CHARS_MAX,
    )
    return LogReport(
        ok=True,
        log_path=str(files.log),
        metadata_path=str(files.record),
        last_failure=None if status is None else status.last_failure,
        last_failure_path=None if status is None else status.last_failure_path,
        startup_failure_path=str(files.startup_failure),
        shutdown_failure_path=str(files.shutdown_failure),
        startup_failure=failures.of(FailurePhase.STARTUP),
        shutdown_failure=failures.of(FailurePhase.SHUTDOWN),
        lines=tail.lines,
        truncated=tail.truncated,
    )
