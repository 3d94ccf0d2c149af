"""`holon completion`: what a shell needs in order to complete our commands.

Owns:  the script; it asks `holon` itself at every press of Tab, so it never grows old.
"""

from typing import Final

import click

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_HOLON_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete holon's commands.

    \b
    Examples:
      holon completion bash > ~/.local/share/bash-completion/completions/holon
      holon completion zsh > "${fpath[1]}/_holon"
      holon completion fish > ~/.config/fish/completions/holon.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, f"click completes in no {shell}"
    root = click.get_current_context().find_root().command
    click.echo(_script(kind(root, {}, "holon", _VARIABLE)))


def _script(shell: "click.shell_completion.ShellComplete") -> str:
    """The script alone: whether the shell is new enough is for its user to see."""
    return shell.source_template % shell.source_vars()
