"""What most commands take and how they answer.

Owns:  `--home`, `--json`, and the one line of JSON a script reads.
Rule 1: a line of JSON is as harmless on a terminal as text is: whatever a terminal would obey
        stands in it as an escape, so nothing is lost to a reader of JSON either.
Rule 2: who asked for JSON gets an object whether the command succeeds or fails.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from holon.cli.places import Place, default_home
from holon.cli.suggested_commands import note_home

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue

_Command = TypeVar("_Command", bound=Callable[..., Any])


def home_option(command: _Command) -> _Command:
    """Let the command be told which home it works on."""
    return click.option(
        "--home",
        envvar="HOLON_HOME",
        type=Place(file_okay=False, path_type=Path),
        default=default_home,
        callback=note_home,
        show_default="$HOLON_HOME, or ~/.holon",
        help="The home to work on.",
    )(command)


def json_option(command: _Command) -> _Command:
    """Let the command be asked for JSON, and tell its failure in JSON then."""

    @functools.wraps(command)
    def reporting(*args: Any, as_json: bool, **kwargs: Any) -> Any:
        from holon.cli.failure_report import reported

        with reported(as_json=as_json):
            return command(*args, as_json=as_json, **kwargs)

    return cast(_Command, json_flag(reporting))


def json_flag(command: _Command) -> _Command:
    """Let the command be asked for JSON, where it tells of its failure itself."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def echo_json(answer: "JsonValue") -> None:
    """Print one object on one line."""
    from holon.wire.codec import encode

    text = encode(answer).decode()
    click.echo(text if text.isascii() else _escaped(text))


def _escaped(text: str) -> str:
    from holon.cli.terminal_text import is_hidden

    return "".join(f"\\u{ord(char):04x}" if is_hidden(char) else char for char in text)
