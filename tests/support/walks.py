"""The three ways through the runtime that docs/architecture.md describes, walked and recorded.

Owns:  a recorder of the product's functions, and the flows: an operator's prompt, a command that
       becomes a task, a delivery to an external trigger.
Rule 1: everything is real but the model: HTTP over a socket, SQLite on a disk, commands in a shell.
Rule 2: a flow is recorded the second time it runs, so that no import and no cold cache is counted.
"""

import dis
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

import holon
from holon.adapters.system.clock import SystemClock
from holon.model.events.event import BriefCreated
from holon.serve.compose import ExecOptions, HostOptions
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

PACKAGE: Final = Path(holon.__file__).parent
PATIENCE_S: Final = 60.0
_GATE: Final = "gate"  # a pipe; the command of a flow reads it


class Called(NamedTuple):
    """A function of the product that was called: `runtime/queue.py` and `Ingress.admit`."""

    file: str
    function: str


Walk: TypeAlias = "Callable[[ControlServer, Path], Awaitable[None]]"


@contextmanager
def recorded() -> Iterator[list[Called]]:
    """Record the calls of this thread while the block runs, in their order."""
    calls: list[Called] = []
    prefix = f"{PACKAGE}{os.sep}"

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(prefix):
            return
        if frame.f_lasti <= _first_instruction(code):  # else a coroutine that goes on
            file = code.co_filename.removeprefix(prefix)
            calls.append(Called(file, code.co_qualname))

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@cache
def _first_instruction(code: CodeType) -> int:
    """The offset at which the body of a function begins; a coroutine goes on behind it."""
    return next(i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")


async def record(walk: Walk, folder: Path) -> list[Called]:
    """Return the calls of a flow, on a host of its own with its home in this folder."""
    async with _served(folder) as server:
        await walk(server, folder)
        while server.host.running_count:  # its lane is still about to rest
            await checkpoint()
        with recorded() as calls:
            await walk(server, folder)
    return calls


async def prompt_walk(server: ControlServer, folder: Path) -> None:
    """An operator's prompt, up to the brief that answers it."""
    await _prompt(server, "say something")


async def command_walk(server: ControlServer, folder: Path) -> None:
    """A command that outlives its call, up to the brief of the turn that its end begins."""
    after = await _prompt(server, "run it")
    await anyio.to_thread.run_sync((folder / _GATE).write_text, "go\n")
    await _brief(server, after=after)


async def trigger_walk(server: ControlServer, folder: Path) -> None:
    """A delivery from outside, up to the brief of the turn that it begins."""
    after = await _newest(server)
    triggers = server.host.triggers
    url = triggers.url_of(await triggers.ensure(MAIN)) or ""
    path = url.removeprefix(server.context.facts.base_url)
    answer = await server.stranger.send("POST", path, body=b"the build is red")
    assert answer.status == 200, answer.body
    await _brief(server, after=after)


async def _prompt(server: ControlServer, text: str) -> int:
    """Send a prompt; return where the log stood when its brief came."""
    after = await _newest(server)
    answer = await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": text})
    assert answer.status == 200, answer.body
    return await _brief(server, after=after)


async def _newest(server: ControlServer) -> int:
    return (await server.host.reads.events.event_bounds(MAIN))[1]


async def _brief(server: ControlServer, *, after: int) -> int:
    """Return where the log stands at the next brief."""
    with anyio.fail_after(PATIENCE_S):
        async with aclosing(server.host.events.follow(MAIN, after=after)) as events:
            async for audit in events:
                if isinstance(audit.event, BriefCreated):
                    return audit.event_seq
    raise AssertionError("the log came to an end")


@asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[ControlServer]:
    """A server whose agent has a shell, and a model that knows the lines of the flows."""
    gate = folder / _GATE
    os.mkfifo(gate)
    run_it = ScriptedCall(name="ExecCommand", input={"cmd": f"cat {gate}", "yield_time_ms": 250})
    script = Script(
        rules=(
            ScriptedRule(when="say something", rounds=(ScriptedRound(text="something"),)),
            ScriptedRule(
                when="run it", rounds=(ScriptedRound(calls=(run_it,)), ScriptedRound(text="runs"))
            ),
            ScriptedRule(when="", rounds=(ScriptedRound(text="noted"),)),
        )
    )
    options = ServerOptions(
        models=SingleModel(ScriptedProvider(script, SystemClock())),
        host=HostOptions(exec_options=ExecOptions(environ={"PATH": os.environ["PATH"]})),
    )
    async with control_server(folder / "home", options) as server:
        yield server
