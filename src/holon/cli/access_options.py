"""The flags that say where a service listens and who may reach it.

Owns:  the options `holon serve` and `holon daemon` share, and what they amount to.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from holon.serve.effective_config import ServeRequest

_Command = TypeVar("_Command", bound=Callable[..., Any])


class AccessFlags(TypedDict):
    """The flags, as click hands them over."""

    access: str
    listen: str | None
    host: str | None
    port: int | None
    advertise: str | None
    token: str | None
    token_file: Path | None
    workspace_root: str | None
    agent: str
    log_level: str | None


_OPTIONS = (
    click.option(
        "--access",
        type=click.Choice(["local", "tunnel", "lan", "tailnet"]),
        default="local",
        show_default=True,
        help="From where the control plane is meant to be reached.",
    ),
    click.option(
        "--listen",
        metavar="HOST:PORT",
        envvar="HOLON_HTTP_ADDR",
        show_default="127.0.0.1:7878",
        help="Where to listen.",
    ),
    click.option("--host", help="The address to listen on."),
    click.option("--port", type=click.IntRange(0, 65_535), help="The port; 0 takes a free one."),
    click.option(
        "--advertise",
        metavar="URL",
        help="How others reach it. Trigger URLs begin with it, unless HOLON_CALLBACK_BASE_URL"
        " says otherwise.",
    ),
    click.option("--token", envvar="HOLON_CONTROL_TOKEN", help="The token callers need."),
    click.option(
        "--token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        show_default="<home>/run/token, made on the first start",
        help="The file that holds it.",
    ),
    click.option(
        "--workspace-root",
        envvar="HOLON_WORKSPACE_DIR",
        type=click.Path(exists=True, file_okay=False, resolve_path=True),
        show_default="each agent's own home",
        help="Where commands run and files change.",
    ),
    click.option(
        "--agent",
        envvar="HOLON_AGENT_ID",
        default="main",
        show_default=True,
        help="Who is meant when nobody is named.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        show_default="runtime.log_level, which is info",
        help="From which level on lines are written into the log.",
    ),
)


def access_options(command: _Command) -> _Command:
    """Let the command be told where to listen and for whom."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def serve_request(flags: AccessFlags) -> "ServeRequest":
    """What the flags ask for."""
    import os

    from holon.config.environment_names import callback_base_url
    from holon.model.ids import parse_agent_id
    from holon.ports.journal import LogLevel
    from holon.serve.access_plan import AccessMode, AccessRequest
    from holon.serve.effective_config import ServeRequest

    return ServeRequest(
        access=AccessRequest(
            mode=AccessMode(flags["access"]),
            listen=flags["listen"],
            host=flags["host"],
            port=flags["port"],
            advertise=flags["advertise"],
            callback_base=callback_base_url(os.environ),
            has_own_token=flags["token"] is not None or flags["token_file"] is not None,
        ),
        token=flags["token"],
        token_file=None if flags["token_file"] is None else flags["token_file"].absolute(),
        default_agent=parse_agent_id(flags["agent"]),
        workspace_dir=flags["workspace_root"],
        log_level=None if flags["log_level"] is None else LogLevel(flags["log_level"]),
    )
