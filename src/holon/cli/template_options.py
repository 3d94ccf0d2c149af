"""Names of templates, completed by the shell.

Owns:  the completion of `--template` and of template arguments.
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
