"""Skills appear whole in a directory of skills, or not at all."""

import os
from pathlib import Path

import pytest

from holon.adapters.files.builtin_templates import builtin_skill_names
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.skill_folders import FolderSkillInstaller
from holon.model.guidance import (
    BadSkillRefError,
    BuiltinSkillRef,
    GithubSkillRef,
    LocalSkillRef,
    SkillRef,
)
from tests.adapters.files.archives import serving_repository

GOOD = "---\nname: ../../evil\ndescription: x\n---\n"


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


def a_skill(folder: Path) -> Path:
    folder.mkdir()
    (folder / "SKILL.md").write_text(GOOD)
    return folder


UNUSABLE = {
    "none": (b"# Only a body\n", "no front matter"),
    "without an end": (b"---\nname: fix\ndescription: d\n", "no end"),
    "of 1 MB": (b"---\nx: " + b"y" * 1_000_000 + b"\n---\n", "more than 65536 bytes"),
    "not UTF-8": (b"---\nname: fix\ndescription: caf\xe9\n---\n", "not UTF-8"),
    "without a description": (b"---\nname: fix\n---\n", "no description"),
}


@pytest.mark.requirement("skills:install-is-whole", "skills:front-matter")
@pytest.mark.parametrize("kind", ["link", "copy", "remote"])
@pytest.mark.parametrize(("content", "said"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_a_skill_that_does_not_say_what_it_is_is_not_installed(
    into: Path, tmp_path: Path, kind: str, content: bytes, said: str
) -> None:
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix/SKILL.md").write_bytes(content)
    ref: SkillRef = LocalSkillRef(path=str(tmp_path / "fix"), copies=kind == "copy")
    if kind == "remote":
        ref = GithubSkillRef(owner="acme", repo="skills", skill="fix")
    with (
        serving_repository({"skills/fix/SKILL.md": content}) as (base, _),
        pytest.raises(BadSkillRefError, match=said),
    ):
        await FolderSkillInstaller(GithubTrees(base)).install(ref, str(into))
    assert os.listdir(into) == []


@pytest.mark.requirement("agent-init:skill-builtin-refs")
async def test_a_skill_of_holons_own_is_copied(into: Path) -> None:
    for name in builtin_skill_names():
        made = await FolderSkillInstaller(GithubTrees()).install(
            BuiltinSkillRef(name=name), str(into)
        )
        assert made.path == str(into / name)
        text = (into / name / "SKILL.md").read_text(encoding="utf-8")
        assert text.startswith(f"---\nname: {name}\ndescription: ")
    assert sorted(os.listdir(into)) == list(builtin_skill_names())


@pytest.mark.requirement("agent-init:skills-may-be-links")
@pytest.mark.requirement("agent-init:skill-local-has-an-entry-point")
async def test_a_skill_of_this_machine_is_linked(into: Path, tmp_path: Path) -> None:
    skill = a_skill(tmp_path / "deploy")
    made = await FolderSkillInstaller(GithubTrees()).install(
        LocalSkillRef(path=str(skill)), str(into)
    )
    assert (made.name, os.readlink(into / "deploy")) == ("deploy", str(skill))
    assert os.listdir(into) == ["deploy"]


@pytest.mark.requirement("agent-init:github-skills-are-installed")
async def test_a_skill_from_github_is_a_directory_of_its_own(into: Path) -> None:
    files = {"skills/fix/SKILL.md": GOOD, "skills/fix/scripts/run.sh": "#!/bin/sh\n"}
    with serving_repository(files) as (base, _):
        made = await FolderSkillInstaller(GithubTrees(base)).install(
            GithubSkillRef(owner="acme", repo="skills", skill="fix"), str(into)
        )
    assert (made.kind, made.source) == ("github", "acme/skills@fix")
    assert {"SKILL.md", "scripts"} <= set(os.listdir(into / "fix"))
    assert os.listdir(into) == ["fix"]


@pytest.mark.requirement("agent-init:skill-local-has-an-entry-point")
@pytest.mark.parametrize("copies", [True, False])
async def test_an_entry_point_may_be_written_in_small_letters(
    into: Path, tmp_path: Path, copies: bool
) -> None:
    (tmp_path / "roofs").mkdir()
    (tmp_path / "roofs/skill.md").write_text("---\nname: roofs\ndescription: x\n---\n")
    ref = LocalSkillRef(path=str(tmp_path / "roofs"), copies=copies)
    made = await FolderSkillInstaller(GithubTrees()).install(ref, str(into))
    assert (made.name, (into / "roofs/skill.md").is_file()) == ("roofs", True)


async def test_a_whole_repository_may_be_a_skill(into: Path) -> None:
    files = {"SKILL.md": "---\nname: mend\ndescription: x\n---\n", "scripts/run.sh": "#!/bin/sh\n"}
    with serving_repository(files) as (base, _):
        made = await FolderSkillInstaller(GithubTrees(base)).install(
            GithubSkillRef(owner="acme", repo="tools", skill="mend"), str(into)
        )
    assert made.source == "acme/tools@mend"
    assert {"SKILL.md", "scripts"} <= set(os.listdir(into / "mend"))


@pytest.mark.requirement("agent-init:skill-local-has-an-entry-point")
@pytest.mark.parametrize(
    "ref",
    [
        BuiltinSkillRef(name="nothing"),
        LocalSkillRef(path="/no/such/skill"),
        LocalSkillRef(path="/"),
        LocalSkillRef(path="{}/empty"),
        LocalSkillRef(path="{}/odd name"),
        LocalSkillRef(path="{}/folder"),
        GithubSkillRef(owner="acme", repo="skills", skill="gone"),
    ],
)
async def test_a_skill_that_cannot_be_had_leaves_nothing(
    into: Path, tmp_path: Path, ref: SkillRef
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    a_skill(tmp_path / "odd name")
    if isinstance(ref, LocalSkillRef):
        ref = LocalSkillRef(path=ref.path.format(tmp_path))
    with (
        serving_repository({"README.md": "x"}) as (base, _),
        pytest.raises(BadSkillRefError),
    ):
        await FolderSkillInstaller(GithubTrees(base)).install(ref, str(into))
    assert os.listdir(into) == []


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize(
    ("path", "said", "hint"),
    [
        ("{}/gone", "there is no such directory: {}/gone", "with a SKILL.md"),
        ("{}/mend/SKILL.md", "{}/mend/SKILL.md is a file", "name its directory: {}/mend"),
    ],
)
async def test_what_is_no_directory_is_said_to_be_none(
    into: Path, tmp_path: Path, path: str, said: str, hint: str, copies: bool
) -> None:
    a_skill(tmp_path / "mend")
    ref = LocalSkillRef(path=path.format(tmp_path), copies=copies)
    with pytest.raises(BadSkillRefError) as refused:
        await FolderSkillInstaller(GithubTrees()).install(ref, str(into))
    assert refused.value.message.startswith(said.format(tmp_path))
    assert hint.format(tmp_path) in (refused.value.hint or "")
    assert os.listdir(into) == []


async def test_a_skill_never_takes_the_place_of_another(into: Path) -> None:
    ref = BuiltinSkillRef(name="holon-work-items")
    (into / ref.name).mkdir()
    with pytest.raises(BadSkillRefError, match="already a skill"):
        await FolderSkillInstaller(GithubTrees()).install(ref, str(into))
    assert (os.listdir(into), os.listdir(into / ref.name)) == ([ref.name], [])
