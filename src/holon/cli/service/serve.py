"""`holon serve`: the runtime in the foreground.

Owns:  the messages at start and shutdown.
Rule 1: a service does not depend on its output being read: a closed pipe or terminal ends nothing.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, Unpack

import click

from holon.cli.console.options import echo_json, home_option, json_option
from holon.cli.service.access_options import AccessFlags, access_options, serve_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from holon.http.context import RuntimeFacts


@click.command()
@access_options
@home_option
@json_option
@click.option("--ready-handle", type=click.IntRange(3), hidden=True)
def serve(
    home: Path, as_json: bool, ready_handle: int | None, **flags: Unpack[AccessFlags]
) -> None:
    """Run the agents of a home until interrupted.

    Agents and the control API run as long as this process. Ctrl-C gives running work a grace
    period; a second one ends at once. Agents are not stopped: interrupted work continues when the
    service starts again. `holon daemon start` runs the same service in the background.

    With --json one object with its addresses is printed once it is ready. Its log, one JSON object
    per line, is <home>/run/daemon.log; `holon daemon logs` shows it.

    \b
    Examples:
      holon serve
      holon serve --port 8080 --log-level debug
      holon serve --access lan --host 192.168.1.20 --token-file ~/.holon-token
    """
    from holon.adapters.system.home_checks import require_safe_home
    from holon.adapters.system.logs import clean_crashes
    from holon.adapters.system.processes import become_unreadable, forget_variables
    from holon.config.load_settings import load_settings
    from holon.model.errors import HolonError, first_error
    from holon.serve.compose import Hooks
    from holon.serve.foreground import ReadinessSignals, run_service
    from holon.serve.foreground import serve as serve_home
    from holon.serve.providers import variables_to_forget

    become_unreadable()  # commands of agents run as the same user
    if ready_handle is not None:
        os.set_inheritable(ready_handle, False)
    hooks = Hooks()
    clean_crashes(hooks.secrets)
    environ = dict(os.environ)
    asked = serve_request(flags)
    require_safe_home(home.absolute())  # before anything of it is read
    settings = load_settings(home.absolute(), environ)
    forget_variables(variables_to_forget(settings, environ))
    signs = ReadinessSignals(announce=_announcer(as_json, ready_handle), ready_handle=ready_handle)
    failed: HolonError | None = None

    async def served() -> None:
        await serve_home(settings, environ, asked, signs=signs, hooks=hooks)

    try:
        run_service(served)
    except* HolonError as several:
        failed = first_error(several)
    if failed is not None:
        raise failed
    if ready_handle is None:
        with _heard_or_not(sys.stderr):
            click.echo("holon: ended; accepted work is durable", err=True)


def _announcer(as_json: bool, ready_handle: int | None) -> "Callable[[RuntimeFacts], None]":
    """Return where readiness is announced; a background service only writes its log."""
    if ready_handle is not None:
        return lambda facts: None
    return _announce_json if as_json else _announce


def _announce(facts: "RuntimeFacts") -> None:
    with _heard_or_not(sys.stderr):
        click.echo(f"holon: serving {facts.home_dir}", err=True)
        click.echo(f"       http://{facts.http_addr} and {facts.socket_path}", err=True)


def _announce_json(facts: "RuntimeFacts") -> None:
    with _heard_or_not(sys.stdout):
        echo_json(
            {
                "ok": True,
                "pid": facts.pid,
                "home_dir": facts.home_dir,
                "http_addr": facts.http_addr,
                "socket_path": facts.socket_path,
                "config_fingerprint": facts.config_fingerprint,
            }
        )


@contextmanager
def _heard_or_not(stream: TextIO) -> Iterator[None]:
    """Ignore output errors in the block."""
    try:
        yield
    except OSError:
        with open(os.devnull, "wb") as nowhere:  # what is in the buffer is tried again at exit
            os.dup2(nowhere.fileno(), stream.fileno())
