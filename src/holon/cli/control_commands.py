"""`holon control`: what `holon agent start|stop|abort` was called earlier.

Owns:  the old name, for scripts that use it.
"""

import click

from holon.cli.agent_commands import abort, start, stop


@click.group()
def control() -> None:
    """Start, stop or abort an agent. Today this is: holon agent start|stop|abort.

    \b
    Examples:
      holon agent stop builder
    """


for each in (start, stop, abort):
    control.add_command(each)
