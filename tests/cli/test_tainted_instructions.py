"""An operator sees that somebody else may be behind what an agent lives by."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.clock import SystemClock
from holon.cli.agents.status import summary_lines
from holon.model.events.event import TurnEnded
from holon.projections.agents.state import AgentStateSnapshot
from holon.serve.compose import ExecOptions, HostOptions
from holon.wire.codec import decode
from tests.cli.operator_desk import PATIENCE_S, Desk
from tests.runtime.cast import calls, prompt_for, rule, says, webhook_for
from tests.support.control_server import MAIN, ServerOptions, control_server
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

LEARN = "mkdir -p memory && echo more >> memory/self.md"
RULES = (
    rule("patch-agents", calls("ExecCommand", cmd="echo more >> AGENTS.md"), says("done")),
    rule("note-memory", calls("ExecCommand", cmd=LEARN), says("done")),
)


@asynccontextmanager
async def desk_at(home: Path) -> AsyncIterator[Desk]:
    models = SingleModel(ScriptedProvider(Script(rules=RULES), SystemClock()))
    options = HostOptions(exec_options=ExecOptions(environ={"PATH": os.environ["PATH"]}))
    async with control_server(home, ServerOptions(models=models, host=options)) as server:
        yield Desk(server)


async def said(desk: Desk, text: str, *, from_outside: bool) -> None:
    """Have a turn about something, to its end."""
    host = desk.server.host
    before = (await host.reads.events.event_bounds(MAIN))[1]
    await host.admit(webhook_for(text) if from_outside else prompt_for(text))
    with anyio.fail_after(PATIENCE_S):
        async for one in host.events.follow(MAIN, after=before):
            if isinstance(one.event, TurnEnded):
                return


async def state_of(desk: Desk) -> AgentStateSnapshot:
    answer = await desk.server.operator.get(f"/agents/{MAIN}/state")
    return decode(answer.body, AgentStateSnapshot)


@pytest.mark.requirement("provenance:instruction-taint-is-shown")
async def test_a_source_changed_under_words_from_outside_is_shown_and_stays_so(
    tmp_path: Path,
) -> None:
    async with desk_at(tmp_path) as desk:
        await said(desk, "patch-agents", from_outside=False)
        assert (await state_of(desk)).agent.agent.tainted_instructions is None
        assert "look at" not in await desk.said("status")
        await said(desk, "patch-agents", from_outside=True)
        await said(desk, "note-memory", from_outside=True)
        await said(desk, "patch-agents", from_outside=False)
    async with desk_at(tmp_path) as desk:  # and it outlives the process
        seen = (await state_of(desk)).agent.agent.tainted_instructions
        assert seen is not None
        assert (seen.path, seen.change_count) == ("memory/self.md", 2)
        told = (await desk.told("status"))["agent"]["tainted_instructions"]
        assert (told["path"], told["turn_id"]) == (seen.path, seen.turn_id)
        (line,) = [
            line for line in (await desk.said("status")).splitlines() if line.startswith("look at")
        ]
        for part in (seen.path, seen.turn_id, "2 such", f"holon events tail --agent {MAIN}"):
            assert part in line
        named = await desk.said("status", "--home", str(tmp_path))
        assert f"then: holon events tail --home {tmp_path} --agent {MAIN})" in named
        page = (await desk.told("events", "tail", "--limit", "200"))["events"]
        changes = [each["payload"] for each in page if each["type"] == "instruction_source_changed"]
        assert seen.turn_id in {each["turn_id"] for each in changes if each["tainted"]}
    assert check_database(database_path(tmp_path)).is_clean


@pytest.mark.parametrize("nothing", [None, {}])
def test_an_agent_nobody_touched_has_no_such_line(nothing: object) -> None:
    lines = summary_lines({"agent": {"id": "main", "tainted_instructions": nothing}})
    assert not any(line.startswith("look at") for line in lines)
