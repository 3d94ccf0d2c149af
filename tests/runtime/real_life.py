"""A host with a real shell on a real home; also a program of its own, to be killed.

Owns:  `life`: one life of such a host. Run as a program it has one command run and then waits,
       saying so when the command has become a task.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.directories import SystemPlaces
from holon.adapters.system.ids import TimeOrderedIds
from holon.model.events.event import TaskCreated
from holon.runtime.host import Host
from holon.tools.registry import ToolRegistry, local_tools
from tests.runtime.cast import calls, prompt_for, rule, says
from tests.support.builders import MAIN, an_identity
from tests.support.hosts import a_host
from tests.support.scripted_provider import Script, ScriptedProvider, ScriptedRule
from tests.support.single_model import SingleModel

PATIENCE_S = 60


@asynccontextmanager
async def life(home: Path, *rules: ScriptedRule) -> AsyncIterator[Host]:
    """One life of a host on this home."""
    clock = SystemClock()
    store = open_store(home)
    shell = LocalShell(home / "runs", {"PATH": os.environ["PATH"]}, clock)
    host = a_host(
        store=store,
        clock=clock,
        ids=TimeOrderedIds(),
        models=SingleModel(ScriptedProvider(Script(rules=rules), clock)),
        tools=ToolRegistry(local_tools()),
        home=str(home),
        shell=shell,
        places=SystemPlaces(),
    )
    try:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as serving:
                serving.start_soon(host.run)
                await host.wait_ready()
                if await host.reads.agents.agent(MAIN) is None:
                    await host.control.create_agent(an_identity())
                yield host
                serving.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()
        shell.close()


async def _run_one_command(home: Path, cmd: str, yield_time_ms: int) -> None:
    script = rule("begin", calls("ExecCommand", cmd=cmd, yield_time_ms=yield_time_ms), says("ok"))
    async with life(home, script) as host:
        await host.admit(prompt_for("begin"))
        async for audit in host.events.follow(MAIN, after=0):
            if isinstance(audit.event, TaskCreated):
                sys.stdout.write("the task is on record\n")
                sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(_run_one_command, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
