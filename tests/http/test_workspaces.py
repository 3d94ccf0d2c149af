"""Workspaces over a real server: where commands and patches happen, what is shown and refused."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.clock import SystemClock
from holon.http.access import Authorizer, Forbidden
from holon.http.exchange import Peer, RequestHead, SocketKind
from holon.http.routes.workspaces import ROUTES
from holon.model.events.event import MessageAdmitted, TaskStatusUpdated
from holon.model.queue import MessageKind
from holon.serve.compose import ExecOptions, HostOptions
from tests.adapters.system.test_workspace_finder import git
from tests.http.serving import events_of, settled, until_event
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

PATCH = "*** Begin Patch\n*** Add File: made.txt\n+by a patch\n*** End Patch\n"
SCRIPT = Script(
    rules=(
        ScriptedRule(
            rounds=(
                ScriptedRound(
                    calls=(
                        ScriptedCall(name="ExecCommand", input={"cmd": "pwd > where.txt"}),
                        ScriptedCall(name="ApplyPatch", input={"patch": PATCH}),
                        ScriptedCall(name="AgentGet", input={}),
                    )
                ),
                ScriptedRound(text="done"),
            ),
        ),
    )
)
ENVIRON = {"PATH": os.environ["PATH"]}


def served(home: Path) -> Any:
    models = SingleModel(ScriptedProvider(SCRIPT, SystemClock()))
    options = HostOptions(exec_options=ExecOptions(environ=ENVIRON))
    return control_server(home, ServerOptions(models=models, host=options))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with served(tmp_path / "home") as running:
        yield running


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A repository with a directory in it, and a link to that."""
    (tmp_path / "site" / "docs").mkdir(parents=True)
    git(tmp_path / "site", "init", "-q")
    (tmp_path / "link").symlink_to(tmp_path / "site" / "docs")
    return tmp_path / "site"


async def ask(server: ControlServer, what: str, body: Any = None, agent: str = MAIN) -> Any:
    return await server.operator.post(f"/control/agents/{agent}/workspace/{what}", body)


async def state(server: ControlServer) -> Any:
    return (await server.operator.get(f"/agents/{MAIN}/state")).json()


async def worked(server: ControlServer) -> Any:
    """Let the agent run its command, its patch and its look at itself; return what it saw."""
    message_id = await settled(server, "go")
    logs = await server.host.reads.turns.recent_turns(MAIN, limit=9)
    (log,) = (each for each in logs if each.turn.message_id == message_id)
    return log


@pytest.mark.requirement("admission:control-makes-no-message")
@pytest.mark.requirement("workspace:shown")
async def test_every_surface_shows_where_an_agent_works_by_real_names(
    server: ControlServer, site: Path
) -> None:
    home = server.home / "agents" / MAIN
    fresh = await state(server)
    assert fresh["workspace"]["attached_workspaces"] == []
    entry = fresh["workspace"]["active_workspace_entry"]
    assert (entry["workspace_id"], entry["cwd"]) == ("agent_home", str(home))
    assert "active_workspace_occupancy" not in fresh["workspace"]

    answer = await ask(server, "attach", {"path": str(site.parent / "link")})
    assert answer.status == 200, answer.body
    entry = answer.json()["workspace"]["active_workspace_entry"]
    assert (entry["workspace_anchor"], entry["execution_root"]) == (str(site), str(site))
    assert (entry["cwd"], entry["projection_kind"]) == (str(site / "docs"), "canonical_root")
    told = await state(server)
    assert told["workspace"] == answer.json()["workspace"]
    assert told["agent"] == (await server.operator.get(f"/agents/{MAIN}/status")).json()
    assert told["agent"]["active_workspace_entry"] == entry
    assert told["agent"]["agent"]["total_message_count"] == 0, "it was arranged, not said"
    assert told["agent"]["attached_workspaces"] == told["workspace"]["attached_workspaces"]
    assert told["agent"]["attached_workspaces"][0]["repo_name"] == "site"
    held = told["workspace"]["active_workspace_occupancy"]
    assert (held["execution_root_id"], held["access_mode"]) == (
        entry["execution_root_id"],
        "shared_read",
    )
    assert told["execution"]["workspace_anchor"] == told["execution"]["execution_root"] == str(site)
    assert told["execution"]["cwd"] == str(site / "docs")
    assert told["execution"]["profile"]["supports_managed_worktrees"] is False
    (listed,) = (await server.operator.get("/agents/list")).json()
    assert listed["active_workspace_entry"] == entry


