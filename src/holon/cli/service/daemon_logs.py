"""`holon daemon logs`: the service log on a terminal.

Owns:  following the log until Ctrl-C, and the layout of a JSON line: time, level, text and ids.
Rule 1: logs and failure texts are sanitized before they reach a terminal, JSON strings after they
        were decoded.
Rule 2: a line that is not JSON is shown as it is: it may come from a crash or an older version.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holon.daemon.logs import LogReport
    from holon.projections.runtime_status import LastFailure

_LOOK_S: Final = 0.2  # between two looks at a log that is followed
_HEAD: Final = ("at", "level", "event", "message")
_UNSAID: Final = frozenset({*_HEAD, "pid", "trace", "logger"})


def shown_failure(failure: "LastFailure") -> str:
    """Format a failure on one line: time, phase, message and hint."""
    from holon.cli.console.terminal_text import one_line

    when = failure.occurred_at.isoformat(timespec="seconds")
    hint = failure.detail_hint or ""
    if hint and not hint.startswith("see "):
        hint = f"see {hint}"
    told = f"{when} {failure.phase.value}: {failure.summary}"
    return one_line(f"{told}; {hint}" if hint else told)


def made_plain(report: "LogReport") -> "LogReport":
    """Return the report with sanitized lines."""
    from msgspec.structs import replace

    from holon.cli.console.terminal_text import plain

    return replace(report, lines=tuple(plain(line) for line in report.lines))


def print_failures(report: "LogReport") -> None:
    """Print the paths and the failures."""
    click.echo(f"log           {report.log_path}")
    click.echo(f"metadata      {report.metadata_path}")
    failed = report.last_failure
    click.echo(
        f"last failure  {'none known' if failed is None else shown_failure(_unhinted(failed))}"
    )
    if report.last_failure_path is not None:
        click.echo(f"              {report.last_failure_path}")
    for name, failure in (("start", report.startup_failure), ("end", report.shutdown_failure)):
        if failure is not None and failure != failed:
            click.echo(f"the last {name} failed: {shown_failure(_unhinted(failure))}")


def _unhinted(failure: "LastFailure") -> "LastFailure":
    """Return the failure without the hint to read the log."""
    from msgspec.structs import replace

    from holon.adapters.system.failure_files import SEE_LOGS

    return replace(failure, detail_hint=None) if failure.detail_hint == SEE_LOGS else failure


def print_lines(report: "LogReport") -> None:
    """Print the lines of a report."""
    if not report.lines:
        click.echo("the log is empty")
        return
    click.echo("… earlier lines are in the file" if report.truncated else "")
    for line in report.lines:
        print_line(line)


def print_line(line: str) -> None:
    """Print one line of the log as text."""
    for part in shown_lines(line):
        click.echo(part)


def shown_lines(line: str) -> "Iterator[str]":
    """Yield the text of one line of the log."""
    from holon.cli.console.output import moment
    from holon.cli.console.terminal_text import one_line, plain

    told = _object_of(line)
    if told is None:
        yield plain(line)
        return
    about = " ".join(f"{name}={value}" for name, value in told.items() if name not in _UNSAID)
    said = f"{told['event']}: {told['message']}"
    shown = one_line(f"{said} ({about})" if about else said)
    yield f"{one_line(moment(told['at']))} {one_line(str(told['level'])):<7} {shown}"
    for part in str(told.get("trace", "")).splitlines():
        yield f"    {plain(part)}"


def _object_of(line: str) -> dict[str, object] | None:
    import json

    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not all(isinstance(told.get(name), str) for name in _HEAD):
        return None
    return told


def print_json_line(line: str) -> None:
    """Return the object in the line, or the line itself if it is not JSON."""
    import msgspec

    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        told = None
    echo_json(told if isinstance(told, dict) else {"message": line})


def follow_log(log: Path, lines_count: int, show: "Callable[[str], None]") -> None:
    """Print new lines until interrupted."""
    from contextlib import closing

    from holon.cli.console.runtime_call import until_interrupted
    from holon.daemon.logs import LogFollower

    with until_interrupted(), closing(LogFollower(log)) as tail:
        lines = tail.last_lines(lines_count)
        while True:
            for line in lines:
                show(line)
            if not lines:
                time.sleep(_LOOK_S)
            lines = tail.new_lines()
