"""Agents as readers see them, over a real server."""

from pathlib import Path
from typing import cast

import msgspec
import pytest

from holon.adapters.system.clock import SystemClock
from holon.model.providers.models import parse_model_ref
from holon.model.values import AgentId
from holon.projections.agents.list import AgentListEntry
from holon.projections.agents.state import AgentStateSnapshot
from holon.projections.agents.summary import AgentSummary
from holon.serve.compose import HostOptions
from holon.wire.codec import decode
from tests.http.serving import make_agent, settled
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

HEAVY = frozenset(
    {"skills", "active_children", "waiting_intents", "external_triggers", "notifications", "events"}
)


@pytest.mark.requirement("http:list-is-narrow")
async def test_the_list_is_an_array_of_narrow_entries_by_id(server: ControlServer) -> None:
    for name in ("zoe", "abe"):
        await make_agent(server, name)
    told = (await server.operator.get("/agents/list")).json()
    assert [each["identity"]["agent_id"] for each in told] == ["abe", "main", "zoe"]
    for each in told:
        assert not HEAVY & set(each)
        assert each["model"]["effective_model"] == "scripted/test"
    rest = await server.local.get("/agents/list?after=abe&limit=1")
    (entry,) = decode(rest.body, list[AgentListEntry])
    assert entry.identity.agent_id == MAIN


@pytest.mark.requirement("http:private-agents-are-not-shown")
async def test_a_private_agent_is_neither_listed_nor_read(server: ControlServer) -> None:
    await make_agent(server, "child", private=True)
    told = (await server.operator.get("/agents/list")).json()
    assert [each["identity"]["agent_id"] for each in told] == ["main"]
    parts = ("status", "state", "briefs", "transcript", "tasks", "timers", "work-items", "events")
    for part in (*parts, "events/stream"):
        hidden = await server.operator.get(f"/agents/child/{part}")
        unknown = await server.operator.get(f"/agents/nobody/{part}")
        assert (hidden.status, unknown.status) == (404, 404)
        assert hidden.body.replace(b"child", b"nobody") == unknown.body


@pytest.mark.requirement("http:state-embeds-status")
async def test_the_state_holds_the_very_status_and_the_event_to_go_on_after(
    server: ControlServer,
) -> None:
    await settled(server)
    status = (await server.operator.get(f"/agents/{MAIN}/status")).body
    answer = await server.operator.get(f"/agents/{MAIN}/state")
    state = decode(answer.body, AgentStateSnapshot)
    assert state.agent == decode(status, AgentSummary)
    floor, newest = await server.host.reads.events.event_bounds(MAIN)
    assert floor <= state.event_cursor <= newest
    page = await server.operator.get(f"/agents/{MAIN}/events?after_seq={state.event_cursor}")
    assert page.status == 200


@pytest.mark.requirement("closure:posture-says-awake-or-sleeping")
async def test_the_closure_is_that_of_the_rows_as_they_are(server: ControlServer) -> None:
    async def closure() -> dict[str, object] | None:
        told = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        return cast("dict[str, object] | None", told.get("closure"))

    assert await closure() is None, "an agent that has never run has none"
    await settled(server)
    at_rest = await closure()
    assert at_rest is not None
    assert (at_rest["outcome"], at_rest["runtime_posture"]) == ("completed", "sleeping")
    await server.host.control.pause(MAIN)
    item = await server.host.work.create(MAIN, objective="mend the roof")
    held = await closure()
    assert held is not None
    assert held["outcome"] == "continuable"
    assert held["work_signal"] == {
        "work_item_id": item.id,
        "status": "queued",
        "reactivation_mode": "activate_queued",
    }


@pytest.mark.requirement("console:list-and-status-name-one-wait")
async def test_the_list_and_the_status_name_the_same_thing_an_agent_waits_for(
    server: ControlServer,
) -> None:
    async def named() -> tuple[object, object]:
        (entry,) = (await server.operator.get("/agents/list")).json()
        closure = (await server.operator.get(f"/agents/{MAIN}/status")).json().get("closure") or {}
        return entry.get("waiting_reason"), closure.get("waiting_reason")

    assert await named() == (None, None), "an agent that has never run waits for nothing"
    await settled(server)
    await server.host.control.pause(MAIN)  # so that nothing below begins a turn
    assert await named() == (None, None)
    item = await server.host.work.create(MAIN, objective="mend the roof")
    await server.host.work.focus(item.id)
    patch = {"plan_status": "needs_input"}
    path = f"/control/agents/{MAIN}/work-items/{item.id}"
    assert (await server.operator.patch(path, patch)).status == 200
    assert await named() == ("awaiting_operator_input", "awaiting_operator_input")
    assert (await server.operator.patch(path, {"plan_status": "ready"})).status == 200
    assert await named() == (None, None), "work that may be done keeps nobody waiting"


@pytest.mark.requirement("console:last-continuation-is-shown")
async def test_the_status_says_what_the_newest_message_amounted_to(server: ControlServer) -> None:
    async def seen() -> dict[str, object] | None:
        told = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        return cast("dict[str, object] | None", told["agent"].get("last_continuation"))

    assert await seen() is None
    await settled(server)
    first = await seen()
    assert first is not None
    assert first["model_visible"] is True
    assert first["continuation_class"] == "local_continuation"
    assert (first["trigger_kind"], first["prior_closure_outcome"]) == (
        "operator_input",
        "completed",
    )


