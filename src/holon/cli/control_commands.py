"""`holon control`: what `holon agent start|stop|pause|resume|abort` was called earlier.

Owns:  the old name, for scripts that use it.
"""

import click

from holon.cli.agent_commands import abort, pause, resume, start, stop


@click.group()
def control() -> None:
    """Start, stop, pause, resume or abort an agent. Today this is: holon agent start, and so on.

    \b
    Examples:
      holon agent stop builder
    """


for each in (start, stop, pause, resume, abort):
    control.add_command(each)
