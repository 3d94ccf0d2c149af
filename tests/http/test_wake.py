"""Waking an agent by hand, over a real server."""

import pytest

from holon.model.wake import WakeHintTriggered
from tests.http.serving import until_event
from tests.support.control_server import MAIN, ControlServer

WAKE = f"/control/agents/{MAIN}/wake"


@pytest.mark.requirement("ingress:control-wake")
async def test_a_wake_reaches_a_sleeping_agent_and_says_so(server: ControlServer) -> None:
    answer = await server.operator.post(WAKE, {"reason": "look again", "source": "cron"})
    assert answer.json() == {"ok": True, "agent_id": "main", "disposition": "triggered"}
    woken = await until_event(server.host, WakeHintTriggered)
    assert woken == WakeHintTriggered(source_keys=("control:cron",))


@pytest.mark.requirement("ingress:control-wake")
async def test_wakes_of_a_held_agent_are_folded(server: ControlServer) -> None:
    await server.host.control.pause(MAIN)
    for correlation in ("a", "b"):
        asked = {"reason": "r", "correlation_id": correlation, "causation_id": "c"}
        answer = await server.local.post(WAKE, asked)
        assert answer.json()["disposition"] == "coalesced"
    surface = await server.host.reads.agents.agent_surface(MAIN)
    assert surface is not None
    (hint,) = surface.hints
    assert (hint.revision, hint.correlation_id, hint.causation_id) == (2, "b", "c")


@pytest.mark.requirement("ingress:control-wake")
async def test_a_stopped_agent_is_not_woken_and_the_way_back_is_named(
    server: ControlServer,
) -> None:
    await server.host.control.stop(MAIN)
    answer = await server.operator.post(WAKE, {"reason": "r"})
    assert (answer.status, answer.json()["code"]) == (409, "agent_stopped")
    assert answer.json()["resume_path"]


BAD = {
    "no reason": ({}, 400),
    "an empty reason": ({"reason": ""}, 400),
    "an authority": ({"reason": "r", "authority_class": "operator_instruction"}, 400),
    "a mile of reason": ({"reason": "r" * 501}, 400),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_wake_that_makes_no_sense_is_refused(server: ControlServer, name: str) -> None:
    asked, status = BAD[name]
    assert (await server.operator.post(WAKE, asked)).status == status
    assert (await server.stranger.post(WAKE, {"reason": "r"})).status == 401
    unknown = await server.operator.post("/control/agents/nobody/wake", {"reason": "r"})
    assert unknown.status == 404