@pytest.mark.requirement("console:execution-profile-is-shown")
async def test_the_status_describes_how_the_work_has_gone(server: ControlServer) -> None:
    async def seen() -> dict[str, object]:
        told = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        return cast("dict[str, object]", told["agent"])

    assert (await seen())["execution_profile"] == {"turn_count": 0, "tool_call_count": 0}
    await settled(server)
    agent = await seen()
    profile = cast("dict[str, object]", agent["execution_profile"])
    assert (profile["turn_count"], profile["rounds_per_turn"]) == (1, 1.0)
    assert profile["output_tokens_per_round"] == agent["total_output_tokens"]


@pytest.mark.requirement("http:default-aliases")
@pytest.mark.parametrize("part", ["status", "state", "briefs", "transcript"])
async def test_a_path_that_names_no_agent_means_the_default_one(
    server: ControlServer, part: str
) -> None:
    named = await server.operator.get(f"/agents/{MAIN}/{part}")
    alias = await server.operator.get(f"/{part}")
    assert alias.status == 200
    assert set(alias.json()) == set(named.json())
    assert (await server.operator.get(f"/api/{part}")).status == 200


async def test_the_models_are_named(server: ControlServer) -> None:
    told = (await server.operator.get("/models")).json()
    assert told == {"default_model": "scripted/test", "fallback_models": []}


@pytest.mark.requirement("console:model-state-is-explicit")
@pytest.mark.parametrize(("fallback_disabled", "asked"), [(False, ["scripted/other"]), (True, [])])
async def test_fallbacks_that_are_switched_off_are_not_named(
    tmp_path: Path, fallback_disabled: bool, asked: list[str]
) -> None:
    models = SingleModel(ScriptedProvider(Script(), SystemClock()))
    models.preference = msgspec.structs.replace(
        models.preference, fallbacks=(parse_model_ref("scripted/other"),)
    )
    host = HostOptions(fallback_disabled=fallback_disabled)
    options = ServerOptions(models=models, host=host)
    async with control_server(tmp_path / "home", options) as served:
        known = (await served.operator.get("/models")).json()
        shown = (await served.operator.get(f"/agents/{MAIN}/status")).json()["model"]
    assert known["fallback_models"] == asked
    assert shown["effective_fallback_models"] == asked


@pytest.mark.requirement("lifecycle:pause-and-resume-are-control-actions")
async def test_one_route_starts_stops_pauses_and_resumes(server: ControlServer) -> None:
    path = f"/control/agents/{MAIN}/control"
    for action, status in (
        ("stop", "stopped"),
        ("start", "asleep"),
        ("pause", "paused"),
        ("resume", "asleep"),
        ("stop", "stopped"),
        ("resume", "asleep"),
    ):
        for _ in range(2):  # what is so already is no failure
            assert (await server.operator.post(path, {"action": action})).json()["ok"] is True
        told = (await server.operator.get("/status")).json()
        is_down = told["agent"]["status"] in ("stopped", "paused")
        assert (told["agent"]["status"] if is_down else "asleep") == status
    assert (await server.operator.post(path, {"action": "dance"})).status == 400


@pytest.mark.requirement("lifecycle:pause-and-resume-are-control-actions")
async def test_an_agent_is_paused_and_resumed_by_routes_of_their_own(server: ControlServer) -> None:
    paused = await server.operator.post(f"/control/agents/{MAIN}/pause")
    assert paused.json()["ok"] is True
    kept = await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": "hello"})
    assert kept.json()["ok"] is True, "a paused agent keeps its mail"
    told = (await server.operator.get("/status")).json()
    assert (told["agent"]["status"], told["agent"]["pending"]) == ("paused", 1)
    assert (await server.operator.post(f"/control/agents/{MAIN}/resume")).json()["ok"] is True
    assert (await server.operator.get("/status")).json()["agent"]["status"] != "paused"


async def test_a_stopped_agent_says_how_to_bring_it_back(server: ControlServer) -> None:
    await server.host.control.stop(AgentId("main"))
    told = (await server.operator.get("/status")).json()["lifecycle"]
    assert told["resume_required"] is True
    resumed = await server.operator.post(told["resume_control_path"])
    assert resumed.status == 200


async def test_an_agent_is_made_once_however_often_it_is_asked_for_under_one_key(
    server: ControlServer,
) -> None:
    path, key = "/control/agents/builder/create", [(b"idempotency-key", b"once")]
    first = await server.operator.post(path, {}, headers=key)
    again = await server.operator.post(path, {}, headers=key)
    assert (again.status, again.body) == (first.status, first.body) == (200, first.body)
    other = await server.operator.post(path, {}, headers=[(b"idempotency-key", b"twice")])
    assert (other.status, other.json()["code"]) == (409, "agent_exists")


async def test_whoever_knocks_at_the_root_is_told_where_to_go_on(server: ControlServer) -> None:
    answer = await server.stranger.get("/")
    said = answer.json()
    assert (answer.status, said["name"]) == (200, "holon")
    for path in said["links"].values():
        assert (await server.operator.get(path)).status == 200