@pytest.mark.requirement("workspace:tools-follow")
@pytest.mark.requirement("workspace:shown")
@pytest.mark.requirement("workspace:is-audited")
async def test_an_agent_works_where_it_was_attached_and_at_home_again(
    server: ControlServer, site: Path
) -> None:
    home = server.home / "agents" / MAIN
    answer = await ask(server, "attach", {"path": str(site / "docs")})
    entry = answer.json()["workspace"]["active_workspace_entry"]
    log = await worked(server)
    assert (site / "docs" / "where.txt").read_text() == f"{site / 'docs'}\n"
    assert (site / "made.txt").read_text() == "by a patch\n"
    seen = log.calls[2].receipt.content
    assert entry["workspace_id"] in seen
    assert str(site / "docs") in seen

    task = await server.operator.post(
        f"/control/agents/{MAIN}/tasks", {"summary": "s", "cmd": "pwd > task.txt"}
    )
    assert task.status == 200, task.body
    left = await ask(server, "exit")
    assert left.json()["workspace"]["active_workspace_entry"]["cwd"] == str(home)
    assert "active_workspace_occupancy" not in left.json()["workspace"]
    await worked(server)
    assert (home / "where.txt").read_text() == f"{home}\n"
    await until_event(server.host, TaskStatusUpdated)
    assert (site / "docs" / "task.txt").read_text() == f"{site / 'docs'}\n"

    kinds = [type(each).__name__ for each in await events_of(server.host)]
    assert [kind for kind in kinds if kind.startswith("Workspace")] == [
        "WorkspaceAttached",
        "WorkspaceEntered",
        "WorkspaceExited",
    ]
    admitted = [each for each in await events_of(server.host) if isinstance(each, MessageAdmitted)]
    assert {each.message_kind for each in admitted} <= {
        MessageKind.OPERATOR_PROMPT,
        MessageKind.TASK_RESULT,
        MessageKind.TASK_STATUS,
    }


@pytest.mark.requirement("workspace:detach")
async def test_the_active_workspace_is_kept_and_a_stale_one_goes(
    server: ControlServer, site: Path
) -> None:
    attached = (await ask(server, "attach", {"path": str(site)})).json()["workspace"]
    named = {"workspace_id": attached["attached_workspaces"][0]["workspace_id"]}
    refused = await ask(server, "detach", named)
    assert (refused.status, refused.json()["code"]) == (409, "workspace_active")
    assert "exit" in refused.json()["hint"]
    await ask(server, "exit")
    site.rename(site.parent / "elsewhere")
    gone = await ask(server, "detach", named)
    assert gone.status == 200, gone.body
    assert gone.json()["workspace"]["attached_workspaces"] == []
    assert (site.parent / "elsewhere" / "docs").is_dir()
    again = await ask(server, "detach", named)
    assert (again.status, again.json()["code"]) == (404, "workspace_not_found")
    assert check_database(database_path(server.home)).violations == ()


