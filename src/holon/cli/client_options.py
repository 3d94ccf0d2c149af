"""The flags that say which runtime a command talks to.

Owns:  the options of every command that calls a runtime, and the client they amount to.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from holon.cli.access_options import warn_of_token
from holon.cli.places import Place

if TYPE_CHECKING:
    from holon.client.control_client import ControlClient

_Command = TypeVar("_Command", bound=Callable[..., Any])


class ClientFlags(TypedDict):
    """The flags, as click hands them over."""

    connect: str | None
    token: str | None
    token_file: Path | None


_OPTIONS = (
    click.option(
        "--connect",
        metavar="URL",
        show_default="the runtime of the home",
        help="The runtime to talk to: http://HOST:PORT or unix:/path/to/holon.sock.",
    ),
    click.option("--token", help="The token it asks for.", show_default="$HOLON_CONTROL_TOKEN"),
    click.option(
        "--token-file",
        type=Place(dir_okay=False, path_type=Path),
        help="The file that holds the token.",
    ),
)


def client_options(command: _Command) -> _Command:
    """Let the command be told which runtime it talks to."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_client(home: Path, flags: ClientFlags) -> "ControlClient":
    """Return a client of the runtime that is meant; raises NoRuntimeError when there is none."""
    from holon.client.control_client import ControlClient
    from holon.client.endpoint import Wanted, find_endpoint

    warn_of_token()
    wanted = Wanted(flags["connect"], flags["token"], flags["token_file"])
    return ControlClient(find_endpoint(home.absolute(), wanted, os.environ))
