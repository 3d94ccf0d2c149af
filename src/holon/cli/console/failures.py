"""Reports the failure of a command.

Owns:  the error object on stdout under --json; which refusals of the runtime are errors of the
       command line; hints that name a command in place of an HTTP route.
Rule 1: the message for people goes to stderr, with or without --json.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

import click

from holon.cli.console.options import echo_json, with_home

if TYPE_CHECKING:
    from holon.model.errors import HolonError
    from holon.model.values import JsonValue

# What an option or an argument cannot mean, whatever state the runtime is in.
_SLIPS: Final = frozenset(
    {
        "bad_duration",
        "bad_id",
        "bad_idempotency_key",
        "bad_model_ref",
        "bad_objective",
        "bad_query",
        "bad_syntax",
    }
)
_HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agent_not_found": "see which there are with: holon agent list",
        "unauthorized": "give the runtime's token with --token-file HOME/run/token, or --token",
        "workspace_not_found": "see which there are with: holon workspace list{agent}",
    }
)


@contextmanager
def reported(*, as_json: bool) -> Iterator[None]:
    """Print a failure of the block as JSON if requested, and re-raise it."""
    try:
        yield
    except Exception as error:
        from holon.model.errors import HolonError

        if not isinstance(error, HolonError):
            raise
        told = _with_command(error)
        if as_json:
            echo_json(_body(told))
        raise _as_slip(told) from None


def tell_slip(slip: click.UsageError, words: Sequence[str]) -> None:
    """Print a usage error as JSON if the command line requests JSON."""
    if "--json" in words:
        echo_json({"ok": False, "error": slip.format_message(), "code": "bad_usage"})


def end_failed(error: "HolonError", exit_code: int, *, as_json: bool) -> NoReturn:
    """Report a failure and exit with this code."""
    if as_json:
        echo_json(_body(error))
    say(error)
    sys.exit(exit_code)


def say(error: "HolonError") -> None:
    """Print a failure, sanitized: a message may quote external text."""
    from holon.cli.console.terminal_text import plain

    click.echo(f"holon: {plain(error.message)}", err=True)
    if error.hint is not None:
        click.echo(f"       {with_home(plain(error.hint))}", err=True)


def _with_command(error: "HolonError") -> "HolonError":
    """Return the error with a command as its hint, if there is one."""
    from holon.client.control_client import ControlError

    if not isinstance(error, ControlError) or error.body.code not in _HINTS:
        return error
    from msgspec.structs import replace

    hint = _HINTS[error.body.code].format(agent=_agent_flag())
    return ControlError(error.status, replace(error.body, hint=hint))


def _agent_flag() -> str:
    """Return the --agent option for a suggested command, if it was given."""
    context = click.get_current_context(silent=True)
    agent = None if context is None else context.params.get("agent")
    return "" if agent is None else f" --agent {agent}"


def _body(error: "HolonError") -> "JsonValue":
    from holon.client.control_client import ControlError
    from holon.wire.codec import json_of

    if isinstance(error, ControlError):
        told = json_of(error.body)
    else:
        told = {"ok": False, "error": error.message, "code": error.code}
    return told if error.hint is None else {**told, "hint": with_home(error.hint)}


def _as_slip(error: "HolonError") -> "HolonError":
    """Return the error as bad input if its code says so; the exit code differs."""
    from holon.client.control_client import ControlError
    from holon.model.errors import BadInputError

    if isinstance(error, ControlError) and error.body.code in _SLIPS:
        return BadInputError(error.message, hint=error.hint)
    return error
