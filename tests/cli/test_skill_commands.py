"""Skills from a terminal, over a running server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.clock import SystemClock
from holon.cli.console import exit_codes
from holon.model.agents import GITHUB_ARCHIVES
from holon.model.guidance import SkillActivated, SkillInstalled, SkillUninstalled
from holon.serve.agent_adapters import UserFiles
from holon.serve.compose import ExecOptions, HostOptions
from tests.adapters.files.archives import serving_repository
from tests.cli.operator_desk import Desk
from tests.http.serving import events_of, make_agent, settled
from tests.support.control_server import ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

BUILTIN = "github-review"
BORN_WITH = "holon-work-items"  # what the template of a default agent brings
READ = ScriptedCall(name="ExecCommand", input={"cmd": f"cat skills/{BUILTIN}/SKILL.md"})
SCRIPT = Script(
    rules=(ScriptedRule(rounds=(ScriptedRound(calls=(READ,)), ScriptedRound(text="k"))),)
)


@asynccontextmanager
async def skilled(root: Path, base: str = GITHUB_ARCHIVES) -> AsyncIterator[Desk]:
    """A desk at a server that works for a person."""
    options = HostOptions(
        exec_options=ExecOptions(environ={"PATH": os.environ["PATH"]}),
        user_files=UserFiles(user_home=root / "user", github_base=base),
    )
    models = SingleModel(ScriptedProvider(SCRIPT, SystemClock()))
    async with control_server(root / "home", ServerOptions(models=models, host=options)) as server:
        yield Desk(server)
    assert check_database(database_path(root / "home")).violations == ()


def a_skill(folder: Path, text: str = "---\nname: mend\ndescription: Mends.\n---\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


@pytest.mark.requirement("skills:commands", "skills:installed-events")
async def test_a_skill_is_installed_listed_and_uninstalled(tmp_path: Path) -> None:
    async with skilled(tmp_path) as desk:
        assert [each["name"] for each in (await desk.told("skills", "list"))["skills"]] == [
            BORN_WITH
        ]
        said = await desk.said("skills", "install", BUILTIN)
        assert said.startswith(f"{BUILTIN}: installed for main in {desk.server.home}")
        table = await desk.said("skills", "list")
        assert table.splitlines()[1].split()[:3] == [BUILTIN, "agent", "no"]
        found = await desk.told("skills", "list")
        assert [each["name"] for each in found["skills"]] == [BUILTIN, BORN_WITH]
        assert [each["name"] for each in found["installed"]] == [BUILTIN, BORN_WITH]
        assert not any(each.get("is_changed") for each in found["installed"])
        assert found["problems"] == []
        assert "no problem" in await desk.said("skills", "check")
        for name in (BUILTIN, BORN_WITH):
            assert "uninstalled" in await desk.said("skills", "uninstall", name)
        assert "no skills" in await desk.said("skills", "list")
        log = await events_of(desk.server.host)
        told = [each for each in log if isinstance(each, SkillInstalled | SkillUninstalled)]
        assert [(type(each), each.skill_name) for each in told] == [
            (SkillInstalled, BUILTIN),
            (SkillUninstalled, BUILTIN),
            (SkillUninstalled, BORN_WITH),
        ]


@pytest.mark.requirement("skills:commands", "skills:changes-are-kept")
async def test_a_local_skill_is_linked_or_copied_and_a_changed_copy_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_skill(tmp_path / "src" / "mend")
    monkeypatch.chdir(tmp_path / "src")
    async with skilled(tmp_path) as desk:
        target = desk.server.home / "agents/main/skills/mend"
        await desk.said("skills", "install", "./mend")
        assert target.is_symlink()
        await desk.said("skills", "uninstall", "mend")
        await desk.said("skills", "install", "mend", "--copy")
        assert not target.is_symlink()
        (target / "SKILL.md").write_text("---\nname: mend\ndescription: Mine.\n---\n")
        refused = await desk.holon("skills", "install", "mend", "--copy")
        assert refused.exit_code == exit_codes.FAILED
        assert "--force" in refused.stderr
        assert "Mine." in (target / "SKILL.md").read_text()
        assert "1 changed" in await desk.said("skills", "list")
        await desk.said("skills", "install", "mend", "--copy", "--force")
        assert "Mends." in (target / "SKILL.md").read_text()


@pytest.mark.requirement("skills:commands", "skills:install-is-whole")
async def test_a_remote_skill_is_fetched_whole_or_not_at_all(tmp_path: Path) -> None:
    files = {"skills/fix/SKILL.md": "---\nname: fix\ndescription: Fixes.\n---\n"}
    with serving_repository(files) as (base, _):
        async with skilled(tmp_path, base) as desk:
            folder = desk.server.home / "agents/main/skills"
            refused = await desk.holon("skills", "install", "acme/skills@gone", "--remote")
            assert refused.exit_code == exit_codes.FAILED
            assert os.listdir(folder) == [BORN_WITH]
            remote = ("install", "acme/skills", "--remote", "--skill", "fix")
            answer = await desk.told("skills", *remote)
            assert (answer["source_kind"], answer["source"]) == ("github", "acme/skills@fix")
            assert sorted(os.listdir(folder)) == ["fix", BORN_WITH]


@pytest.mark.requirement("skills:problems-are-told")
async def test_check_says_what_is_wrong_and_ends_with_one(tmp_path: Path) -> None:
    a_skill(tmp_path / "user/.claude/skills/bad", "# nothing\x1b[2J\n")
    async with skilled(tmp_path) as desk:
        done = await desk.holon("skills", "check")
        assert done.exit_code == exit_codes.FOUND_FAULTS
        assert "no front matter" in done.stdout
        assert "1 problem;" in await desk.said("skills", "list")


@pytest.mark.requirement("skills:passed-over-roots-are-shown")
async def test_check_shows_what_is_passed_over_and_what_that_hides(tmp_path: Path) -> None:
    a_skill(tmp_path / "user/.agents/skills/mend")
    a_skill(tmp_path / "user/.claude/skills/saw", "---\nname: saw\ndescription: d\n---\n")
    a_skill(tmp_path / "user/.claude/skills/mend")
    async with skilled(tmp_path) as desk:
        said = await desk.said("skills", "check")
        [line] = [each for each in said.splitlines() if "is ignored" in each]
        assert "user/.claude/skills is ignored" in line
        assert "user/.agents/skills comes first: it hides saw" in line
        found = await desk.told("skills", "check")
        assert found["problems"] == []
        assert found["passed_over"][0]["hidden_skills"] == ["saw"]


@pytest.mark.requirement("skills:problems-are-told")
async def test_the_list_counts_every_problem_and_cuts_what_is_long(tmp_path: Path) -> None:
    skills = tmp_path / "user/.agents/skills"
    for number in range(38):
        a_skill(skills / f"bad{number}", "nothing\n")
    a_skill(skills / "mend", f"---\nname: mend\ndescription: {'word ' * 200}\n---\n")
    async with skilled(tmp_path) as desk:
        table = await desk.said("skills", "list")
        assert "38 problems; see: holon skills check\n" in table
        named = await desk.said("skills", "list", "--agent", "main")
        assert named.endswith("see: holon skills check --agent main\n")
        there = await desk.said("skills", "list", "--home", str(desk.server.home))
        assert there.endswith(f"see: holon skills check --home {desk.server.home}\n")
        assert max(map(len, table.splitlines())) < 250
        assert any(line.endswith("…") for line in table.splitlines())
        found = await desk.told("skills", "list")
        assert (found["problems_count"], len(found["problems"])) == (38, 33)
        assert len(found["skills"][0]["description"]) > 900


@pytest.mark.requirement("skills:commands")
async def test_a_skill_is_uninstalled_by_the_name_the_list_shows(tmp_path: Path) -> None:
    a_skill(tmp_path / "src/folder")
    a_skill(tmp_path / "user/.agents/skills/theirs", "---\nname: own\ndescription: d\n---\n")
    async with skilled(tmp_path) as desk:
        await desk.said("skills", "install", str(tmp_path / "src/folder"))
        assert "mend" in await desk.said("skills", "list")
        assert "uninstalled" in await desk.said("skills", "uninstall", "mend")
        deeper = a_skill(desk.server.home / "agents/main/skills/group/mend")
        for name, words in (
            ("own", f"one of the user's, at {tmp_path}/user/.agents/skills/theirs/SKILL.md"),
            ("theirs", "one of the user's"),
            ("mend", f"put there by hand, at {deeper}/SKILL.md"),
        ):
            done = await desk.holon("skills", "uninstall", name)
            assert done.exit_code == exit_codes.FAILED
            assert words in " ".join(done.stderr.split()), done.stderr


async def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path: Path) -> None:
    a_skill(tmp_path / "mend")
    a_skill(tmp_path / "bare", "# Only a body\n")
    async with skilled(tmp_path) as desk:
        for arguments, code, words in (
            (("install", "no-such-skill"), exit_codes.FAILED, "Holon has no skill"),
            (("install", "../nowhere"), exit_codes.FAILED, "no such directory"),
            (("install", f"{tmp_path}/mend/SKILL.md"), exit_codes.FAILED, "name its directory"),
            (("install", "https://github.com/acme/skills"), exit_codes.FAILED, "acme/skills@"),
            (("install", f"{tmp_path}/bare"), exit_codes.FAILED, "no front matter"),
            (("install", "x", "--builtin", "--remote"), exit_codes.UNUSABLE, "either"),
            (("install", "x", "--skill", "y"), exit_codes.UNUSABLE, "--remote"),
            (("install", "x y", "--remote"), exit_codes.FAILED, "owner/repo@skill"),
            (("install", BUILTIN, "--copy"), exit_codes.FAILED, "linked or copied"),
            (("uninstall", "nothing"), exit_codes.FAILED, "no skill 'nothing'"),
            (("uninstall", "../../main"), exit_codes.FAILED, "no skill"),
            (("list", "--agent", "nobody"), exit_codes.FAILED, "nobody"),
            (("install", BUILTIN, "--agent", "nobody"), exit_codes.FAILED, "no agent nobody"),
        ):
            done = await desk.holon("skills", *arguments)
            assert (done.exit_code, done.stdout) == (code, ""), (arguments, done.stderr)
            assert words in done.stderr, (arguments, done.stderr)


@pytest.mark.requirement("skills:visibility", "skills:reading-activates", "skills:metadata-only")
async def test_an_agent_uses_a_skill_and_every_surface_shows_it(tmp_path: Path) -> None:
    a_skill(tmp_path / "user/.agents/skills/mend")
    async with skilled(tmp_path) as desk:
        await desk.said("skills", "install", BUILTIN)
        await settled(desk.server)
        (used,) = [
            each for each in await events_of(desk.server.host) if isinstance(each, SkillActivated)
        ]
        assert used.entrypoint_path.endswith(f"/agents/main/skills/{BUILTIN}/SKILL.md")
        found = await desk.told("skills", "list")
        assert {each["name"]: each.get("state") for each in found["skills"]} == {
            "mend": None,
            BORN_WITH: None,
            BUILTIN: "session_active",
        }
        assert [each["load_reason"] for each in found["active_skills"]] == ["read_skill_md"]
        await make_agent(desk.server, "ada")
        other = await desk.told("skills", "list", "--agent", "ada")
        assert "mend" not in [each["name"] for each in other["skills"]]
        assert other["active_skills"] == []
        prompt = await desk.said("debug", "prompt", "--json")
        assert "Skills in use" in prompt


@pytest.mark.requirement("skills:in-the-summary")
async def test_the_summary_tells_what_was_found_and_what_is_in_use(tmp_path: Path) -> None:
    a_skill(tmp_path / "user/.claude/skills/mend", "---\nname: mend\ndescription: M.\n---\nBODY\n")
    async with skilled(tmp_path) as desk:
        await desk.said("skills", "install", BUILTIN)
        before = (await desk.told("status"))["skills"]
        found = [(each["name"], each["scope"]) for each in before["discoverable_skills"]]
        assert found == [("mend", "user"), (BUILTIN, "agent"), (BORN_WITH, "agent")]
        assert (before["discoverable_count"], before["active_count"]) == (3, 0)
        await settled(desk.server)
        answer = await desk.server.operator.get("/agents/main/state")
        assert b"BODY" not in answer.body
        skills = answer.json()["agent"]["skills"]
        (used,) = skills["active_skills"]
        assert (used["skill_name"], used["state"]) == (BUILTIN, "session_active")
        states = {each["name"]: each.get("state") for each in skills["discoverable_skills"]}
        assert states == {"mend": None, BUILTIN: "session_active", BORN_WITH: None}
        (listed,) = (await desk.server.operator.get("/agents/list")).json()
        assert "skills" not in listed
