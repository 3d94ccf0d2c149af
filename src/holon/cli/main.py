"""The `holon` command.

Owns:  the root command and the table of subcommands.
Rule 1: a subcommand's module is imported only when it is used, so that `holon --version` costs no
        more than reading this file.
Rule 2: a HolonError ends the process with one sentence and, where there is one, a hint.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

import click

from holon import __version__


class LazyCommand(NamedTuple):
    """Where a subcommand lives, and the line `--help` shows for it."""

    module: str
    attribute: str
    summary: str


COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "debug": LazyCommand(
            "holon.cli.debug_commands", "debug", "Look into a home without touching it."
        ),
    }
)


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one subcommand."""
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        command = getattr(import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in sorted(COMMANDS.items())])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command explains itself: holon debug check --help",
)
@click.version_option(__version__, prog_name="holon", message="%(prog)s %(version)s")
def main() -> None:
    """Holon: a runtime for long-lived agents that survives being killed.

    \b
    Examples:
      holon --version
      holon debug check                  is everything in order under HOLON_HOME?
      holon debug check --home /srv/h --json
    """
