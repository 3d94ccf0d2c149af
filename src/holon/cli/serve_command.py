"""`holon serve`: the runtime in the foreground.

Owns:  what is said when a service is up and when it goes down.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from holon.cli.access_options import AccessFlags, access_options, serve_request
from holon.cli.options import echo_json, home_option, json_option

if TYPE_CHECKING:
    from holon.http.plane import RuntimeFacts
    from holon.model.errors import HolonError


@click.command()
@access_options
@home_option
@json_option
@click.option("--ready-handle", type=click.IntRange(3), hidden=True)
def serve(
    home: Path, as_json: bool, ready_handle: int | None, **flags: Unpack[AccessFlags]
) -> None:
    """Run the agents of a home until interrupted.

    Agents work, and the control plane answers, for as long as this process lives. Ctrl-C lets what
    runs finish for a moment; a second one ends at once. No agent is stopped by it: what was under
    way goes on when the service comes back. `holon daemon start` does the same in the background.

    With --json one object says where it listens once it is ready.

    \b
    Examples:
      holon serve
      holon serve --port 8080
      holon serve --access lan --host 192.168.1.20 --token-file ~/.holon-token
    """
    import logging

    import anyio

    from holon.config.load_settings import load_settings
    from holon.model.errors import HolonError
    from holon.serve.foreground import ServiceSigns
    from holon.serve.foreground import serve as serve_home

    if ready_handle is not None:
        os.set_inheritable(ready_handle, False)
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    environ = dict(os.environ)
    asked = serve_request(flags)
    settings = load_settings(home.absolute(), environ)
    signs = ServiceSigns(
        announce=_announce_json if as_json else _announce, ready_handle=ready_handle
    )
    failed: HolonError | None = None

    async def served() -> None:
        await serve_home(settings, environ, asked, signs=signs)

    try:
        anyio.run(served)
    except* HolonError as several:
        failed = _first_of(several)
    if failed is not None:
        raise failed
    click.echo("holon: ended; what was accepted is kept", err=True)


def _first_of(several: "BaseExceptionGroup[HolonError]") -> "HolonError":
    error = several.exceptions[0]
    return _first_of(error) if isinstance(error, BaseExceptionGroup) else error


def _announce(facts: "RuntimeFacts") -> None:
    click.echo(f"holon: serving {facts.home_dir}", err=True)
    click.echo(f"       http://{facts.http_addr} and {facts.socket_path}", err=True)


def _announce_json(facts: "RuntimeFacts") -> None:
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
