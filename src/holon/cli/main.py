"""The `holon` command.

Owns:  the root command and the table of subcommands.
Rule 1: a subcommand's module is imported on use, so that `holon --version` loads only this file.
Rule 2: objects loaded at start live until the end, so they are excluded from garbage collection,
        and none runs at exit.
Rule 3: a HolonError ends the process with its message and hint; so does output that cannot be
        written. A closed pipe is not reported as a failure. Ctrl-C ends every command with the same
        exit code.
"""

import errno
import gc
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from holon import __version__
from holon.cli.console import exit_codes
from holon.cli.console.lazy_group import LazyCommand, LazyGroup
from holon.cli.console.options import is_text

if TYPE_CHECKING:
    from holon.model.errors import HolonError

COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "agent": LazyCommand(
            "holon.cli.agents.commands",
            "agent",
            "List, create, start and stop agents, and choose their models.",
        ),
        "backup": LazyCommand(
            "holon.cli.home.backup",
            "backup",
            "Back up a home into one FILE, also while its service runs.",
        ),
        "completion": LazyCommand(
            "holon.cli.console.completion",
            "completion",
            "Print the completion script for a shell.",
        ),
        "config": LazyCommand(
            "holon.cli.config.commands", "config", "Settings, providers and credentials."
        ),
        "daemon": LazyCommand(
            "holon.cli.service.daemon", "daemon", "Run the agents of a home in the background."
        ),
        "debug": LazyCommand(
            "holon.cli.home.debug", "debug", "Inspect a home without changing it."
        ),
        "events": LazyCommand(
            "holon.cli.events.commands", "events", "Read or follow the raw events of an agent."
        ),
        "memory": LazyCommand(
            "holon.cli.memory",
            "memory",
            "Search the memory of an agent, and manage its index.",
        ),
        "onboard": LazyCommand(
            "holon.cli.config.onboard",
            "onboard",
            "Configure a model: choose a provider, enter its key, choose a model.",
        ),
        "prompt": LazyCommand(
            "holon.cli.prompt", "prompt", "Send a prompt to an agent of a running runtime."
        ),
        "restore": LazyCommand(
            "holon.cli.home.backup",
            "restore",
            "Restore a home from a backup, completely or not at all.",
        ),
        "run": LazyCommand(
            "holon.cli.run.command",
            "run",
            "Send one prompt to an agent and print its answer when it has finished.",
        ),
        "serve": LazyCommand(
            "holon.cli.service.serve", "serve", "Run the agents of a home until interrupted."
        ),
        "skills": LazyCommand(
            "holon.cli.guidance", "skills", "List, install and uninstall the skills of an agent."
        ),
        "status": LazyCommand(
            "holon.cli.agents.status",
            "status",
            "Show what an agent does and what it waits for.",
        ),
        "tail": LazyCommand(
            "holon.cli.events.tail", "tail", "Show the newest reports of an agent, oldest first."
        ),
        "task": LazyCommand(
            "holon.cli.tasks",
            "task",
            "Start, list, control and stop the background tasks of an agent.",
        ),
        "template": LazyCommand(
            "holon.cli.agents.templates",
            "template",
            "List, install and remove the templates of agents.",
        ),
        "timer": LazyCommand(
            "holon.cli.wake",
            "timer",
            "Wake an agent at a time, once or repeatedly.",
        ),
        "transcript": LazyCommand(
            "holon.cli.events.transcript",
            "transcript",
            "Show the newest turns of an agent, oldest first.",
        ),
        "trigger": LazyCommand(
            "holon.cli.wake",
            "trigger",
            "Show, rotate and revoke the address at which external systems wake an agent.",
        ),
        "work-item": LazyCommand(
            "holon.cli.work", "work_item", "List and manage the work items of an agent."
        ),
        "workspace": LazyCommand(
            "holon.cli.workspaces",
            "workspace",
            "List and choose the directories an agent works in.",
        ),
    }
)

