"""Homes are whole when they appear, and go without a trace when nobody is born into them."""

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holon.adapters.files.agent_homes import FileAgentHomes, agents_md_of
from holon.adapters.files.builtin_templates import seed_templates
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.new_tree import remove_tree
from holon.adapters.files.skill_folders import FolderSkillInstaller
from holon.adapters.files.templates import TemplateStore
from holon.model.agents import BadTemplateError
from holon.model.guidance import BadSkillRefError
from holon.model.values import AgentId
from holon.ports.agents import AgentHomeError, HomeOccupiedError
from tests.adapters.files.archives import COMMIT, serving_repository

ADA = AgentId("ada")
SKILL = "---\nname: fix\ndescription: Fixes.\n---\n"
AT = datetime(2026, 4, 22, 12, tzinfo=UTC)
LAYOUT = [
    ".holon",
    ".holon/indexes",
    ".holon/ledger",
    ".holon/state",
    ".holon/state/template-provenance.json",
    "AGENTS.md",
    "memory",
    "memory/operator.md",
    "memory/self.md",
    "notes",
    "skills",
    "work",
]


class Town:
    """A HOLON_HOME and a person with templates."""

    def __init__(self, root: Path, base: str = "https://codeload.github.com") -> None:
        self.templates = root / "user" / ".agents" / "templates"
        seed_templates(self.templates)
        self.agents = root / "holon" / "agents"
        github = GithubTrees(base)
        store = TemplateStore(self.templates, github)
        self.homes = FileAgentHomes(root / "holon", store, FolderSkillInstaller(github))
        self.home = self.agents / ADA

    async def make(self, template: str | None = None) -> None:
        await self.homes.make(ADA, template=template, at=AT)

    def template(self, name: str, manifest: object) -> str:
        folder = self.templates / name
        folder.mkdir()
        (folder / "AGENTS.md").write_text("# Mine\n")
        (folder / "skills.json").write_text(json.dumps(manifest))
        return name

    def left(self) -> list[str]:
        """What is where agents live."""
        if not self.agents.exists():
            return []
        return sorted(str(each.relative_to(self.agents)) for each in self.agents.rglob("*"))


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def below(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


@pytest.mark.requirement("agent-init:home-layout")
async def test_a_home_has_its_layout_and_is_the_owners_alone(town: Town) -> None:
    await town.make()
    await town.homes.keep(ADA)
    assert below(town.home) == LAYOUT
    for path in (town.home, *town.home.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert town.left()[0] == ".births"
    assert os.listdir(town.agents / ".births") == []


@pytest.mark.requirement("agent-init:home-guidance")
@pytest.mark.requirement("agent-init:content-boundary")
def test_every_agents_md_tells_about_the_home_once() -> None:
    bare, made = agents_md_of(None), agents_md_of("# Ops\n\nDoes it.\n")
    assert made.startswith("# Ops\n\nDoes it.\n\n<!-- holon:agent-home -->")
    for text in (bare, made):
        assert text.count("holon:agent-home") == 1
        for word in ("memory/self.md", "memory/operator.md", "notes/", "work/", "skills/"):
            assert word in text
        assert "acceptance criteria of one job and debugging notes do not belong here" in text
    assert agents_md_of(made) == made


@pytest.mark.requirement("agent-init:templates-initialize")
@pytest.mark.requirement("agent-init:skills-live-in-the-home")
@pytest.mark.requirement("agent-init:provenance-is-recorded")
@pytest.mark.requirement("agent-init:no-skill-manifest-in-the-home")
async def test_a_template_gives_guidance_skills_and_a_record(town: Town, tmp_path: Path) -> None:
    skill = tmp_path / "deploy"
    skill.mkdir()
    (skill / "SKILL.md").write_text(SKILL)
    refs = [{"kind": "local", "path": str(skill)}, {"kind": "builtin", "name": "github-pr-fix"}]
    await town.make(town.template("mine", {"skill_refs": refs}))
    assert (town.home / "AGENTS.md").read_text().startswith("# Mine\n\n")
    assert sorted(os.listdir(town.home / "skills")) == ["deploy", "github-pr-fix"]
    assert (town.home / "skills" / "deploy" / "SKILL.md").read_text() == SKILL
    assert not (town.home / "skills.json").exists()
    text = (town.home / ".holon/state/template-provenance.json").read_text()
    record = json.loads(text)
    assert record["created_at"] == AT.isoformat()
    assert record["template"]["selector"] == "mine"
    assert len(record["template"]["agents_md_sha256"]) == 64
    assert [each["name"] for each in record["skills"]] == ["deploy", "github-pr-fix"]
    assert "# Mine" not in text  # no second copy of the guidance


async def test_a_github_template_records_its_commit(tmp_path: Path) -> None:
    files = {
        "t/ci/AGENTS.md": "# CI\n",
        "t/ci/skills.json": '{"skill_refs": [{"kind": "github", "package": "acme/x@fix"}]}',
        "skills/fix/SKILL.md": SKILL,
    }
    with serving_repository(files) as (base, asked):
        town = Town(tmp_path, base)
        await town.make("https://github.com/acme/agents/tree/v2/t/ci")
    assert asked == ["/acme/agents/tar.gz/v2", "/acme/x/tar.gz/HEAD"]
    record = json.loads((town.home / ".holon/state/template-provenance.json").read_text())
    assert (record["template"]["ref"], record["template"]["commit"]) == ("v2", COMMIT)
    assert (town.home / "skills" / "fix" / "SKILL.md").read_text() == SKILL


@pytest.mark.requirement("agent-init:template-is-not-live")
async def test_a_template_that_changes_later_changes_no_agent(town: Town) -> None:
    name = town.template("mine", {"skill_refs": [{"kind": "builtin", "name": "github-pr-fix"}]})
    await town.make(name)
    await town.homes.keep(ADA)
    before = (town.home / "AGENTS.md").read_text()
    (town.templates / name / "AGENTS.md").write_text("# Other\n")
    await town.homes.complete(ADA, template=name)
    assert (town.home / "AGENTS.md").read_text() == before


@pytest.mark.requirement("agent-init:fails-closed")
@pytest.mark.requirement("agent-init:skill-failure-fails-the-template")
@pytest.mark.parametrize(
    "manifest",
    [
        {"skill_refs": [{"kind": "builtin", "name": "github-pr-fix"}, {"kind": "x"}]},
        {"skill_refs": [{"kind": "builtin", "name": "github-pr-fix"}] * 2},
        {"skill_refs": [{"kind": "builtin", "name": "gone"}]},
        {
            "skill_refs": [
                {"kind": "builtin", "name": "holon-work-items"},
                {"kind": "local", "path": "/no/such/skill"},
            ]
        },
        {"skills": []},
    ],
)
async def test_a_template_with_a_missing_skill_makes_nothing(town: Town, manifest: object) -> None:
    with pytest.raises((BadTemplateError, BadSkillRefError)):
        await town.make(town.template("mine", manifest))
    assert town.left() in ([], [".births"])
    assert list(await town.homes.provisional()) == []


@pytest.mark.requirement("agent-init:skill-failure-fails-the-template")
async def test_a_template_with_a_skill_that_says_nothing_of_itself_makes_nothing(
    town: Town, tmp_path: Path
) -> None:
    skill = tmp_path / "deploy"
    skill.mkdir()
    (skill / "SKILL.md").write_text("# Only a body\n")
    manifest = {"skill_refs": [{"kind": "local", "path": str(skill)}]}
    with pytest.raises(BadSkillRefError, match="no front matter"):
        await town.make(town.template("mine", manifest))
    assert town.left() == [".births"]
    assert list(await town.homes.provisional()) == []


@pytest.mark.requirement("agent-init:fails-closed")
@pytest.mark.parametrize("template", ["gone", "/no/such", "https://evil.example/x", "../x", ""])
async def test_a_template_that_cannot_be_resolved_makes_nothing(town: Town, template: str) -> None:
    with pytest.raises(BadTemplateError):
        await town.make(template)
    assert town.left() in ([], [".births"])


async def test_a_hostile_archive_makes_nothing(tmp_path: Path) -> None:
    with serving_repository({"t/../../evil": "x", "t/AGENTS.md": "x"}) as (base, _):
        town = Town(tmp_path, base)
        with pytest.raises(BadTemplateError, match="relative path"):
            await town.make("https://github.com/acme/agents/tree/v2/t")
    assert town.left() == [".births"]


async def test_a_provisional_home_goes_without_a_trace(town: Town) -> None:
    await town.make("holon-default")
    assert list(await town.homes.provisional()) == [ADA]
    await town.homes.discard(ADA)
    assert town.left() == [".births"]
    await town.homes.discard(ADA)


async def test_a_home_that_was_kept_is_never_discarded(town: Town) -> None:
    await town.make("holon-default")
    await town.homes.keep(ADA)
    await town.homes.discard(ADA)
    assert (town.home / "AGENTS.md").exists()


async def test_what_a_killed_birth_left_is_made_anew(town: Town) -> None:
    await town.make("holon-default")
    (town.home / "notes" / "x").write_text("nobody wrote this")
    await town.make()  # the first one was never born
    assert below(town.home) == LAYOUT
    assert "# Agent" in (town.home / "AGENTS.md").read_text()


async def test_only_the_very_directory_that_was_placed_is_taken_away(town: Town) -> None:
    await town.make()
    town.home.rename(town.agents / "moved")
    town.home.mkdir()
    (town.home / "mine").write_text("mine")
    await town.homes.discard(ADA)
    assert os.listdir(town.home) == ["mine"]


async def test_a_sign_that_cannot_be_read_is_told_as_a_problem_of_that_home(town: Town) -> None:
    await town.make()
    sign = town.agents / ".births" / ADA / "placed.json"
    sign.unlink()
    sign.mkdir()
    with pytest.raises(AgentHomeError, match="cannot be removed"):
        await town.homes.discard(ADA)
    assert town.home.is_dir()


async def test_a_sign_that_cannot_be_removed_is_told_and_leaves_the_home_provisional(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    await town.make()
    monkeypatch.setattr("holon.adapters.files.agent_homes.remove_tree", stuck)
    with pytest.raises(AgentHomeError, match=f"births/{ADA} cannot be removed"):
        await town.homes.keep(ADA)
    assert list(await town.homes.provisional()) == [ADA]
    assert town.home.is_dir()


async def test_a_directory_that_was_there_is_completed_or_refused(town: Town) -> None:
    town.home.mkdir(parents=True)
    (town.home / "AGENTS.md").write_text("mine")
    with pytest.raises(HomeOccupiedError):
        await town.make("holon-default")
    assert below(town.home) == ["AGENTS.md"]
    await town.make()
    assert (town.home / "AGENTS.md").read_text() == "mine"
    assert (town.home / "memory" / "self.md").exists()
    await town.homes.discard(ADA)
    assert (town.home / "AGENTS.md").exists()


async def test_an_empty_directory_is_no_obstacle(town: Town) -> None:
    town.home.mkdir(parents=True)
    await town.make("holon-default")
    assert "long-lived assistant" in (town.home / "AGENTS.md").read_text()


@pytest.mark.requirement("agent-init:default-agent-gets-missing-guidance")
async def test_completing_adds_and_never_overwrites(town: Town) -> None:
    (town.home / "memory").mkdir(parents=True)
    (town.home / "memory" / "self.md").write_text("I know things.")
    await town.homes.complete(ADA, template="holon-default")
    assert "long-lived assistant" in (town.home / "AGENTS.md").read_text()
    assert (town.home / "memory" / "self.md").read_text() == "I know things."
    (town.home / "AGENTS.md").write_text("edited")
    await town.homes.complete(ADA, template="holon-default")
    assert (town.home / "AGENTS.md").read_text() == "edited"
    (town.home / "AGENTS.md").unlink()
    (town.home / "AGENTS.md").symlink_to("/nowhere")
    await town.homes.complete(ADA, template="holon-default")
    assert os.readlink(town.home / "AGENTS.md") == "/nowhere"


@pytest.mark.requirement("agent-init:default-agent-gets-missing-guidance")
@pytest.mark.parametrize("broken", ["empty", "skill"])
async def test_the_first_agent_gets_holons_own_where_the_users_default_is_broken(
    town: Town, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    mine = town.templates / "holon-default"
    if broken == "empty":
        remove_tree(mine)
        mine.mkdir()
    else:
        refs = [{"kind": "builtin", "name": "ghx"}, {"kind": "local", "path": "/no/such/skill"}]
        (mine / "skills.json").write_text(json.dumps({"skill_refs": refs}))
    await town.make("holon-default")
    await town.homes.keep(ADA)
    assert "long-lived assistant" in (town.home / "AGENTS.md").read_text()
    assert os.listdir(town.home / "skills") == ["holon-work-items"]
    assert "comes with Holon, since yours cannot be used" in caplog.text
    with pytest.raises((BadTemplateError, BadSkillRefError)):
        await town.homes.make(AgentId("bob"), template="holon-default", at=AT)
    assert not (town.agents / "bob").exists()


@pytest.mark.requirement("agent-init:default-agent-gets-missing-guidance")
async def test_missing_guidance_is_holons_own_where_the_users_default_is_broken(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    (town.templates / "holon-default" / "AGENTS.md").unlink()
    await town.homes.complete(ADA, template="holon-default")
    assert "long-lived assistant" in (town.home / "AGENTS.md").read_text()
    assert "comes with Holon, since yours cannot be used" in caplog.text


async def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "holon").mkdir()
    (tmp_path / "holon" / "agents").write_text("a file")
    town = Town(tmp_path)
    with pytest.raises(AgentHomeError, match="cannot be made"):
        await town.make()
