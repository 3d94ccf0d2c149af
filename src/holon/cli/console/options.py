"""Shared options and parameter types of the command line.

Owns:  parameter types of paths, texts and bounded numbers; the default home; `--home` and `--json`;
       reading a text from stdin; the JSON line; completing suggested commands.
Rule 1: an empty or non-UTF-8 path is refused at the command line: an empty one would mean the
        current directory, and non-text cannot be stored in a record.
Rule 2: if the current directory was deleted, only absolute paths are accepted.
Rule 3: the bounds repeat those of model/limits, because `--help` must not import the model; a test
        compares them.
Rule 4: stdin is read up to the maximum size of a text, because a pipe may never end.
Rule 5: a suggested command names the same home if it was given with --home. A home from the
        environment applies to the next command anyway.
Rule 6: code that writes a hint names the command only; the home is inserted on output.
Rule 7: JSON output escapes everything a terminal would interpret, so nothing is lost to a reader of
        JSON.
Rule 8: with --json the output is an object on success and on failure.
"""

import functools
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_DAY_MS: Final = 86_400_000
TIMER_AFTER: Final = click.IntRange(1, 366 * _DAY_MS)
TIMER_EVERY: Final = click.IntRange(1_000, 366 * _DAY_MS)
YIELD_TIME: Final = click.IntRange(0, 600_000)
OUTPUT_TOKENS: Final = click.IntRange(1, 100_000)
_HOME: Final = "holon.home"  # the one that was given by hand, if one was
_COMMANDS: Final = re.compile(
    r"\bholon (?:"
    r"(?:agent model|config (?:credentials|models|providers)) [a-z]+"
    r"|(?:agent|daemon|debug|events|memory|skills|task|template|timer|trigger|work-item|workspace"
    r"|config(?! schema| credentials| models| providers)) [a-z-]+"
    r"|backup|onboard|prompt|restore|run|serve|status|tail|transcript"
    r")(?![a-z-])(?! --home)"
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


class PathParam(click.Path):
    """A path, absolute and UTF-8; it need not exist unless the option says so."""

    def convert(
        self,
        value: "str | os.PathLike[str]",
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the absolute path in the option's type."""
        named = os.fspath(value)
        if not named:
            self.fail("it is empty", param, ctx)
        try:
            whole = os.path.abspath(named)
        except FileNotFoundError:
            self.fail("the current directory no longer exists; give an absolute path", param, ctx)
        if not is_text(whole):
            self.fail(f"{whole!r} is not UTF-8 text", param, ctx)
        return super().convert(value, param, ctx)


def default_home() -> Path:
    """Return the default home."""
    try:
        return Path.home() / ".holon"
    except RuntimeError:
        raise click.UsageError("your home directory is unknown: set HOME, or use --home") from None


def is_text(text: str) -> bool:
    """Whether an argument was valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class TextParam(click.ParamType[str]):
    """A non-empty text within the runtime's limit."""

    name = "text"

    def __init__(self, chars_max: int | None = None) -> None:
        self.chars_max = chars_max

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Validate the text."""
        if not value.strip():
            self.fail("it is empty", param, ctx)
        if self.chars_max is not None and len(value) > self.chars_max:
            self.fail(f"it is longer than {self.chars_max} characters", param, ctx)
        return value


class HeaderTextParam(TextParam):
    """A text that is sent in a header."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Validate the text."""
        if not value.isascii() or not value.isprintable():
            self.fail("only printable ASCII characters are allowed", param, ctx)
        return super().convert(value, param, ctx)


TEXT: Final = TextParam()
LABEL: Final = TextParam(500)
OBJECTIVE: Final = TextParam(4_000)
IDEMPOTENCY_KEY: Final = HeaderTextParam(200)


def text_of(word: str) -> str:
    """Return the text, or stdin for `-`; raises UsageError."""
    return _read_stdin() if word == "-" else word


def _read_stdin() -> str:
    from holon.model.limits import MESSAGE_BODY_BYTES_MAX

    if sys.stdin is None:  # closed by the calling process
        raise click.UsageError("stdin is closed; cannot read the text")
    content = sys.stdin.buffer.read(MESSAGE_BODY_BYTES_MAX + 1)
    if len(content) > MESSAGE_BODY_BYTES_MAX:
        raise click.UsageError(
            f"stdin is longer than {MESSAGE_BODY_BYTES_MAX} bytes;"
            " put large content into a file the agent can read"
        )
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise click.UsageError("stdin is not UTF-8 text") from None


def note_home(context: click.Context, parameter: click.Parameter, home: Path) -> Path:
    """Record which home was given explicitly."""
    given = context.get_parameter_source(str(parameter.name))
    if given is click.core.ParameterSource.COMMANDLINE:
        context.meta[_HOME] = str(home)
    return home


def with_home(text: str) -> str:
    """Insert an explicitly given home into each suggested command."""
    context = click.get_current_context(silent=True)
    home = None if context is None else context.meta.get(_HOME)
    if home is None:
        return text
    flag = f" --home {shlex.quote(home)}"
    return _COMMANDS.sub(lambda found: found[0] + flag, text)


def home_option(command: _Command) -> _Command:
    """Add the --home option."""
    return click.option(
        "--home",
        envvar="HOLON_HOME",
        type=PathParam(file_okay=False, path_type=Path),
        default=default_home,
        callback=note_home,
        show_default="$HOLON_HOME, or ~/.holon",
        help="The home to work on.",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add the --json option, which also applies to failures."""

    @functools.wraps(command)
    def reporting(*args: Any, as_json: bool, **kwargs: Any) -> Any:
        from holon.cli.console.failures import reported

        with reported(as_json=as_json):
            return command(*args, as_json=as_json, **kwargs)

    return cast(_Command, json_flag(reporting))


def json_flag(command: _Command) -> _Command:
    """Add the --json option to a command that reports its failures itself."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def echo_json(answer: "JsonValue") -> None:
    """Print one object on one line."""
    from holon.wire.codec import encode

    text = encode(answer).decode()
    click.echo(text if text.isascii() else _escaped(text))


def _escaped(text: str) -> str:
    from holon.cli.console.terminal_text import is_hidden

    return "".join(f"\\u{ord(char):04x}" if is_hidden(char) else char for char in text)
