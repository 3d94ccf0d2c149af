"""The homes of past one-shot runs are found and removed, and nothing else is."""

import os
from pathlib import Path

import pytest

from holon.adapters.files.agent_homes import FileAgentHomes
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.skill_folders import FolderSkillInstaller
from holon.adapters.files.templates import TemplateStore
from holon.model.errors import HolonError
from holon.model.limits import RUN_HOMES_COUNT_MAX
from holon.model.values import AgentId

RUN = AgentId("tmp_run_01")


@pytest.fixture
def homes(tmp_path: Path) -> FileAgentHomes:
    """The homes under a HOLON_HOME."""
    github = GithubTrees("https://codeload.github.com")
    store = TemplateStore(tmp_path / "templates", github)
    return FileAgentHomes(tmp_path, store, FolderSkillInstaller(github))


def home_of(root: Path, name: str) -> Path:
    """A home with a file, deep inside, and a link to what is not its own."""
    home = root / "agents" / name
    (home / "notes" / "deep").mkdir(parents=True)
    (home / "notes" / "deep" / "a.md").write_text("x")
    return home


@pytest.mark.requirement("run-homes:removed-with-their-rows")
async def test_a_home_is_removed_whole_with_what_an_earlier_attempt_left(
    homes: FileAgentHomes, tmp_path: Path
) -> None:
    home = home_of(tmp_path, RUN)
    (tmp_path / "agents" / ".removed" / RUN / "half").mkdir(parents=True)
    await homes.remove(RUN)
    assert not home.exists()
    assert os.listdir(tmp_path / "agents" / ".removed") == []


@pytest.mark.requirement("run-homes:crash-safe")
async def test_what_a_killed_process_had_begun_to_remove_goes_with_the_next_look(
    homes: FileAgentHomes, tmp_path: Path
) -> None:
    left = tmp_path / "agents" / ".removed" / RUN
    left.mkdir(parents=True)
    (left / "rest.md").write_text("x")
    assert await homes.temporary() == ()
    assert not left.exists()


@pytest.mark.requirement("run-homes:nothing-else")
async def test_only_folders_named_like_a_run_are_named(
    homes: FileAgentHomes, tmp_path: Path
) -> None:
    for name in (RUN, "builder", "tmp_run", "Tmp_run_2"):
        home_of(tmp_path, name)
    (tmp_path / "agents" / "tmp_run_file").write_text("x")
    (tmp_path / "agents" / "tmp_run_link").symlink_to(tmp_path / "agents" / "builder")
    assert await homes.temporary() == (RUN,)


@pytest.mark.requirement("run-homes:never-through-a-link")
@pytest.mark.parametrize("where", ["home", "removed", "agents"])
async def test_a_link_is_never_followed(homes: FileAgentHomes, tmp_path: Path, where: str) -> None:
    outside = tmp_path / "outside"
    kept = home_of(outside, RUN)
    (outside / "agents" / "mine.md").write_text("x")
    agents = tmp_path / "agents"
    if where == "agents":
        agents.symlink_to(outside / "agents")
    elif where == "home":
        agents.mkdir()
        (agents / RUN).symlink_to(kept)
    else:
        home_of(tmp_path, RUN)
        (agents / ".removed").symlink_to(outside / "agents")
    before = sorted(outside.rglob("*"))
    if where == "agents":
        assert await homes.temporary() == ()
    elif where == "removed":
        with pytest.raises(HolonError):
            await homes.temporary()
    with pytest.raises(HolonError):
        await homes.remove(RUN)
    assert sorted(outside.rglob("*")) == before


@pytest.mark.requirement("run-homes:never-through-a-link")
async def test_a_link_inside_a_home_goes_and_what_it_leads_to_stays(
    homes: FileAgentHomes, tmp_path: Path
) -> None:
    home = home_of(tmp_path, RUN)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.md").write_text("x")
    (home / "notes" / "mine").symlink_to(tmp_path / "mine")
    await homes.remove(RUN)
    assert not home.exists()
    assert (tmp_path / "mine" / "a.md").read_text() == "x"


async def test_a_look_is_bounded_and_begins_with_the_oldest(
    homes: FileAgentHomes, tmp_path: Path
) -> None:
    for number in range(RUN_HOMES_COUNT_MAX + 1):
        (tmp_path / "agents" / f"tmp_run_{number:05}").mkdir(parents=True)
    found = await homes.temporary()
    assert len(found) == RUN_HOMES_COUNT_MAX
    assert found[0] == "tmp_run_00000"
