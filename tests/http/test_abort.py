"""Ending a run, and only the one that is meant."""

from pathlib import Path

import anyio

from holon.adapters.system.clock import SystemClock
from holon.model.events.event import TurnStarted
from tests.http.serving import PATIENCE_S, until_event
from tests.support.control_server import MAIN, ServerOptions, control_server
from tests.support.scripted_provider import ScriptedProvider, read_script
from tests.support.single_model import SingleModel

ABORT = f"/control/agents/{MAIN}/current-run/abort"


async def test_only_the_named_run_is_ended(tmp_path: Path) -> None:
    script = read_script(b'{"rules": [{"rounds": [{"text": "late", "after_ms": 600000}]}]}')
    models = SingleModel(ScriptedProvider(script, SystemClock()))
    async with control_server(tmp_path / "home", ServerOptions(models=models)) as server:
        await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": "go"})
        started = await until_event(server.host, TurnStarted)
        assert isinstance(started, TurnStarted)
        stale = await server.operator.post(ABORT, {"run_id": "turn_of_yesterday"})
        assert (stale.status, stale.json()["code"]) == (409, "stale_run_id")
        told = (await server.operator.get("/status")).json()
        run_id = told["agent"]["current_run_id"]
        assert run_id == started.turn_id
        with anyio.fail_after(PATIENCE_S):
            assert (await server.operator.post(ABORT, {"run_id": run_id})).status == 200
        after = (await server.operator.get("/status")).json()["agent"]
        assert "current_run_id" not in after
        assert after["last_turn_terminal"]["kind"] == "aborted"
