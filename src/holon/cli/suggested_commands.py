"""Commands that are suggested to a person.

Owns:  what a suggestion takes over from the command line it answers.
Rule 1: a command that is suggested works on the same home: who named one with --home would
        otherwise be led to another. One from the environment is there for the next command as well.
Rule 2: whoever writes a hint names the command alone; the home is put in where it is told.
"""

import re
import shlex
from pathlib import Path
from typing import Final

import click

_HOME: Final = "holon.home"  # the one that was given by hand, if one was
_COMMANDS: Final = re.compile(
    r"\bholon (?:"
    r"(?:agent model|config (?:credentials|models|providers)) [a-z]+"
    r"|(?:agent|daemon|debug|events|memory|skills|task|template|timer|trigger|work-item|workspace"
    r"|config(?! schema| credentials| models| providers)) [a-z-]+"
    r"|backup|onboard|prompt|restore|run|serve|status|tail|transcript"
    r")(?![a-z-])(?! --home)"
)


def note_home(context: click.Context, parameter: click.Parameter, home: Path) -> Path:
    """Keep in mind which home was named by hand."""
    given = context.get_parameter_source(str(parameter.name))
    if given is click.core.ParameterSource.COMMANDLINE:
        context.meta[_HOME] = str(home)
    return home


def with_home(text: str) -> str:
    """Return a text with the home in each command it suggests, where one was named by hand."""
    context = click.get_current_context(silent=True)
    home = None if context is None else context.meta.get(_HOME)
    if home is None:
        return text
    flag = f" --home {shlex.quote(home)}"
    return _COMMANDS.sub(lambda found: found[0] + flag, text)
