"""Shared parts of the commands that call a running runtime.

Owns:  their common options, the default agent, the two output formats, paging, and commands that
       consist of a single call.
Rule 1: without --agent the agent is that of HOLON_AGENT_ID, or else the runtime's default.
Rule 2: JSON is printed as received; text output of external content is sanitized for the terminal.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypedDict, TypeVar

import click

from holon.cli.console import exit_codes
from holon.cli.console.completion import complete_agent
from holon.cli.console.options import (
    TEXT,
    PathParam,
    echo_json,
    home_option,
    json_option,
    with_home,
)
from holon.cli.service.access_options import warn_of_token

if TYPE_CHECKING:
    from holon.client.connection import ForeignServerError
    from holon.client.control_client import ControlClient, ControlError, Query
    from holon.model.values import JsonValue

P = ParamSpec("P")
_Command = TypeVar("_Command", bound=Callable[..., Any])
_ROWS_COUNT_MAX: Final = 200
_ROWS_COUNT_DEFAULT: Final = 50
_LAST_RESORT: Final = "main"  # when a runtime does not say which agent is its default
_CLIENT_OPTIONS = (
    click.option(
        "--connect",
        metavar="URL",
        show_default="the runtime of the home",
        help="The runtime to talk to: http://HOST:PORT or unix:/path/to/holon.sock.",
    ),
    click.option("--token", help="The control token.", show_default="$HOLON_CONTROL_TOKEN"),
    click.option(
        "--token-file",
        type=PathParam(dir_okay=False, path_type=Path),
        help="The file with the token.",
    ),
)


class ClientFlags(TypedDict):
    """The options as click passes them."""

    connect: str | None
    token: str | None
    token_file: Path | None


def _client_options(command: _Command) -> _Command:
    """Add the options that select a runtime."""
    for option in reversed(_CLIENT_OPTIONS):
        command = option(command)
    return command


def _open_client(home: Path, flags: ClientFlags) -> "ControlClient":
    """Return a client of the selected runtime; raises NoRuntimeError."""
    from holon.client.control_client import ControlClient
    from holon.client.endpoint import EndpointOptions, find_endpoint

    warn_of_token()
    wanted = EndpointOptions(flags["connect"], flags["token"], flags["token_file"])
    return ControlClient(find_endpoint(home.absolute(), wanted, os.environ))


class Target:
    """The runtime and the agent of a command."""

    def __init__(
        self, home: Path, flags: ClientFlags, *, agent: str | None = None, as_json: bool = False
    ) -> None:
        self.home = home
        self._flags = flags
        self.named_agent = None if agent is None else _checked(agent)
        self.as_json = as_json

    @functools.cached_property
    def client(self) -> "ControlClient":
        """Return a client of the runtime; raises NoRuntimeError."""
        return _open_client(self.home, self._flags)

    @functools.cached_property
    def agent_id(self) -> str:
        """The id of the selected agent."""
        if self.named_agent is not None:
            return self.named_agent
        told = as_object(self.client.get_json("/handshake")).get("runtime") or {}
        return str(told.get("default_agent") or _LAST_RESORT)

    @property
    def agent_flag(self) -> str:
        """The options that a suggested command needs for the same agent."""
        return "" if self.named_agent is None else f" --agent {self.named_agent}"

    def path(self, tail: str) -> str:
        """Return the path of a read route of the agent."""
        return f"/agents/{quoted(self.agent_id)}/{tail}"

    def read(
        self, tail: str, query: "Query | None" = None, *, part: str | None = None
    ) -> "JsonValue":
        """Read an object of the agent that has this key."""
        return as_object(self.client.get_json(self.path(tail), query=query), part)

    def control(
        self,
        tail: str,
        body: object = None,
        *,
        part: str | None = None,
        idempotency_key: str | None = None,
        method: str = "POST",
    ) -> "JsonValue":
        """Send a control request; the response has this key."""
        from holon.client.control_client import ControlError

        path = f"/control/agents/{quoted(self.agent_id)}/{tail}"
        try:
            answer = self.client.call(
                method, path, dict, body=body, idempotency_key=idempotency_key
            )
        except ControlError as error:
            raise _with_remedy(error, self.agent_id) from None
        return as_object(answer, part)

    def show(self, answer: "JsonValue", lines: Callable[[], Iterable[str]]) -> None:
        """Print a response: unchanged with --json, otherwise as these lines."""
        if self.as_json:
            echo_json(answer)
            return
        from holon.cli.console.terminal_text import plain

        for line in lines():
            click.echo(plain(line))


def _checked(agent: str) -> str:
    """Return the id if it is valid; an invalid one could select another path."""
    from holon.model.values import parse_agent_id

    return parse_agent_id(agent)


def as_list(answer: "JsonValue") -> "list[JsonValue]":
    """Return a response that is a list, or raise ForeignServerError."""
    if isinstance(answer, list):
        return answer
    raise _foreign()


def as_object(answer: "JsonValue", part: str | None = None) -> "JsonValue":
    """Return a response that is an object with this key, or raise ForeignServerError."""
    if isinstance(answer, dict) and (part is None or part in answer):
        return answer
    raise _foreign()


def _foreign() -> "ForeignServerError":
    from holon.client.connection import ForeignServerError

    return ForeignServerError(
        "the runtime sent an unexpected response",
        hint="it may be a runtime of another version, or another program",
    )


def _with_remedy(error: "ControlError", agent_id: str) -> "ControlError":
    """Return the error with the command that removes its cause, if there is one."""
    from msgspec.structs import replace

    from holon.client.control_client import ControlError

    if error.body.code != "agent_stopped":
        return error
    hint = f"resume it, then send this again: holon agent resume {agent_id}"
    return ControlError(error.status, replace(error.body, hint=hint))


@contextmanager
def until_interrupted(told: str | None = None) -> Iterator[None]:
    """Let Ctrl-C end a command that only watches; `told` says what continues meanwhile."""
    try:
        yield
    except KeyboardInterrupt:
        if told is not None:
            click.echo(f"holon: {with_home(told)}", err=True)
        sys.exit(exit_codes.INTERRUPTED)


def quoted(name: str) -> str:
    """Quote a name as one path segment."""
    from urllib.parse import quote

    return quote(name, safe="")


def runtime_options(command: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Pass the selected runtime to a command."""

    @home_option
    @_client_options
    @json_option
    @functools.wraps(command)
    def called(
        *, home: Path, as_json: bool, agent: str | None = None, **rest: Any
    ) -> None:  # the rest is what click read for the command itself
        flags = ClientFlags(
            connect=rest.pop("connect"),
            token=rest.pop("token"),
            token_file=rest.pop("token_file"),
        )
        target = Target(home, flags, agent=agent, as_json=as_json)
        command(target, **rest)  # type: ignore[call-arg]

    return called


