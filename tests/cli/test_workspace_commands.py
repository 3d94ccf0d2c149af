"""Workspaces from a terminal, over a running server."""

from pathlib import Path

import pytest

from holon.cli.console import exit_codes
from tests.adapters.system.test_workspace_finder import git
from tests.cli.operator_desk import Desk


@pytest.mark.requirement("workspace:attach-binds")
async def test_a_workspace_is_attached_listed_left_and_forgotten(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    git(site, "init", "-q")
    home = desk.server.home / "agents" / "main"
    assert await desk.said("workspace", "list") == f"no workspaces\nworks in {home}\n"
    monkeypatch.chdir(tmp_path)
    said = await desk.said("workspace", "attach", "./site")
    assert said.startswith(f"main works in {site} (ws_")
    state = await desk.told("workspace", "list")
    workspace_id = state["active_workspace_entry"]["workspace_id"]
    _, row, place = (await desk.said("workspace", "list")).splitlines()
    assert row.split() == [workspace_id, "yes", "site", str(site)]
    assert place == f"works in {site}"
    assert str(site) in await desk.said("status")
    refused = await desk.holon("workspace", "detach", workspace_id)
    assert (refused.exit_code, refused.stdout) == (exit_codes.FAILED, "")
    assert "exit it first" in refused.stderr
    assert await desk.said("workspace", "exit") == f"main works in {home} (agent_home)\n"
    answer = await desk.told("workspace", "detach", workspace_id)
    assert (answer["ok"], answer["workspace"]["attached_workspaces"]) == (True, [])


@pytest.mark.requirement("workspace:bad-input")
async def test_what_cannot_be_done_is_said_in_a_sentence(desk: Desk, tmp_path: Path) -> None:
    for arguments, words in (
        (("attach", str(tmp_path / "none")), "does not exist"),
        (("attach", str(desk.server.home)), "keeps its own files"),
        (("attach", "/tmp\x1b[2J"), "does not exist"),
        (("exit",), "works at home"),
        (("detach", "ws_none"), "no workspace ws_none"),
        (("attach", "/", "--agent", "nobody"), "no agent nobody"),
    ):
        done = await desk.holon("workspace", *arguments)
        assert (done.exit_code, done.stdout) == (exit_codes.FAILED, ""), arguments
        assert words in done.stderr
        assert "\x1b" not in done.stderr


@pytest.mark.requirement("memory-index:scope")
async def test_what_was_said_in_one_workspace_is_not_found_in_another(
    desk: Desk, tmp_path: Path
) -> None:
    for name in ("site", "shop"):
        (tmp_path / name).mkdir()
    await desk.said("workspace", "attach", str(tmp_path / "site"))
    assert await desk.said("prompt", "--wait", "hello") == "Hello yourself.\n"
    assert "Hello yourself." in await desk.said("memory", "search", "yourself")
    await desk.said("workspace", "attach", str(tmp_path / "shop"))
    assert "Hello yourself." not in await desk.said("memory", "search", "yourself")


async def test_a_workspace_nobody_knows_leads_to_the_list_of_those_there_are(desk: Desk) -> None:
    done = await desk.holon("workspace", "detach", "ws_none")
    assert done.stderr.splitlines()[1].endswith("holon workspace list")
