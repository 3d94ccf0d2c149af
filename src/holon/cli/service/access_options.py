"""The access options of `holon serve` and `holon daemon`.

Owns:  the options, and the access request they produce.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click
from click.core import ParameterSource

from holon.cli.console.completion import complete_agent
from holon.cli.console.options import PathParam

if TYPE_CHECKING:
    from holon.serve.effective_config import RecordedOptions, ServeRequest

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--access",
        type=click.Choice(["local", "tunnel", "lan", "tailnet"]),
        show_default="local",
        help="From where the control API is reachable.",
    ),
    click.option(
        "--listen",
        metavar="HOST:PORT",
        envvar="HOLON_HTTP_ADDR",
        show_default="127.0.0.1:7878",
        help="Where to listen.",
    ),
    click.option("--host", help="The address to listen on."),
    click.option("--port", type=click.IntRange(0, 65_535), help="The port; 0 selects a free one."),
    click.option(
        "--advertise",
        metavar="URL",
        help="The address for external callers. Trigger URLs begin with it, unless"
        " HOLON_CALLBACK_BASE_URL is set.",
    ),
    click.option("--token", envvar="HOLON_CONTROL_TOKEN", help="The control token."),
    click.option(
        "--token-file",
        type=PathParam(dir_okay=False, path_type=Path),
        show_default="<home>/run/token, made on the first start",
        help="The file with the control token.",
    ),
    click.option(
        "--workspace-root",
        envvar="HOLON_WORKSPACE_DIR",
        type=PathParam(exists=True, file_okay=False, resolve_path=True),
        show_default="each agent's own home",
        help="Where commands run and files change.",
    ),
    click.option(
        "--agent",
        envvar="HOLON_AGENT_ID",
        shell_complete=complete_agent,
        show_default="main",
        help="The default agent.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        show_default="runtime.log_level, which is info",
        help="The minimum level of log entries.",
    ),
)


class AccessFlags(TypedDict):
    """The options as click passes them."""

    access: str | None
    listen: str | None
    host: str | None
    port: int | None
    advertise: str | None
    token: str | None
    token_file: Path | None
    workspace_root: str | None
    agent: str | None
    log_level: str | None


def access_options(command: _Command) -> _Command:
    """Add the access options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_told(ctx: click.Context) -> bool:
    """Whether the command line has an access option; environment variables do not count."""
    return any(
        ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for name in AccessFlags.__annotations__
    )


def serve_request(flags: AccessFlags, known: "RecordedOptions | None" = None) -> "ServeRequest":
    """Return the access request; missing options keep their recorded values."""
    from dataclasses import replace

    from holon.model.values import parse_agent_id
    from holon.ports.journal import LogLevel

    before = _nothing_known() if known is None else known.request()
    agent, level, workspace = flags["agent"], flags["log_level"], flags["workspace_root"]
    asked = replace(
        before,
        default_agent=before.default_agent if agent is None else parse_agent_id(agent),
        workspace_dir=before.workspace_dir if workspace is None else workspace,
        log_level=before.log_level if level is None else LogLevel(level),
    )
    return _with_access(_with_token(asked, flags), flags)


def _nothing_known() -> "ServeRequest":
    from holon.model.values import AgentId
    from holon.serve.access_plan import AccessRequest
    from holon.serve.effective_config import ServeRequest

    return ServeRequest(access=AccessRequest(), default_agent=AgentId("main"))


def _with_access(before: "ServeRequest", flags: AccessFlags) -> "ServeRequest":
    import os
    from dataclasses import replace as with_fields

    from msgspec.structs import replace

    from holon.config.environment_names import callback_base_url
    from holon.serve.access_plan import AccessMode

    known = before.access
    mode, (listen, host, port) = flags["access"], _one_address(flags)
    if flags["listen"] is not None:  # a whole address: nothing of an earlier one is left
        known = replace(known, host=None, port=None)
    access = replace(
        known,
        mode=known.mode if mode is None else AccessMode(mode),
        listen=listen,
        host=known.host if host is None else host,
        port=known.port if port is None else port,
        advertise=flags["advertise"] or known.advertise,
        callback_base=callback_base_url(os.environ) or known.callback_base,
    )
    return with_fields(before, access=access)


def _one_address(flags: AccessFlags) -> tuple[str | None, str | None, int | None]:
    """Return where to listen: an address, or host and port; options override variables."""
    from holon.serve.access_plan import split_address

    listen, host, port = flags["listen"], flags["host"], flags["port"]
    if listen is None or (host is None and port is None) or not _is_variable("listen"):
        return listen, host, port
    known_host, known_port = split_address(listen)
    return None, known_host if host is None else host, known_port if port is None else port


def _is_variable(name: str) -> bool:
    """Whether an option has its value from the environment."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT


def _with_token(before: "ServeRequest", flags: AccessFlags) -> "ServeRequest":
    from dataclasses import replace as with_fields

    from msgspec.structs import replace

    token, file = _one_token(flags)
    warn_of_token()
    if token is None and file is None:
        return before
    access = replace(before.access, has_own_token=True)
    path = None if file is None else file.absolute()
    return with_fields(before, access=access, token=token, token_file=path)


def warn_of_token() -> None:
    """Warn that a token among the arguments is visible to other users."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or ctx.get_parameter_source("token") is not ParameterSource.COMMANDLINE:
        return
    click.echo(
        "holon: every user of this machine can see --token in the process list;"
        " use a new token with --token-file or HOLON_CONTROL_TOKEN",
        err=True,
    )


def _one_token(flags: AccessFlags) -> tuple[str | None, Path | None]:
    """Return the token or its file; a file option overrides a variable."""
    token, file = flags["token"], flags["token_file"]
    if token is None or file is None:
        return token, file
    if _is_variable("token"):
        return None, file
    raise click.UsageError("give --token or --token-file, not both")
