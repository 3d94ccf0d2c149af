"""Records belong to the workspace they were written in, and memory search follows that."""

import os
from pathlib import Path
from typing import Any

import pytest

from holon.adapters.system.clock import SystemClock
from holon.serve.compose import ExecOptions, HostOptions
from tests.http.serving import settled
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel


def planting(word: str) -> ScriptedRule:
    """A turn that plans an item, runs a command, says what was done and rests."""
    call = ScriptedCall
    return ScriptedRule(
        when=f"plant {word}",
        rounds=(
            ScriptedRound(
                calls=(
                    # It needs input, so that no turn of its own follows in another workspace.
                    call(
                        name="CreateWorkItem",
                        input={"objective": f"{word}bed in rows", "plan_status": "needs_input"},
                    ),
                    call(name="ExecCommand", input={"cmd": f"echo {word}"}),
                )
            ),
            ScriptedRound(text=f"{word} are planted.", calls=(call(name="Sleep", input={}),)),
        ),
    )


SCRIPT = Script(rules=(planting("beans"), planting("peas"), planting("leeks")))


def served(home: Path, root: Path | None = None) -> Any:
    models = SingleModel(ScriptedProvider(SCRIPT, SystemClock()))
    at = None if root is None else str(root)
    exec_options = ExecOptions(environ={"PATH": os.environ["PATH"]}, workspace_root=at)
    return control_server(
        home, ServerOptions(models=models, host=HostOptions(exec_options=exec_options))
    )


async def enter(server: ControlServer, folder: Path) -> str:
    """Attach the agent to a folder, and return the id of that workspace."""
    folder.mkdir(exist_ok=True)
    path = f"/control/agents/{MAIN}/workspace/attach"
    assert (await server.operator.post(path, {"path": str(folder)})).status == 200
    return await active_id(server)


async def active_id(server: ControlServer) -> str:
    """The workspace the agent is in."""
    told = (await server.operator.get(f"/agents/{MAIN}/status")).json()
    return str(told["execution"]["workspace_id"])


async def found_kinds(server: ControlServer, word: str, *, everywhere: bool = False) -> set[str]:
    """The kinds of records a search finds a word in.

    An agent's open items are carried forward into every later episode, so items have a word of
    their own.
    """
    more = "&include_all_workspaces=true" if everywhere else ""
    found: set[str] = set()
    for query, kinds in ((word, {"brief", "episode"}), (f"{word}bed", {"work_item"})):
        answer = await server.operator.get(f"/agents/{MAIN}/search?query={query}{more}")
        found |= {hit["kind"] for hit in answer.json()["results"]} & kinds
    return found


async def written_in(server: ControlServer) -> dict[str, set[str | None]]:
    """The workspaces of the newest turn's records."""
    reads = server.host.reads
    items = (await server.operator.get(f"/agents/{MAIN}/work-items")).json()["work_items"]
    return {
        "brief": {(await reads.events.briefs(MAIN, limit=1))[-1].workspace_id},
        "work_item": {str(each["workspace_id"]) for each in items},
        "episode": {each.workspace_id for each in await reads.memory.episodes(MAIN, limit=1)},
    }


@pytest.mark.requirement("workspace-attribution:persisted-when-written")
@pytest.mark.parametrize("with_root", [False, True])
async def test_at_home_and_in_a_given_root_the_place_is_named_too(
    tmp_path: Path, with_root: bool
) -> None:
    root = tmp_path / "root" if with_root else None
    if root is not None:
        root.mkdir()
    async with served(tmp_path / "home", root) as server:
        here = await active_id(server)
        assert here == ("workspace_root" if with_root else "agent_home")
        await settled(server, "plant beans")
        assert await written_in(server) == {
            "brief": {here},
            "work_item": {here},
            "episode": {here},
        }


@pytest.mark.requirement("workspace-attribution:persisted-when-written")
@pytest.mark.requirement("workspace-attribution:search-follows-the-record")
async def test_a_search_finds_what_was_written_here_and_at_home_but_not_in_another_workspace(
    tmp_path: Path,
) -> None:
    async with served(tmp_path / "home") as server:
        await settled(server, "plant beans")  # at home
        garden = await enter(server, tmp_path / "garden")
        await settled(server, "plant peas")
        found = await written_in(server)
        assert (found["brief"], found["episode"]) == ({garden}, {garden})
        assert found["work_item"] == {"agent_home", garden}
        roof = await enter(server, tmp_path / "roof")
        assert roof != garden
        await settled(server, "plant leeks")
        whole = {"brief", "work_item", "episode"}
        assert await found_kinds(server, "leeks") == whole
        assert await found_kinds(server, "peas") == set()
        assert await found_kinds(server, "peas", everywhere=True) == whole
        assert await found_kinds(server, "beans") == whole, "the agent's home goes with it"
        await enter(server, tmp_path / "garden")
        assert await found_kinds(server, "peas") == whole
        assert await found_kinds(server, "leeks") == set()
