"""Commands, arguments and options are a promise: a change to one is a diff somebody reads.

After a change that is meant, write the tree anew and commit the difference:

    HOLON_REFRESH_SNAPSHOTS=1 .venv/bin/python -m pytest tests/surfaces
"""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from holon.cli.console.lazy_group import LazyGroup
from holon.cli.main import main

SHELL_SCRIPT = ("holon", "completion")  # prints a script and works on no home
SNAPSHOT = Path(__file__).resolve().parent / "command_tree.snap"


def walk(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the command and all below it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, (*path, name))


TREE = dict(walk(main, ("holon",)))


def shape_of(command: click.Command) -> Iterator[str]:
    """Yield one line for each argument and option."""
    for parameter in sorted(command.params, key=lambda one: isinstance(one, click.Option)):
        if isinstance(parameter, click.Option):
            names = ", ".join(sorted(parameter.opts + parameter.secondary_opts))
            needed = " (required)" if parameter.required else ""
            yield f"    {names}{'' if parameter.is_flag else ' VALUE'}{needed}"
        else:
            yield f"    {parameter.name}{'' if parameter.required else '?'}"


def test_the_commands_are_the_reviewed_ones() -> None:
    blocks = ["\n".join([" ".join(path), *shape_of(command)]) for path, command in TREE.items()]
    found = "\n".join(blocks) + "\n"
    if os.environ.get("HOLON_REFRESH_SNAPSHOTS"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert found == SNAPSHOT.read_text(encoding="utf-8"), "see this file's docstring"


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_every_command_explains_itself_with_examples(path: tuple[str, ...]) -> None:
    for flag in ("-h", "--help"):
        shown = CliRunner().invoke(main, [*path[1:], flag])
        assert shown.exit_code == 0
        first_line = (TREE[path].help or "").splitlines()[0]
        assert first_line in " ".join(shown.stdout.split())
        assert "Examples:" in shown.stdout


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_a_group_lists_each_command_with_the_line_it_gives_of_itself(path: tuple[str, ...]) -> None:
    group = TREE[path]
    if isinstance(group, LazyGroup):
        for name, lazy in group.table.items():
            assert lazy.summary == (TREE[(*path, name)].help or "").splitlines()[0]


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_every_command_that_does_something_speaks_json(path: tuple[str, ...]) -> None:
    command = TREE[path]
    if not isinstance(command, click.Group) and path != SHELL_SCRIPT:
        options = [name for parameter in command.params for name in parameter.opts]
        assert "--json" in options
        assert "--home" in options or path == ("holon", "config", "schema")
