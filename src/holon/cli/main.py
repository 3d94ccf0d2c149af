"""The `holon` command.

Owns:  the root command and the table of subcommands.
Rule 1: a subcommand's module is imported only when it is used, so that `holon --version` costs no
        more than reading this file.
Rule 2: a HolonError ends the process with one sentence and, where there is one, a hint.
"""

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import click

from holon import __version__
from holon.cli import exit_codes
from holon.cli.lazy_group import LazyCommand, LazyGroup

if TYPE_CHECKING:
    from holon.model.errors import HolonError

COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "config": LazyCommand(
            "holon.cli.config_commands", "config", "Settings, providers and credentials."
        ),
        "debug": LazyCommand(
            "holon.cli.debug_commands", "debug", "Look into a home without touching it."
        ),
        "onboard": LazyCommand(
            "holon.cli.onboard_command",
            "onboard",
            "Set up a model: choose a provider, give its key, choose a model.",
        ),
        "run": LazyCommand(
            "holon.cli.run_command",
            "run",
            "Ask an agent one thing and print what it says when it has come to rest.",
        ),
    }
)


class RootGroup(LazyGroup):
    """The group that turns errors into sentences."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end with a sentence when it raises a HolonError."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except _holon_error() as error:
            _tell(error)


def _holon_error() -> "type[HolonError]":
    # Asked for only once something was raised: no command pays for the model before that.
    from holon.model.errors import HolonError

    return HolonError


def _tell(error: "HolonError") -> None:
    from holon.model import errors

    unusable = (
        errors.BadInputError,
        errors.HomeInUseError,
        errors.SchemaTooNewError,
        errors.NotAHolonDatabaseError,
        errors.StoreUnwritableError,
    )
    click.echo(f"holon: {error.message}", err=True)
    if error.hint is not None:
        click.echo(f"       {error.hint}", err=True)
    sys.exit(exit_codes.UNUSABLE if isinstance(error, unusable) else exit_codes.FAILED)


@click.group(
    cls=RootGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command explains itself: holon config set --help",
)
@click.version_option(__version__, prog_name="holon", message="%(prog)s %(version)s")
def main() -> None:
    """Holon: a runtime for long-lived agents that survives being killed.

    \b
    Examples:
      holon --version
      holon run "What is a holon?"       one prompt, one answer
      holon onboard                      what is configured, what is missing?
      holon config set model.default anthropic/claude-sonnet-5-5
      holon config doctor                can the model be used?
      holon run "What is a holon?"
      holon debug check                  is everything in order under HOLON_HOME?
      holon debug check --home /srv/h --json
    """
