"""`holon daemon`: the runtime in the background.

Owns:  the output and exit codes of its commands; holon.daemon does the work.
Rule 1: logs and failure texts are sanitized before they reach a terminal.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from holon.cli.console import exit_codes
from holon.cli.console.options import echo_json, home_option, json_option, with_home
from holon.cli.console.runtime_call import until_interrupted
from holon.cli.service.access_options import AccessFlags, access_options, is_told, serve_request

if TYPE_CHECKING:
    from holon.daemon.start_stop import Daemon
    from holon.projections.runtime_status import DaemonStatus
    from holon.serve.effective_config import ServeRequest

_LINES_DEFAULT = 80
_LINES_MAX = 1_000

_wait_option = click.option(
    "--wait",
    "wait_s",
    type=click.IntRange(1, 600),
    default=10,
    show_default=True,
    help="How many seconds to wait for readiness.",
)


@click.group()
def daemon() -> None:
    """Run the agents of a home in the background.

    \b
    Examples:
      holon daemon start
      holon daemon status
      holon daemon logs --follow
      holon daemon stop
    """


@daemon.command()
@access_options
@_wait_option
@home_option
@json_option
def start(home: Path, as_json: bool, wait_s: int, **flags: Unpack[AccessFlags]) -> None:
    """Start the runtime in the background, unless it is running.

    Accepts the options of `holon serve`. It succeeds if a runtime with the same configuration is
    already running, or with any configuration if no options are given here. A runtime with another
    configuration, or another program in its place, is left alone and the command fails.

    \b
    Exit codes:
      0  it is running as requested
      1  it is not running: see holon daemon logs
      2  the options or settings are invalid

    \b
    Examples:
      holon daemon start
      holon daemon start --port 8080
      holon daemon start --access lan --host 192.168.1.20 --token-file ~/.holon-token
    """
    from holon.adapters.system.run_files import RunFiles
    from holon.daemon.options import options_in_use

    bare = not is_told(click.get_current_context())
    known = options_in_use(RunFiles(home.absolute())) if bare else None
    asked = serve_request(flags, known)
    with until_interrupted("interrupted; nothing was started"):
        found = _daemon(home, wait_s, asked).start()
    _answer(found, as_json=as_json)


@daemon.command()
@click.option(
    "--defaults",
    is_flag=True,
    help="Use the configured defaults instead of the options of the old process.",
)
@access_options
@_wait_option
@home_option
@json_option
def restart(
    home: Path, as_json: bool, wait_s: int, defaults: bool, **flags: Unpack[AccessFlags]
) -> None:
    """Restart the runtime in the background as a new process.

    The new process keeps the options of the old one, except those given here. If it could not
    start, the command is refused and the old process keeps running. Running work is cut off and
    continues from its last durable step. With --defaults the new process uses the configured
    defaults and the options given here only.

    \b
    Examples:
      holon daemon restart
      holon daemon restart --defaults
      holon daemon restart --port 8080
    """
    from holon.adapters.system.run_files import RunFiles
    from holon.daemon.options import options_last_used

    known = None if defaults else options_last_used(RunFiles(home.absolute()))
    asked = serve_request(flags, known)
    with until_interrupted("interrupted; see what runs now with: holon daemon status"):
        found = _daemon(home, wait_s, asked).restart()
    _answer(found, as_json=as_json)


@daemon.command()
@home_option
@json_option
def stop(home: Path, as_json: bool) -> None:
    """Stop the runtime in the background; agents are not stopped.

    Running work gets a grace period to finish. A process that does not respond is signalled, and
    finally killed.

    \b
    Exit codes:
      0  it does not run (any more)
      1  it could not be stopped, or another program is in its place

    \b
    Examples:
      holon daemon stop
    """
    from holon.daemon.start_stop import stop as stop_daemon

    with until_interrupted("interrupted; see whether it still runs with: holon daemon status"):
        found = stop_daemon(home.absolute())
    _answer(found, as_json=as_json)


@daemon.command()
@access_options
@home_option
@json_option
def status(home: Path, as_json: bool, **flags: Unpack[AccessFlags]) -> None:
    """Show whether the runtime is running and healthy.

    The configuration is compared with the options given here or, without options, with those it was
    started with: it differs if settings have changed since.

    \b
    Exit codes:
      0  it is running and healthy
      1  it is not running, does not respond, or left files behind
      2  the options are invalid

    \b
    Examples:
      holon daemon status
      holon daemon status --json | jq .activity
    """
    from holon.adapters.system.run_files import RunFiles
    from holon.daemon.health import status_of
    from holon.daemon.options import options_in_use, replacing_command

    files = RunFiles(home.absolute())
    running = options_in_use(files)
    asked = serve_request(flags, None if is_told(click.get_current_context()) else running)
    found = status_of(
        files,
        fingerprint=_fingerprint(home, asked),
        replaced_by=replacing_command(asked, running),
    )
    if as_json:
        _print_json(_with_home(found))
    else:
        _print_status(_with_home(found))
    sys.exit(exit_codes.OK if found.ok else exit_codes.FOUND_FAULTS)


@daemon.command()
@click.option(
    "--tail",
    "--lines",
    "lines_count",
    type=click.IntRange(0, _LINES_MAX),
    default=_LINES_DEFAULT,
    show_default=True,
    help="How many lines from the end of the log to show.",
)
@click.option("--follow", is_flag=True, help="Keep printing new lines.")
@home_option
@json_option
def logs(home: Path, as_json: bool, lines_count: int, follow: bool) -> None:
    """Show the end of the runtime's log, and the last failures.

    With --json the lines are printed as stored: each a JSON object with at, level, event, message,
    and ids. With --json and --follow the output consists of these lines only. Following continues
    across restarts and log rotation; Ctrl-C ends it.

    \b
    Examples:
      holon daemon logs
      holon daemon logs --tail 200
      holon daemon logs --follow
      holon daemon logs --json | jq -r .log_path
      holon daemon logs --json | jq -r '.lines[] | fromjson? | select(.level == "error")'
    """
    from holon.adapters.system.run_files import RunFiles
    from holon.cli.service.daemon_logs import (
        follow_log,
        made_plain,
        print_failures,
        print_json_line,
        print_line,
        print_lines,
    )
    from holon.daemon.health import status_of
    from holon.daemon.logs import log_report

    files = RunFiles(home.absolute())
    if follow and as_json:
        follow_log(files.log, lines_count, print_json_line)
        return
    status = status_of(files, fingerprint=None)
    report = log_report(files, lines_max=0 if follow else lines_count, status=status)
    if as_json:
        _print_json(made_plain(report))
        return
    print_failures(report)
    if follow:
        follow_log(files.log, lines_count, print_line)
    else:
        print_lines(report)


def _daemon(home: Path, wait_s: int, asked: "ServeRequest") -> "Daemon":
    from holon.config.load_settings import load_settings
    from holon.daemon.start_stop import Daemon

    environ = dict(os.environ)
    return Daemon(
        settings=load_settings(home.absolute(), environ),
        asked=asked,
        environ=environ,
        ready_ms_max=wait_s * 1_000,
    )


def _fingerprint(home: Path, asked: "ServeRequest") -> str | None:
    """Return the fingerprint of a start, or None if the settings are invalid."""
    from holon.adapters.system.private_file import FileUnusableError
    from holon.config.config_file import BadConfigError
    from holon.config.load_settings import load_settings
    from holon.serve.effective_config import effective_fingerprint

    try:
        settings = load_settings(home.absolute(), dict(os.environ))
    except (BadConfigError, FileUnusableError):
        return None
    return effective_fingerprint(settings, asked)


def _answer(found: "DaemonStatus", *, as_json: bool) -> None:
    from holon.cli.console.terminal_text import one_line
    from holon.cli.service.daemon_logs import shown_failure

    found = _with_home(found)
    if as_json:
        _print_json(found)
        return
    click.echo(f"holon: {one_line(found.message)}")
    if found.http_addr is not None and found.pid is not None:
        click.echo(f"       http://{found.http_addr} and {one_line(found.socket_path)}")
    if found.last_failure is not None:
        click.echo(f"       last failure: {shown_failure(found.last_failure)}")


def _with_home(found: "DaemonStatus") -> "DaemonStatus":
    from msgspec.structs import replace

    return replace(found, message=with_home(found.message))


def _print_json(found: object) -> None:
    from holon.wire.codec import json_of

    echo_json(json_of(found))


def _print_status(found: "DaemonStatus") -> None:
    from holon.cli.console.terminal_text import one_line

    click.echo(f"holon: {found.state.value}; {one_line(found.message)}")
    for name, value in _facts(found):
        click.echo(f"  {name:<14} {one_line(value)}")


def _facts(found: "DaemonStatus") -> list[tuple[str, str]]:
    from holon.cli.service.daemon_logs import shown_failure

    matches = {True: "matches", False: "differs", None: "unknown"}[found.config_fingerprint_match]
    facts: list[tuple[str, str | None]] = [
        ("process", None if found.pid is None else str(found.pid)),
        ("home", found.home_dir),
        ("socket", found.socket_path),
        ("http", None if found.http_addr is None else f"http://{found.http_addr}"),
        ("control", found.control_connectivity.value),
        ("configuration", matches if found.ok else None),
    ]
    if found.activity is not None:
        one = found.activity
        facts.append(
            (
                "activity",
                f"{one.state.value}: {one.active_agent_count} agents in use,"
                f" {one.processing_agent_count} processing, {one.waiting_agent_count} waiting,"
                f" {one.active_task_count} tasks",
            )
        )
    if found.last_failure is not None:
        facts.append(("last failure", shown_failure(found.last_failure)))
        facts.append(("", found.last_failure_path))
    facts.extend(("left behind", path) for path in found.stale_files)
    return [(name, value) for name, value in facts if value is not None]
