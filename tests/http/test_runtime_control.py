"""The runtime's own routes, over a real server."""

from pathlib import Path

import pytest

from holon.adapters.system.clock import SystemClock
from holon.model.events.event import BriefCreated, TurnStarted
from holon.projections.runtime_status import RuntimeStatus
from holon.wire.codec import decode
from tests.http.serving import until_event
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import ScriptedProvider, read_script
from tests.support.single_model import SingleModel

STATUS = "/control/runtime/status"
READINESS = "/control/runtime/readiness"
SHUTDOWN = "/control/runtime/shutdown"


@pytest.mark.requirement("daemon:runtime-has-a-control-surface")
async def test_the_runtime_says_who_it_is_how_busy_and_what_it_does_not_protect_from(
    server: ControlServer,
) -> None:
    for caller in (server.operator, server.local):
        answer = await caller.get(STATUS)
        assert answer.status == 200
        told = answer.json()
        status = decode(answer.body, RuntimeStatus)
        facts = server.context.facts
        assert (status.ok, status.healthy, status.pid) == (True, True, facts.pid)
        assert (status.home_dir, status.socket_path) == (facts.home_dir, facts.socket_path)
        assert (status.http_addr, status.started_at) == (facts.http_addr, facts.started_at)
        assert status.config_fingerprint == facts.config_fingerprint
        assert told["activity"]["state"] == "idle"
        assert told["runtime_surface"]["execution_backend"] == "host_local"
        assert told["runtime_surface"]["confinement"] == "not_enforced"
        assert told["runtime_surface"]["secret_isolation"] == "not_enforced"
        assert "last_failure" not in told
        ready = await caller.get(READINESS)
        assert (ready.status, ready.json()["ready"]) == (200, True)


@pytest.mark.parametrize("path", [STATUS, READINESS, SHUTDOWN])
async def test_a_stranger_learns_nothing_and_ends_nothing(server: ControlServer, path: str) -> None:
    method = "POST" if path == SHUTDOWN else "GET"
    answer = await server.stranger.send(method, path)
    assert (answer.status, answer.json()["code"]) == (401, "unauthorized")
    assert not server.shutdown_requested.is_set()


async def test_a_shutdown_is_asked_for_with_post_alone(server: ControlServer) -> None:
    assert (await server.operator.get(SHUTDOWN)).status == 405
    assert not server.shutdown_requested.is_set()
    answer = await server.operator.post(SHUTDOWN)
    assert (answer.status, answer.json()["ok"]) == (202, True)
    assert server.shutdown_requested.is_set()


@pytest.mark.requirement("daemon:turn-failures-stay-visible")
async def test_a_failed_turn_is_the_last_failure_after_it_has_ended(tmp_path: Path) -> None:
    script = read_script(b'{"rules": [{"rounds": [{"fail": "auth_rejected"}]}]}')
    models = SingleModel(ScriptedProvider(script, SystemClock()))
    async with control_server(tmp_path / "home", ServerOptions(models=models)) as server:
        asked = await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": "go"})
        assert asked.status == 200
        await until_event(server.host, BriefCreated)
        told = (await server.operator.get(STATUS)).json()["last_failure"]
        assert told["phase"] == "runtime_turn"
        assert told["summary"]
        assert "holon daemon logs" in told["detail_hint"]


@pytest.mark.requirement("daemon:turn-failures-stay-visible")
@pytest.mark.parametrize(("deed", "body"), [("current-run/abort", {}), ("stop", None)])
async def test_what_the_operator_ended_is_no_failure(
    tmp_path: Path, deed: str, body: dict[str, str] | None
) -> None:
    script = read_script(b'{"rules": [{"rounds": [{"text": "late", "after_ms": 600000}]}]}')
    models = SingleModel(ScriptedProvider(script, SystemClock()))
    async with control_server(tmp_path / "home", ServerOptions(models=models)) as server:
        await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": "go"})
        await until_event(server.host, TurnStarted)
        ended = await server.operator.post(f"/control/agents/{MAIN}/{deed}", body)
        assert ended.status == 200
        await until_event(server.host, BriefCreated)
        assert "last_failure" not in (await server.operator.get(STATUS)).json()
        agent = (await server.operator.get("/status")).json()["agent"]
        assert agent["last_turn_terminal"]["kind"] == "aborted"
        assert "last_runtime_failure" not in agent