OTHER_NAMES: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "agents": COMMANDS["agent"],
        "control": LazyCommand(
            "holon.cli.agents.commands", "control", "Start, stop or abort an agent."
        ),
    }
)

# Between two searches for garbage. Python's 700 suit scripts; loading what a run needs makes 60,000
# things, all of which stay.
ALLOCATIONS_COUNT: Final = 100_000
_WORDS: Final = "holon.words"  # of the command line, as they were given
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class RootGroup(LazyGroup):
    """The root group, which reports errors as messages."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as the program; tests call `main`, which leaves the interpreter unchanged."""
        gc.set_threshold(ALLOCATIONS_COUNT)
        gc.enable()  # __main__ turned it off for loading
        try:
            return super().__call__(*args, **kwargs)
        finally:
            gc.freeze()  # the end takes down everything anyway: no use in looking through it first

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Parse and run; report output that cannot be written."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            # A file of ours that could not be written has a name.
            if error.filename is not None or error.errno not in _NO_ROOM:
                raise
            _give_up_output(error)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; arguments that are not UTF-8 are refused."""
        ctx.meta[_WORDS] = tuple(args)
        for each in args:
            if not ctx.resilient_parsing and not is_text(each):
                ctx.fail(f"{each!r} is not UTF-8 text")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; report a HolonError."""
        try:
            return super().invoke(ctx)
        except click.UsageError as slip:
            from holon.cli.console.failures import tell_slip

            tell_slip(slip, ctx.meta[_WORDS])
            raise
        except (click.exceptions.Exit, click.ClickException):
            raise
        except KeyboardInterrupt:
            _end_interrupted()
        except click.Abort as abort:
            if isinstance(abort.__context__, KeyboardInterrupt):  # at a question
                _end_interrupted()
            if isinstance(abort.__context__, EOFError):
                _end_unanswered()
            raise
        except _holon_error() as error:
            _tell(error)


def _end_interrupted() -> NoReturn:
    click.echo("holon: interrupted", err=True)
    sys.exit(exit_codes.INTERRUPTED)


def _end_unanswered() -> NoReturn:
    click.echo("\nholon: the input ended before the question was answered", err=True)
    sys.exit(exit_codes.FAILED)


def _give_up_output(error: OSError) -> NoReturn:
    import os

    click.echo(f"holon: cannot write the output: {error.strerror}", err=True)
    with open(os.devnull, "wb") as nowhere:  # what is still in the buffer is tried again at exit
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    sys.exit(exit_codes.FAILED)


def _holon_error() -> "type[HolonError]":
    # Asked for only once something was raised: no command pays for the model before that.
    from holon.model.errors import HolonError

    return HolonError


def _tell(error: "HolonError") -> None:
    from holon.cli.console.failures import say
    from holon.model import errors

    unusable = (
        errors.BadInputError,
        errors.DatabaseMissingError,
        errors.ForeignLogError,
        errors.HomeInUseError,
        errors.HomeUnusableError,
        errors.LogLostError,
        errors.SchemaTooNewError,
        errors.NotAHolonDatabaseError,
        errors.StoreUnwritableError,
    )
    say(error)
    sys.exit(exit_codes.UNUSABLE if isinstance(error, unusable) else exit_codes.FAILED)


@click.group(
    cls=RootGroup,
    table=COMMANDS,
    other_names=OTHER_NAMES,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command explains itself: holon config set --help",
)
@click.version_option(__version__, prog_name="holon", message="%(prog)s %(version)s")
def main() -> None:
    """Holon: an event-driven runtime for long-lived agents.

    \b
    Examples:
      holon onboard                      what is configured, what is missing?
      holon config set model.default anthropic/claude-sonnet-5-5
      holon config doctor                can the model be used?
      holon run "What is the capital of France?"    one prompt, one answer
      holon daemon start                 the runtime, in the background
      holon prompt --wait "Is the build green?"
      holon tail --follow                what the agent tells you
      holon status                       what it does and what it waits for
      holon debug check --home /srv/h    is everything in order there?
    """
