"""Agents of a whole host: homes from templates, guidance that is alive, and a person's files."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from holon.adapters.files.builtin_templates import builtin_template_ids
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.config.load_settings import load_settings
from holon.model.agents import GITHUB_ARCHIVES
from holon.model.values import AgentId
from holon.ports.journal import NoJournal
from holon.serve.agent_adapters import UserFiles, seed, user_files_of
from holon.serve.compose import HostOptions
from holon.serve.configured_host import open_configured_host
from holon.serve.one_shot import named_agent, temporary_agent
from tests.adapters.files.archives import serving
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server


@asynccontextmanager
async def a_server(root: Path, base: str = GITHUB_ARCHIVES) -> AsyncIterator[ControlServer]:
    """A service for a person whose home is under `root`, templates and all."""
    files = UserFiles(user_home=root / "user", github_base=base)
    seed(files, NoJournal())
    options = ServerOptions(host=HostOptions(user_files=files))
    async with control_server(root / "holon", options) as server:
        yield server


def home_of(root: Path, agent_id: str) -> Path:
    return root / "holon" / "agents" / agent_id


async def prompt_of(server: ControlServer, agent_id: AgentId = MAIN) -> str:
    """Everything the agent's next prompt would say."""
    return msgspec.json.encode(await server.host.prompts.look(agent_id)).decode()


async def create(server: ControlServer, name: str, body: object | None = None) -> tuple[int, str]:
    answer = await server.operator.post(f"/control/agents/{name}/create", body)
    return answer.status, answer.body.decode()


@pytest.mark.requirement("agent-init:every-agent-has-a-home")
@pytest.mark.requirement("agent-init:uniform-treatment")
async def test_default_named_and_temporary_agents_have_the_same_kind_of_home(
    tmp_path: Path,
) -> None:
    async with a_server(tmp_path) as server:
        assert (await create(server, "ada"))[0] == 200
        assert (await create(server, "rev", {"template": "holon-reviewer"}))[0] == 200
        clock = SystemClock()
        temporary = await temporary_agent(server.host, clock, TimeOrderedIds())
        await named_agent(
            server.host, clock, AgentId("dev"), create=True, template="holon-developer"
        )
    for agent_id in ("main", "ada", "rev", "dev", temporary):
        home = home_of(tmp_path, agent_id)
        folders = {each.name for each in home.iterdir() if each.is_dir()}
        assert folders >= {"memory", "notes", "work", "skills", ".holon"}
        assert "holon:agent-home" in (home / "AGENTS.md").read_text()
    assert sorted(os.listdir(home_of(tmp_path, "rev") / "skills")) == ["ghx", "github-review"]
    assert os.listdir(home_of(tmp_path, "ada") / "skills") == []


@pytest.mark.requirement("agent-init:agent-local-skills")
@pytest.mark.requirement("agent-init:own-agents-md")
async def test_what_a_template_gives_belongs_to_one_agent(tmp_path: Path) -> None:
    async with a_server(tmp_path) as server:
        await create(server, "rev", {"template": "holon-reviewer"})
        await create(server, "ada")
        reviewers, others = [await prompt_of(server, AgentId(name)) for name in ("rev", "ada")]
    assert "You review changes others made." in reviewers
    assert "You review changes others made." not in others
    assert "github-review" not in others
    assert not (tmp_path / "user" / ".agents" / "skills").exists()


@pytest.mark.requirement("agent-init:edits-count-from-the-next-prompt")
@pytest.mark.requirement("agent-init:agents-md-may-evolve")
async def test_an_edit_is_in_the_next_prompt_and_survives_a_restart(tmp_path: Path) -> None:
    own = home_of(tmp_path, "main") / "AGENTS.md"
    async with a_server(tmp_path) as server:
        assert "long-lived assistant" in await prompt_of(server)
        own.write_text("# Me\n\nAlways answer in rhyme.\n")
        assert "Always answer in rhyme." in await prompt_of(server)
    async with a_server(tmp_path) as server:
        assert "Always answer in rhyme." in await prompt_of(server)
    assert own.read_text() == "# Me\n\nAlways answer in rhyme.\n"


