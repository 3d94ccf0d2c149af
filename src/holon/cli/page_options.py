"""Lists that come a page at a time.

Owns:  the options that choose a page, and the word that there is another one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from holon.cli.typed_values import WORDS

if TYPE_CHECKING:
    from holon.cli.runtime_call import Target
    from holon.model.json_value import JsonValue

_Command = TypeVar("_Command", bound=Callable[..., Any])
_ROWS_COUNT_MAX: Final = 200
_ROWS_COUNT_DEFAULT: Final = 50


def page_options(command: _Command) -> _Command:
    """Let the command be told how much of a list to show, and from where on."""
    limited = click.option(
        "--limit",
        type=click.IntRange(1, _ROWS_COUNT_MAX),
        default=_ROWS_COUNT_DEFAULT,
        show_default=True,
        help="How many to show.",
    )
    follows = click.option("--after", type=WORDS, metavar="ID", help="Go on after this one.")
    return limited(follows(command))


def tell_of_more(target: "Target", page: "JsonValue") -> None:
    """Say how to go on where a page is not the last one; a script sees the cursor itself."""
    following = page.get("next_after")
    if following is not None and not target.as_json:
        from holon.cli.terminal_text import one_line

        click.echo(f"holon: there may be more; go on with --after {one_line(following)}", err=True)
