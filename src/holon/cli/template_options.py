"""Names of templates, completed by the shell and by us.

Owns:  the completion of `--template` and of template arguments, and the forms people may write them
       in besides those a runtime takes.
"""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_template(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Offer the user's templates."""
    del ctx, param
    import os

    from click.shell_completion import CompletionItem

    from holon.adapters.files.user_home import templates_root, user_home_of

    home = user_home_of(os.environ)
    try:
        names = [] if home is None else sorted(os.listdir(templates_root(home)))
    except OSError:
        names = []
    return [
        CompletionItem(name)
        for name in names
        if name.startswith(incomplete) and not name.startswith(".")
    ]


def as_address(text: str) -> str:
    """Return an address without the slash that one copied from a browser may end in."""
    return text.rstrip("/") if _is_address(text) else text


def as_selector(text: str) -> str:
    """Return what a person wrote as the store reads it; a path is completed where they stand."""
    return as_source(text) if "/" in text or text.startswith(".") else text


def as_source(text: str) -> str:
    """Do the same where no id is meant: a bare name is a directory here."""
    import os

    if _is_address(text):
        return as_address(text)
    try:
        return os.path.abspath(text)
    except FileNotFoundError:
        raise click.UsageError(
            "the directory you stand in is gone; give the whole path of the template"
        ) from None


def _is_address(text: str) -> bool:
    return "://" in text or text.lower().startswith(("http:", "https:", "github.com/"))
