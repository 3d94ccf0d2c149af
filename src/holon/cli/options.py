"""What most commands take and how they answer.

Owns:  `--home`, `--json`, and the one line of JSON a script reads.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue

_Command = TypeVar("_Command", bound=Callable[..., Any])


def home_option(command: _Command) -> _Command:
    """Let the command be told which home it works on."""
    return click.option(
        "--home",
        envvar="HOLON_HOME",
        type=click.Path(file_okay=False, path_type=Path),
        default=lambda: Path.home() / ".holon",
        show_default="$HOLON_HOME, or ~/.holon",
        help="The home to work on.",
    )(command)


def json_option(command: _Command) -> _Command:
    """Let the command be asked for JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def echo_json(answer: "JsonValue") -> None:
    """Print one object on one line."""
    from holon.wire.codec import encode

    click.echo(encode(answer).decode())
