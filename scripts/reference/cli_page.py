"""The page that describes the command line, from the commands themselves.

Owns:  how a command is put into Markdown. Nothing is said here that `--help` does not say.
Rule 1: an option that many commands take is described once, and only named after that.
"""

import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import click

from holon.cli.main import main

_SHARED_COUNT_MIN: Final = 8


class _Described(NamedTuple):
    """One command, with the rows of its options."""

    usage: str
    help: str
    options: tuple[tuple[str, str], ...]


def cli_lines() -> Iterator[str]:
    """Describe every command, in the order of their names."""
    commands = list(_described(main, ("holon",), None))
    counts = Counter(row for command in commands for row in command.options)
    shared = [row for row, count in counts.items() if count >= _SHARED_COUNT_MIN]
    yield from ("## Options that many commands take", "", *_rows(shared))
    for command in commands:
        yield from (f"## `{command.usage}`", "", *_paragraphs(command.help))
        yield from _rows([row for row in command.options if row not in shared])
        also = ", ".join(f"`{names}`" for names, _ in command.options if (names, _) in shared)
        yield from (f"Also: {also}.", "") if also else ()


def _described(
    command: click.Command, path: tuple[str, ...], parent: click.Context | None
) -> Iterator[_Described]:
    context = click.Context(command, info_name=path[-1], parent=parent, **command.context_settings)
    records = [
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts
    ]
    yield _Described(
        " ".join([*path, *command.collect_usage_pieces(context)]),
        inspect.cleandoc(command.help or ""),
        tuple(record for record in records if record is not None),
    )
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, f"{name} is listed and not there"
            yield from _described(below, (*path, name), context)


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs as they are; a block that keeps its line breaks becomes code."""
    for part in text.split("\n\n"):
        if part.startswith("\b\n"):
            title, *rows = part.removeprefix("\b\n").splitlines()
            yield from (title, "", "```", *(row.removeprefix("  ") for row in rows), "```", "")
        else:
            yield from (part, "")


def _rows(options: list[tuple[str, str]]) -> Iterator[str]:
    if options:
        yield from ("| option | |", "|---|---|")
        for names, says in options:
            yield f"| `{_cell(names)}` | {_cell(says)} |"
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