def agent_options(command: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Pass the selected runtime and agent to a command."""
    return click.option(
        "--agent",
        envvar="HOLON_AGENT_ID",
        metavar="NAME",
        shell_complete=complete_agent,
        show_default="$HOLON_AGENT_ID, or the runtime's default agent",
        help="The agent.",
    )(runtime_options(command))


def page_options(command: _Command) -> _Command:
    """Add the paging options."""
    limited = click.option(
        "--limit",
        type=click.IntRange(1, _ROWS_COUNT_MAX),
        default=_ROWS_COUNT_DEFAULT,
        show_default=True,
        help="How many to show.",
    )
    follows = click.option("--after", type=TEXT, metavar="ID", help="Start after this id.")
    return limited(follows(command))


def calls(
    call: str, *, lines: "Callable[[JsonValue], Iterable[str]]", part: str | None = None
) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Make a command of a docstring: one call about an agent, and the lines that tell its answer.

    `call` is a method and a path. A GET reads; any other method asks the control routes. What the
    command takes goes into the place in the path that bears its name, or else into query or body.
    """
    method, _, path = call.partition(" ")

    def made(described: Callable[[], None]) -> Callable[..., None]:
        def command(target: Target, /, **given: Any) -> None:
            tail = path.format_map({name: quoted(str(value)) for name, value in given.items()})
            rest = {name: given[name] for name in given if f"{{{name}}}" not in path}
            if method == "GET":
                answer = target.read(tail, rest, part=part)
            else:
                answer = target.control(tail, rest or None, part=part, method=method)
            target.show(answer, lambda: lines(answer))
            _tell_of_more(target, answer)

        functools.update_wrapper(command, described)
        return agent_options(command)

    return made


def _tell_of_more(target: Target, page: "JsonValue") -> None:
    """Print the command for the next page, if any; JSON contains the cursor."""
    following = page.get("next_after")
    if following is not None and not target.as_json:
        from holon.cli.console.terminal_text import one_line

        click.echo(
            f"holon: there may be more; continue with --after {one_line(following)}", err=True
        )
