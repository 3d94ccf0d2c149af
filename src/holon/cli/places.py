"""Paths a person names.

Owns:  the type of options and arguments that are paths, and the home that is meant without one.
Rule 1: a name that is empty, or is not text, is refused where it is typed: an empty one would be
        the directory one stands in, and what is no text can be written into no record.
Rule 2: who stands in a directory that is gone names paths in full.
"""

import os
from pathlib import Path
from typing import Any

import click


class Place(click.Path):
    """A path; it need not be there unless the option says so."""

    def convert(
        self,
        value: "str | os.PathLike[str]",
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path as the option wants it."""
        named = os.fspath(value)
        if not named:
            self.fail("it is empty", param, ctx)
        try:
            whole = os.path.abspath(named)
        except FileNotFoundError:
            self.fail("the directory you stand in is gone; give the whole path", param, ctx)
        if not is_text(whole):
            self.fail(f"{whole!r} is not UTF-8 text", param, ctx)
        return super().convert(value, param, ctx)


def default_home() -> Path:
    """Return the home that is meant when none is named."""
    try:
        return Path.home() / ".holon"
    except RuntimeError:
        raise click.UsageError(
            "nobody says where your home is: set HOME, or name one with --home"
        ) from None


def is_text(text: str) -> bool:
    """Whether this was text where it came from, and not other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
