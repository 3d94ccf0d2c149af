"""A daemon's log and failures on a terminal.

Owns:  how `holon daemon logs` looks, and following the log until somebody presses Ctrl-C.
Rule 1: whatever others wrote (a log, a failure) is made harmless before a terminal sees it.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holon.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from holon.daemon.log_tail import LogReport
    from holon.projections.runtime_status import LastFailure

_LOOK_S: Final = 0.2  # between two looks at a log that is followed


def shown_failure(failure: "LastFailure") -> str:
    """Return a failure on one line: when, in which phase, what, and where to look further."""
    from holon.cli.terminal_text import one_line

    when = failure.occurred_at.isoformat(timespec="seconds")
    hint = failure.detail_hint or ""
    if hint and not hint.startswith("see "):
        hint = f"see {hint}"
    told = f"{when} {failure.phase.value}: {failure.summary}"
    return one_line(f"{told}; {hint}" if hint else told)


def made_plain(report: "LogReport") -> "LogReport":
    """Return the report with lines no terminal obeys."""
    from msgspec.structs import replace

    from holon.cli.terminal_text import plain

    return replace(report, lines=tuple(plain(line) for line in report.lines))


def print_failures(report: "LogReport") -> None:
    """Print where things are, and what failed."""
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
    """The failure without the advice to look where one is looking."""
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
    """Print one line of the log for a person."""
    from holon.cli.log_lines import shown_lines

    for part in shown_lines(line):
        click.echo(part)


def print_json_line(line: str) -> None:
    """One object: what stands in the line, or the line itself when it holds none."""
    import msgspec

    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        told = None
    echo_json(told if isinstance(told, dict) else {"message": line})


def follow_log(log: Path, lines_count: int, show: "Callable[[str], None]") -> None:
    """Show what is written, until interrupted."""
    from contextlib import closing

    from holon.cli.runtime_call import until_interrupted
    from holon.daemon.log_follow import GrowingTail

    with until_interrupted(), closing(GrowingTail(log)) as tail:
        lines = tail.last_lines(lines_count)
        while True:
            for line in lines:
                show(line)
            if not lines:
                time.sleep(_LOOK_S)
            lines = tail.new_lines()
