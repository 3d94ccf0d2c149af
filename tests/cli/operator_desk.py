"""An operator at a terminal, and a real server to talk to.

The commands run in this process, on a thread of their own; their calls go over a real socket.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from click.testing import CliRunner, Result

from holon.adapters.system.clock import SystemClock
from holon.cli.main import main
from holon.model.budgets import BudgetPolicy
from holon.serve.compose import ExecOptions, HostOptions
from tests.support.control_server import ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

PATIENCE_S = 60
EVIL = "I looked.\x1b]0;owned\x07 \x1b[2JAnd saw\u202e it."
HARMLESS = "I looked. And saw it."
SCRIPT = Script(
    rules=(
        ScriptedRule(
            when="look",
            rounds=(
                ScriptedRound(calls=(ScriptedCall(name="ExecCommand", input={"cmd": "echo hi"}),)),
                ScriptedRound(text=EVIL),
            ),
        ),
        ScriptedRule(when="fail", rounds=(ScriptedRound(fail="auth_rejected"),)),
        ScriptedRule(rounds=(ScriptedRound(text="Hello yourself."),)),
    )
)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where commands are typed."""

    server: ControlServer

    async def holon(self, *arguments: str, stdin: str | bytes | None = None) -> Result:
        """Run a command to its end, whatever that is."""
        environ = {"HOLON_HOME": str(self.server.home), "HOLON_AGENT_ID": None}
        connect = ("--connect", f"unix:{self.server.local.socket_path}")
        typed = partial(CliRunner().invoke, main, [*arguments, *connect], input=stdin, env=environ)
        with anyio.fail_after(PATIENCE_S):
            done = await to_thread.run_sync(typed)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    async def said(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command that must succeed, for what it prints."""
        done = await self.holon(*arguments, stdin=stdin)
        assert (done.exit_code, done.stderr) == (0, ""), done.stderr
        return done.stdout

    async def told(self, *arguments: str) -> Any:
        """Run a command that must succeed, for its JSON."""
        return json.loads(await self.said(*arguments, "--json"))


@asynccontextmanager
async def open_desk(home: Path, budgets: BudgetPolicy | None = None) -> AsyncIterator[Desk]:
    """A desk at a server of its own."""
    models = SingleModel(ScriptedProvider(SCRIPT, SystemClock()))
    exec_options = ExecOptions(environ={"PATH": os.environ["PATH"]})
    host = HostOptions(exec_options=exec_options, budgets=budgets or BudgetPolicy())
    async with control_server(home, ServerOptions(models=models, host=host)) as server:
        yield Desk(server)