@pytest.mark.requirement("agent-init:default-agent-gets-missing-guidance")
async def test_the_default_agent_gets_back_guidance_that_is_missing(tmp_path: Path) -> None:
    own = home_of(tmp_path, "main") / "AGENTS.md"
    async with a_server(tmp_path):
        own.unlink()
    async with a_server(tmp_path):
        assert "long-lived assistant" in own.read_text()


@pytest.mark.requirement("agent-init:fails-closed")
async def test_a_template_that_fails_leaves_neither_home_nor_agent(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "AGENTS.md").write_text("# Broken\n")
    refs = {"skill_refs": [{"kind": "local", "path": "/no/such/skill"}]}
    (broken / "skills.json").write_text(json.dumps(refs))
    with serving(lambda path: (302, {"Location": "http://169.254.169.254/"}, b"")) as (base, asked):
        async with a_server(tmp_path, base) as server:
            said = {
                text: (await create(server, "ada", {"template": text}))[0]
                for text in (
                    "gone",
                    "../x",
                    str(broken),
                    "http://github.com/a/b/tree/c/d",
                    "https://github.com.evil/a/b/tree/c/d",
                    "https://github.com/a/b/tree/c/d",
                )
            }
            assert await server.host.reads.agents.agent(AgentId("ada")) is None
            assert sorted(os.listdir(tmp_path / "holon" / "agents")) == [".births", "main"]
            assert os.listdir(tmp_path / "holon" / "agents" / ".births") == []
            assert (await create(server, "ada"))[0] == 200
    assert sorted(said.values()) == [400, 400, 400, 400, 400, 502]
    assert asked == ["/a/b/tar.gz/c"]  # the only one that was well formed


@pytest.mark.requirement("agent-init:no-inline-guidance")
async def test_an_agent_is_made_from_a_selector_and_not_from_a_text(tmp_path: Path) -> None:
    async with a_server(tmp_path) as server:
        for body in ({"instructions": "You are"}, {"agents_md": "# X"}, {"template": {"id": "x"}}):
            assert (await create(server, "ada", body))[0] == 400
        assert (await create(server, "ada", {"template": "# You are a pirate.\nArr"}))[0] == 400
        assert await server.host.reads.agents.agent(AgentId("ada")) is None


@pytest.mark.requirement("agent-init:seeded-at-startup")
async def test_a_start_seeds_the_templates_of_the_person(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "user")}
    settings = load_settings(tmp_path / "holon", environ, {"model.default": "scripted/hello"})
    async with open_configured_host(settings, environ):
        pass
    seeded = sorted(os.listdir(tmp_path / "user" / ".agents" / "templates"))
    assert tuple(seeded) == builtin_template_ids()


async def test_a_person_whose_home_cannot_be_written_is_served_all_the_same(
    tmp_path: Path,
) -> None:
    (tmp_path / "user").write_text("a file")
    async with a_server(tmp_path) as server:
        assert "long-lived assistant" in await prompt_of(server)
        assert (await create(server, "rev", {"template": "holon-reviewer"}))[0] == 200


def test_a_home_that_nobody_names_is_looked_up_and_a_relative_one_is_none() -> None:
    found = user_files_of({}, GITHUB_ARCHIVES)
    assert found is None or found.user_home.is_absolute()
    assert user_files_of({"HOME": "here"}, GITHUB_ARCHIVES) is None


@pytest.mark.requirement("agent-init:workspace-files-are-no-configuration")
def test_files_of_a_workspace_are_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, home = tmp_path / "site", tmp_path / "holon"
    before = load_settings(home, {"HOME": str(tmp_path)})
    for name in (".env", ".holon/config", ".holon/config.toml", "config.toml", "holon.toml"):
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            'HOLON_HOME="/evil"\nHOLON_OPENAI_BASE_URL="http://evil.example"\n'
            if name == ".env"
            else '[providers.openai]\nbase_url = "http://evil.example"\n'
            '[templates]\ngithub_base = "http://evil.example"\n'
        )
    (site / "AGENTS.md").write_text('providers.openai.base_url = "http://evil.example"\n')
    monkeypatch.chdir(site)
    after = load_settings(home, {"HOME": str(tmp_path)})
    assert after == before
    assert after.github_base == GITHUB_ARCHIVES
