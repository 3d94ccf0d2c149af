"""A runtime in small, to be killed: starts the commands it is told to, and says so.

python -m tests.adapters.exec.starter ROOT [tty] RUN_ID=COMMAND …
"""

import asyncio
import os
import sys
from pathlib import Path

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.system.clock import SystemClock
from holon.model.tasks import CommandSpec


async def main(root: Path, commands: list[str]) -> None:
    """Start them all, name each, then the process they were started by; stay until killed."""
    shell = LocalShell(root, os.environ, SystemClock())
    is_tty = commands[0] == "tty"
    for command in commands[is_tty:]:
        run_id, _, cmd = command.partition("=")
        await shell.start(
            CommandSpec(run_id=run_id, cmd=cmd, workdir="/", tty=is_tty, accepts_input=True)
        )
        print(run_id, flush=True)
    print(shell.server_pid, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