@pytest.mark.requirement("workspace:bad-input")
async def test_what_cannot_be_attached_is_refused_and_changes_nothing(
    server: ControlServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    (server.home / "run").mkdir(exist_ok=True)
    before = await state(server)
    bodies: tuple[tuple[Any, int, str], ...] = (
        ({"path": "docs"}, 400, "workspace_path_invalid"),
        ({"path": "~/docs"}, 400, "workspace_path_invalid"),
        ({"path": "/a\0b"}, 400, "bad_syntax"),
        ({"path": str(tmp_path / "none")}, 400, "workspace_path_missing"),
        ({"path": str(tmp_path / "file")}, 400, "workspace_path_not_directory"),
        ({"path": str(server.home)}, 400, "workspace_path_private"),
        ({"path": str(server.home / "run")}, 400, "workspace_path_private"),
        ({"path": str(server.home / "run" / ".." / "run")}, 400, "workspace_path_private"),
        ({"path": ""}, 400, "bad_shape"),
        ({"path": "/" + "x" * 5000}, 400, "bad_shape"),
        ({"path": 7}, 400, "bad_shape"),
        ({}, 400, "bad_shape"),
        ({"path": "/", "mode": "isolated"}, 400, "bad_shape"),
    )
    for body, status, code in bodies:
        refused = await ask(server, "attach", body)
        assert (refused.status, refused.json()["code"]) == (status, code), refused.body
        if not code.startswith("bad_"):
            assert refused.json()["hint"]
    for what, body, status, code in (
        ("exit", None, 409, "at_agent_home"),
        ("detach", {"workspace_id": "agent_home"}, 409, "at_agent_home"),
        ("detach", {"workspace_id": "ws_none"}, 404, "workspace_not_found"),
        ("detach", {"workspace_id": "../x"}, 400, "bad_id"),
        ("detach", {}, 400, "bad_shape"),
    ):
        refused = await ask(server, what, body)
        assert (refused.status, refused.json()["code"]) == (status, code), refused.body
    unknown = await ask(server, "attach", {"path": str(tmp_path)}, agent="nobody")
    assert (unknown.status, unknown.json()["code"]) == (404, "agent_not_found")
    assert await state(server) == before


@pytest.mark.requirement("workspace:bad-input")
async def test_a_stopped_agent_stays_where_it_is(server: ControlServer, site: Path) -> None:
    attached = (await ask(server, "attach", {"path": str(site)})).json()["workspace"]
    workspace_id = attached["attached_workspaces"][0]["workspace_id"]
    await server.host.control.stop(MAIN)
    for what, body in (
        ("attach", {"path": str(site.parent)}),
        ("exit", None),
        ("detach", {"workspace_id": workspace_id}),
    ):
        refused = await ask(server, what, body)
        assert (refused.status, refused.json()["code"]) == (409, "agent_stopped")
        assert refused.json()["resume_path"]
    assert (await state(server))["workspace"] == attached


@pytest.mark.requirement("workspace:bad-input")
def test_a_command_of_an_agent_cannot_move_the_agent() -> None:
    keeper = Authorizer(owner_uid=7, token=NoToken(), runs_for_an_agent=lambda _: True)
    head = RequestHead(
        method="POST",
        path="/",
        query="",
        headers=(),
        peer=Peer(socket_kind=SocketKind.UNIX, address="", uid=7, pid=1),
    )
    assert all(isinstance(keeper.authorize(route.access, head), Forbidden) for route in ROUTES)


class NoToken:
    def digest(self) -> bytes | None:
        return None


@pytest.mark.requirement("workspace:survives-restarts")
async def test_a_restart_changes_nothing_about_where_an_agent_works(
    tmp_path: Path, site: Path
) -> None:
    async with served(tmp_path / "home") as first:
        await ask(first, "attach", {"path": str(tmp_path / "site")})
        await ask(first, "attach", {"path": str(site / "docs")})
        before = (await state(first))["workspace"]
    async with served(tmp_path / "home") as second:
        assert (await state(second))["workspace"] == before
        await worked(second)
        assert (site / "docs" / "where.txt").read_text() == f"{site / 'docs'}\n"
    assert check_database(database_path(tmp_path / "home")).violations == ()


@pytest.mark.requirement("workspace:occupancy")
@pytest.mark.requirement("workspace:worktree-keeps-its-project")
async def test_a_worktree_is_held_by_one_agent_and_a_repository_by_many(
    server: ControlServer, site: Path
) -> None:
    git(site, "commit", "-q", "--allow-empty", "-m", "one")
    tree = site.parent / "tree"
    git(site, "worktree", "add", "-q", str(tree))
    assert (await server.operator.post("/control/agents/other/create")).status == 200
    for agent in (MAIN, "other"):
        assert (await ask(server, "attach", {"path": str(site)}, agent=agent)).status == 200
    entered = (await ask(server, "attach", {"path": str(tree)})).json()["workspace"]
    entry = entered["active_workspace_entry"]
    assert (entry["workspace_anchor"], entry["execution_root"]) == (str(site), str(tree))
    assert (entry["projection_kind"], entry["access_mode"]) == (
        "git_worktree_root",
        "exclusive_write",
    )
    assert len(entered["attached_workspaces"]) == 1
    refused = await ask(server, "attach", {"path": str(tree)}, agent="other")
    assert (refused.status, refused.json()["code"]) == (409, "workspace_occupied")
    await ask(server, "exit")
    entered = await ask(server, "attach", {"path": str(tree)}, agent="other")
    assert entered.status == 200, entered.body
    assert check_database(database_path(server.home)).violations == ()


async def test_of_two_who_want_a_worktree_at_once_one_gets_it(
    server: ControlServer, site: Path
) -> None:
    git(site, "commit", "-q", "--allow-empty", "-m", "one")
    git(site, "worktree", "add", "-q", str(site.parent / "tree"))
    names = ["main", *(f"a{number}" for number in range(4))]
    for agent in names[1:]:
        await server.operator.post(f"/control/agents/{agent}/create")
    for agent in names:
        await ask(server, "attach", {"path": str(site)}, agent=agent)
    statuses: list[int] = []

    async def want(agent: str) -> None:
        answer = await ask(server, "attach", {"path": str(site.parent / "tree")}, agent=agent)
        statuses.append(answer.status)

    async with anyio.create_task_group() as wanting:
        for agent in names:
            wanting.start_soon(want, agent)
    assert sorted(statuses) == [200, 409, 409, 409, 409]
    assert check_database(database_path(server.home)).violations == ()


async def test_moving_about_leaves_few_rows(server: ControlServer, site: Path) -> None:
    for _ in range(5):
        await ask(server, "attach", {"path": str(site)})
        await ask(server, "attach", {"path": str(site / "docs")})
        await ask(server, "attach", {"path": str(site / "docs")})  # is there already
        await ask(server, "exit")
    report = check_database(database_path(server.home))
    assert (report.violations, report.counts["workspace_occupancies"]) == ((), 1)
    assert report.counts["workspaces"] == 1
