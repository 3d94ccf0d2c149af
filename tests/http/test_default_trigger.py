"""An agent has its wake address from the beginning, may use it, and it is written down nowhere."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from holon.model.events.event import BriefCreated, TaskStatusUpdated
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import TextBlock, ToolResultBlock, ToolUseBlock, UserMessage
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import AgentId, CallId, JsonValue
from holon.model.wake import TriggerStatus
from holon.ports.providers import OnProgress
from holon.serve.compose import ExecOptions, Hooks, HostOptions, open_host
from tests.http.serving import settled, until_event
from tests.runtime.cast import prompt_for
from tests.runtime.notes import Notes
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.database_oracle import whole_home
from tests.support.single_model import SingleModel

URL = re.compile(r"http://127\.0\.0\.1:\d+/callbacks/wake/trig_[a-z0-9]+\.[A-Za-z0-9_-]{43}")
SECTION = "## External trigger"


class Configuring:
    """A model that gives its address to an outside system when it is asked to."""

    def __init__(self, outside: Path) -> None:
        self.outside = outside
        self.requests: list[ProviderRequest] = []

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        del on_progress
        self.requests.append(request)
        calls = _calls_left(request, self.outside)
        if calls:
            return ModelAnswer(blocks=(calls[0],), stop_reason=StopReason.TOOL_USE)
        urls = URL.findall("\n".join(texts_of(request)))
        said = f"configured it with {urls[0]}" if urls else "there is no address"
        return ModelAnswer(blocks=(TextBlock(text=said),), stop_reason=StopReason.END_TURN)


def _calls_left(request: ProviderRequest, outside: Path) -> list[ToolUseBlock]:
    """What is still to be done in the running turn."""
    place = request.turn_start
    running = request.conversation[place.message_index if place else 0 :]
    if not any("configure" in text for text in _texts(running)):
        return []
    urls = URL.findall(context_of(request))
    steps: list[tuple[str, dict[str, JsonValue]]] = [("AgentGet", {})]
    if urls:
        waiting: dict[str, JsonValue] = {
            "cmd": f"read line; echo {urls[0]}",
            "yield_time_ms": 1,
            "accepts_input": True,
        }
        steps += [
            ("ExecCommand", {"cmd": f"printf %s '{urls[0]}' > {outside}"}),
            ("ExecCommand", waiting),
            ("CreateWorkItem", {"objective": f"watch {urls[0]}"}),
        ]
    done = sum(
        isinstance(block, ToolResultBlock) for message in running for block in message.blocks
    )
    return [
        ToolUseBlock(call_id=CallId(f"c{len(request.conversation)}"), name=name, input=given)
        for name, given in steps[done:]
    ]


def _texts(messages: tuple[Any, ...]) -> list[str]:
    return [b.text for m in messages for b in m.blocks if isinstance(b, TextBlock)]


def context_of(request: ProviderRequest) -> str:
    return "\n".join(piece.text for piece in request.frame.context_blocks)


def results_of(request: ProviderRequest) -> list[str]:
    return [
        block.content
        for message in request.conversation
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    ]


def texts_of(request: ProviderRequest) -> list[str]:
    return [context_of(request), *results_of(request)]


class Scene(msgspec.Struct):
    server: ControlServer
    model: Configuring
    outside: Path
    notes: Notes


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    model, notes, outside = Configuring(folder / "outside"), Notes(), folder / "outside"
    (folder / "home").mkdir(exist_ok=True)
    options = HostOptions(
        exec_options=ExecOptions(environ={"PATH": os.environ["PATH"]}),
        hooks=Hooks(journal=notes),
    )
    given = ServerOptions(models=SingleModel(model), host=options)
    async with control_server(folder / "home", given) as server:
        yield Scene(server, model, outside, notes)


async def end_task(server: ControlServer, task_id: str) -> None:
    """Give the command the line it waits for, and wait until its agent has heard of its end."""
    path = f"/control/agents/{MAIN}/tasks/{task_id}/input"
    answer = await server.operator.post(path, {"input": "go\n"})
    assert answer.status == 200, answer.body
    with anyio.fail_after(20):
        async for one in server.host.events.follow(MAIN, after=0):
            if isinstance(one.event, TaskStatusUpdated) and one.event.status == "completed":
                return


async def real_url(server: ControlServer, agent: str = MAIN) -> str:
    answer = await server.operator.get(f"/agents/{agent}/external-triggers")
    (trigger,) = answer.json()["external_triggers"]
    return str(trigger.get("trigger_url"))


@pytest.mark.requirement("default-trigger:provisioned-by-the-runtime")
async def test_an_agent_has_an_active_trigger_from_its_creation_without_being_asked(
    server: ControlServer,
) -> None:
    answer = await server.operator.post("/control/agents/builder/create", {})
    assert answer.status == 200
    for agent in (MAIN, AgentId("builder")):
        listed = (await server.operator.get(f"/agents/{agent}/external-triggers")).json()
        (trigger,) = listed["external_triggers"]
        assert (trigger["status"], trigger["delivery_mode"]) == ("active", "wake_hint")
        assert URL.fullmatch(trigger["trigger_url"])
        given = await server.operator.post(f"/control/agents/{agent}/external-trigger")
        assert given.json()["external_trigger"] == trigger
        path = trigger["trigger_url"].removeprefix(server.context.facts.base_url)
        assert (await server.stranger.send("POST", path, body=b"red")).status == 200


@pytest.mark.requirement("default-trigger:provisioned-by-the-runtime")
async def test_an_agent_of_an_earlier_version_gets_its_trigger_with_its_next_turn(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    models = SingleModel(Configuring(tmp_path / "outside"))
    async with open_host(tmp_path / "home", models) as before:  # where nothing can be delivered
        await before.provisioner.ensure(MAIN)
        assert await before.reads.wake.trigger_of(MAIN) is None
    async with scene(tmp_path) as given:
        store = given.server.host.store
        assert await store.reads.wake.trigger_of(MAIN) is None
        looked = await given.server.operator.post(f"/control/agents/{MAIN}/debug-prompt")
        assert looked.status == 200
        assert await store.reads.wake.trigger_of(MAIN) is None  # a look changes nothing
        await settled(given.server)
        assert await real_url(given.server) in context_of(given.model.requests[0])


@pytest.mark.requirement("default-trigger:shown-to-its-agent")
@pytest.mark.requirement("default-trigger:an-agent-configures-by-itself")
async def test_an_agent_configures_an_outside_system_with_its_address(tmp_path: Path) -> None:
    async with scene(tmp_path) as given:
        await settled(given.server, "configure the forge to wake you")
        url = await real_url(given.server)
        assert given.outside.read_text() == url
        first, last = given.model.requests[0], given.model.requests[-1]
        section = context_of(first).partition(SECTION)[2].partition("\n## ")[0]
        assert url in section
        for word in ("secret", "repeat", "store", "forward", "configur"):
            assert word in section
        (described,) = [text for text in results_of(last) if '"AgentGet"' in text]
        told = msgspec.json.decode(described)["result"]["external_trigger"]
        assert told["trigger_url"] == url
        assert (told["status"], told["delivery_mode"]) == ("active", "wake_hint")
        assert told["target_agent_id"] == MAIN
        for word in ("secret", "repeat", "store", "forward", "configur"):
            assert word in told["warning"]
        await settled(given.server, "hello again")
        later = [t for t in results_of(given.model.requests[-1]) if '"AgentGet"' in t]
        assert later == [described]


@pytest.mark.requirement("default-trigger:written-down-nowhere")
async def test_the_address_stays_out_of_logs_events_transcripts_views_and_memory(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as given:
        server = given.server
        await settled(server, "configure the forge to wake you")
        await settled(server, "and what did you do?")
        secret = (await real_url(server)).rpartition(".")[2]
        assert given.outside.read_text().endswith(secret)
        shown = {
            path: (await server.operator.get(f"/agents/{MAIN}/{path}")).body.decode()
            for path in (
                "status", "state", "transcript", "events?limit=500", "briefs", "work-items",
                "tasks", "memory/search?query=forge", "memory/search?query=printf",
            )
        }  # fmt: skip
        shown["prompt"] = (
            await server.operator.post(f"/control/agents/{MAIN}/debug-prompt")
        ).body.decode()
        shown["journal"] = repr(given.notes.lines)
        originals = {"tool_calls", "transcript", "tasks"}  # what a resumed call goes on with
        for table, rows in whole_home(server.home).items():
            if table not in originals:
                shown[f"table {table}"] = repr(rows)
        for file in (server.home / "agents").rglob("*"):
            if file.is_file() and not file.is_symlink():
                shown[str(file.relative_to(server.home))] = file.read_text(errors="replace")
        assert [place for place, text in shown.items() if secret in text] == []
        assert "printf" in shown["transcript"]
        assert "callbacks/wake/" in shown["status"]
        (task,) = await server.host.reads.tasks.open_tasks()
        assert "read line" in shown["tasks"]
        await end_task(server, task.id)
        assert secret not in (await server.operator.get(f"/agents/{MAIN}/transcript")).body.decode()


@pytest.mark.requirement("default-trigger:revoked-is-not-active")
async def test_a_revoked_trigger_is_neither_listed_as_active_nor_shown(tmp_path: Path) -> None:
    async with scene(tmp_path) as given:
        server = given.server
        status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        (active,) = status["active_external_triggers"]
        assert (active["status"], active["trigger_url"].rpartition(".")[2]) == ("active", "***")
        await server.operator.post(f"/control/agents/{MAIN}/external-trigger/revoke")
        status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        assert status["active_external_triggers"] == []
        listed = (await server.operator.get(f"/agents/{MAIN}/external-triggers")).json()
        assert [each["status"] for each in listed["external_triggers"]] == ["revoked"]
        await settled(server, "configure the forge to wake you")
        assert not any(SECTION in context_of(each) for each in given.model.requests)
        assert not URL.search("\n".join(texts_of(given.model.requests[-1])))
        (described,) = [t for t in results_of(given.model.requests[-1]) if '"AgentGet"' in t]
        assert msgspec.json.decode(described)["result"]["external_trigger"] is None
        await settled(server, "hello")
        assert await real_url(server) == "None"  # not given again by a turn


@pytest.mark.requirement("default-trigger:shown-to-its-agent")
async def test_a_rotated_address_is_shown_as_it_is_now(tmp_path: Path) -> None:
    async with scene(tmp_path) as given:
        await settled(given.server, "configure the forge to wake you")
        old = await real_url(given.server)
        await given.server.operator.post(f"/control/agents/{MAIN}/external-trigger/rotate")
        await settled(given.server, "configure the forge to wake you")
        new = await real_url(given.server)
        assert new != old
        assert given.outside.read_text() == new
        assert old not in context_of(given.model.requests[-1])


@pytest.mark.requirement("default-trigger:shown-to-its-agent")
async def test_a_host_that_takes_no_deliveries_describes_no_address(tmp_path: Path) -> None:
    async with scene(tmp_path) as given:
        assert URL.fullmatch(await real_url(given.server))
    model = Configuring(tmp_path / "outside")
    async with open_host(tmp_path / "home", SingleModel(model)) as alone:
        trigger = await alone.reads.wake.trigger_of(MAIN)
        assert trigger is not None
        assert trigger.status is TriggerStatus.ACTIVE
        await alone.admit(prompt_for("configure the forge to wake you"))
        await until_event(alone, BriefCreated)
    (described,) = [t for t in results_of(model.requests[-1]) if '"AgentGet"' in t]
    assert msgspec.json.decode(described)["result"]["external_trigger"] is None


@pytest.mark.requirement("default-trigger:not-handed-on-for-outsiders")
async def test_in_a_turn_with_outside_words_the_address_is_handed_to_nobody(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as given:
        answer = await given.server.operator.post(
            f"/agents/{MAIN}/enqueue", {"text": "configure my server with it"}
        )
        assert answer.status == 200
        await settled(given.server)
        assert not given.outside.exists()
        refused = [t for t in results_of(given.model.requests[-1]) if "capability_guarded" in t]
        assert len(refused) == 2
        assert all(msgspec.json.decode(text)["hint"] for text in refused)
