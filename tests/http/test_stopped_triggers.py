"""External triggers of a stopped agent: who is told how to resume it, and who learns nothing."""

import pytest

from holon.model.wake import CallbackRefused
from tests.http.serving import events_of
from tests.http.test_triggers import (
    a_stranger_sees,
    hints,
    hold_back,
    same,
    the_path,
    the_trigger,
)
from tests.support.control_server import MAIN, ControlServer


@pytest.mark.requirement("triggers:stopped")
@pytest.mark.requirement("admission:stopped-holds-for-capabilities-and-webhooks")
@pytest.mark.parametrize("mode", ["wake", "enqueue"])
@pytest.mark.parametrize("body", [b"", b"{}"], ids=["no body", "a body"])
async def test_a_stopped_agent_refuses_a_delivery_as_it_refuses_a_prompt(
    server: ControlServer, mode: str, body: bytes
) -> None:
    path = (await the_path(server)).replace("/wake/", f"/{mode}/")
    await server.host.control.stop(MAIN)
    prompt = await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": "hello"})
    before = len(await events_of(server.host))
    refused = await server.stranger.send("POST", path, body=body)
    assert (refused.status, refused.json()["code"]) == (409, "agent_stopped")
    assert same(refused, prompt)
    told = (await events_of(server.host))[before:]
    assert [type(event) for event in told] == [CallbackRefused]
    assert await hints(server) == []
    assert (await the_trigger(server))["delivery_count"] == 0


@pytest.mark.requirement("triggers:misses-are-alike")
async def test_a_wrong_or_void_address_of_a_stopped_agent_tells_nothing(
    server: ControlServer,
) -> None:
    nothing = await a_stranger_sees(server, "/nobody/serves/this")
    rotated = await the_path(server)
    await server.operator.post(f"/control/agents/{MAIN}/external-trigger/rotate")
    revoked = await the_path(server)
    await server.host.control.stop(MAIN)
    assert (await a_stranger_sees(server, revoked)).status == 409
    await server.operator.post(f"/control/agents/{MAIN}/external-trigger/revoke")
    for path in (rotated, revoked, f"{revoked}A"):
        for each in (path, path.replace("/wake/", "/enqueue/")):
            assert same(await a_stranger_sees(server, each), nothing)
            assert same(await server.stranger.send("POST", each), nothing)


@pytest.mark.requirement("triggers:deduplicated")
async def test_a_repeat_gets_its_receipt_also_after_the_agent_was_stopped(
    server: ControlServer,
) -> None:
    await hold_back(server)
    path, named = await the_path(server), [(b"webhook-id", b"the-very-one")]
    first = await server.stranger.send("POST", path, body=b"one", headers=named)
    await server.host.control.stop(MAIN)
    again = await server.stranger.send("POST", path, body=b"one", headers=named)
    assert again.json() == {**first.json(), "duplicate": True}


@pytest.mark.requirement("triggers:misses-are-alike")
async def test_the_address_of_an_archived_agent_tells_nothing(server: ControlServer) -> None:
    nothing = await a_stranger_sees(server, "/nobody/serves/this")
    path = await the_path(server)
    await server.host.control.stop(MAIN)
    await server.host.triggers.revoke(MAIN)  # an archived agent has no open address
    assert await server.host.control.archive(MAIN, reason="done with it")
    assert same(await a_stranger_sees(server, path), nothing)
    assert same(await server.stranger.send("POST", path), nothing)


async def test_a_resumed_agent_takes_the_delivery_it_refused(server: ControlServer) -> None:
    path, named = await the_path(server), [(b"webhook-id", b"the-very-one")]
    await server.host.control.stop(MAIN)
    refused = await server.stranger.send("POST", path, body=b"one", headers=named)
    assert refused.status == 409
    resumed = await server.operator.post(refused.json()["resume_path"])
    assert resumed.status == 200
    taken = await server.stranger.send("POST", path, body=b"one", headers=named)
    assert (taken.status, taken.json().get("duplicate", False)) == (200, False)
