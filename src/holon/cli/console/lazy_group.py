"""Command groups that import their commands on use.

Owns:  the group, and the table row that locates a command.
Rule 1: listing commands imports none of them.
Rule 2: a command may have aliases from earlier versions; they work and are not listed.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyCommand(NamedTuple):
    """The module of a subcommand, and its help line."""

    module: str
    attribute: str
    summary: str


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use."""

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, LazyCommand],
        other_names: Mapping[str, LazyCommand] = MappingProxyType({}),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.other_names = other_names

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one subcommand."""
        lazy = self.table.get(cmd_name) or self.other_names.get(cmd_name)
        if lazy is None:
            return None
        command = getattr(import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete subcommands without importing them, and the group's own options."""
        from click.shell_completion import CompletionItem

        own = click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=lazy.summary)
            for name, lazy in sorted(self.table.items())
            if name.startswith(incomplete)
        ] + own

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in sorted(self.table.items())])
