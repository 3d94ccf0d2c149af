"""Installed skills: replaced and removed in one step, and never against somebody's changes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holon.adapters.files import skill_folders
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.skill_folders import (
    RECORD_FILE,
    FolderSkillInstaller,
    InstalledSkills,
    read_record,
    tree_hash,
)
from holon.model.errors import RefusalCode, RefusedError
from holon.model.guidance import BadSkillRefError, GithubSkillRef, LocalSkillRef
from tests.adapters.files.archives import serving_repository

FIX = GithubSkillRef(owner="acme", repo="skills", skill="fix")


class Shelf:
    """A directory of skills, and one to install from."""

    def __init__(self, root: Path) -> None:
        self.root = root / "skills"
        self.source = root / "src" / "fix"
        (self.source / "scripts").mkdir(parents=True)
        (self.source / "SKILL.md").write_text("---\nname: fix\ndescription: One.\n---\n")
        (self.source / "scripts/run.sh").write_text("#!/bin/sh\n")
        self.skills = InstalledSkills(FolderSkillInstaller(GithubTrees()))
        self.copy = LocalSkillRef(path=str(self.source), copies=True)
        self.link = LocalSkillRef(path=str(self.source))

    @property
    def text(self) -> str:
        return (self.root / "fix/SKILL.md").read_text()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.mark.requirement("skills:install-is-whole")
async def test_a_copy_remembers_where_it_came_from(shelf: Shelf) -> None:
    made = await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    assert made.path == str(shelf.root / "fix")
    record = read_record(shelf.root / "fix")
    assert record is not None
    assert (record.kind, record.source) == ("local", str(shelf.source))
    (there,) = await shelf.skills.installed(str(shelf.root))
    assert (there.name, there.source, there.is_changed) == ("fix", str(shelf.source), False)


async def test_a_copy_leaves_out_what_is_no_part_of_a_skill(shelf: Shelf) -> None:
    for name in (".git", "node_modules", "scripts/__pycache__", ".venv"):
        (shelf.source / name).mkdir()
        for number in range(300):
            (shelf.source / name / f"{number}").touch()
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    assert sorted(os.listdir(shelf.root / "fix")) == [RECORD_FILE, "SKILL.md", "scripts"]
    assert os.listdir(shelf.root / "fix/scripts") == ["run.sh"]


async def test_a_copy_holds_files_in_the_place_of_links_to_them(shelf: Shelf) -> None:
    (shelf.source / "AGENTS.md").symlink_to("SKILL.md")
    (shelf.source / "docs").mkdir()
    (shelf.source / "docs/again.md").symlink_to("../AGENTS.md")
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    for name in ("AGENTS.md", "docs/again.md"):
        assert not (shelf.root / "fix" / name).is_symlink()
        assert (shelf.root / "fix" / name).read_text() == shelf.text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/etc/passwd", "an absolute path"),
        ("../secret", "leads out of its folder"),
        ("{}/SKILL.md", "an absolute path"),
        ("scripts", "not a file that comes with it"),
        ("gone", "not a file that comes with it"),
        ("link", "in a circle"),
    ],
)
async def test_any_other_link_is_not_copied_and_says_why(
    shelf: Shelf, target: str, said: str
) -> None:
    (shelf.source.parent / "secret").write_text("x")
    (shelf.source / "link").symlink_to(target.format(shelf.source))
    with pytest.raises(BadSkillRefError, match=said):
        await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    assert os.listdir(shelf.root) == []


async def test_what_is_as_it_was_installed_is_brought_up_to_date(shelf: Shelf) -> None:
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    (shelf.source / "SKILL.md").write_text("---\nname: fix\ndescription: Two.\n---\n")
    (shelf.root / "fix/scripts/__pycache__").mkdir()
    (shelf.root / "fix/scripts/__pycache__/run.pyc").write_text("compiled")
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    assert "Two." in shelf.text
    assert os.listdir(shelf.root) == ["fix"]


CHANGES: list[tuple[str, Callable[[Path], object]]] = [
    ("edited", lambda skill: (skill / "SKILL.md").write_text("mine")),
    ("added to", lambda skill: (skill / "notes.md").write_text("mine")),
    ("made to run", lambda skill: (skill / "SKILL.md").chmod(0o700)),
    ("taken from", lambda skill: (skill / "scripts/run.sh").unlink()),
    ("linked in", lambda skill: (skill / "more").symlink_to("/etc")),
    ("without a record", lambda skill: (skill / RECORD_FILE).unlink()),
    ("with a broken record", lambda skill: (skill / RECORD_FILE).write_text("{")),
]


@pytest.mark.requirement("skills:changes-are-kept")
@pytest.mark.parametrize("change", [row[1] for row in CHANGES], ids=[row[0] for row in CHANGES])
async def test_what_somebody_changed_is_neither_replaced_nor_removed_unasked(
    shelf: Shelf, change: Callable[[Path], object]
) -> None:
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    change(shelf.root / "fix")
    before = tree_hash(shelf.root / "fix")
    with pytest.raises(RefusedError) as again:
        await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    with pytest.raises(RefusedError) as away:
        await shelf.skills.uninstall("fix", str(shelf.root), force=False)
    assert again.value.refusal.code is RefusalCode.SKILL_CHANGED
    assert away.value.refusal.code is RefusalCode.SKILL_CHANGED
    assert tree_hash(shelf.root / "fix") == before
    await shelf.skills.install(shelf.copy, str(shelf.root), force=True)
    (there,) = await shelf.skills.installed(str(shelf.root))
    assert not there.is_changed
    change(shelf.root / "fix")
    await shelf.skills.uninstall("fix", str(shelf.root), force=True)
    assert os.listdir(shelf.root) == []


async def test_a_skill_from_elsewhere_does_not_take_its_place_unasked(shelf: Shelf) -> None:
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    files = {"skills/fix/SKILL.md": "---\nname: fix\ndescription: Far.\n---\n"}
    with serving_repository(files) as (base, _):
        remote = InstalledSkills(FolderSkillInstaller(GithubTrees(base)))
        with pytest.raises(RefusedError) as refused:
            await remote.install(FIX, str(shelf.root), force=False)
        assert refused.value.refusal.code is RefusalCode.SKILL_ALREADY_INSTALLED
        assert "One." in shelf.text
        await remote.install(FIX, str(shelf.root), force=True)
    assert "Far." in shelf.text
    assert os.listdir(shelf.root) == ["fix"]


@pytest.mark.requirement("skills:install-is-whole")
@pytest.mark.parametrize("can_exchange", [True, False])
async def test_an_installation_that_fails_leaves_what_was_there(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(skill_folders, "_exchanged", lambda made, target: False)
    await shelf.skills.install(shelf.copy, str(shelf.root), force=False)
    before = shelf.text
    with serving_repository({"README.md": "no skills here"}) as (base, _):
        remote = InstalledSkills(FolderSkillInstaller(GithubTrees(base)))
        with pytest.raises(BadSkillRefError):
            await remote.install(FIX, str(shelf.root), force=True)
    assert (os.listdir(shelf.root), shelf.text) == (["fix"], before)
    await shelf.skills.install(shelf.copy, str(shelf.root), force=True)
    assert (os.listdir(shelf.root), shelf.text) == (["fix"], before)


async def test_of_a_linked_skill_only_the_link_is_removed(shelf: Shelf) -> None:
    await shelf.skills.install(shelf.link, str(shelf.root), force=False)
    await shelf.skills.install(shelf.link, str(shelf.root), force=False)
    gone = await shelf.skills.uninstall("fix", str(shelf.root), force=False)
    assert (gone.kind, gone.source) == ("local", str(shelf.source))
    assert os.listdir(shelf.root) == []
    assert (shelf.source / "SKILL.md").exists()


@pytest.mark.parametrize("name", ["nothing", "..", "../src", "", "a/b", "/etc"])
async def test_what_is_not_there_cannot_be_removed(shelf: Shelf, name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await shelf.skills.uninstall(name, str(shelf.root), force=True)
    assert refused.value.refusal.code is RefusalCode.SKILL_NOT_FOUND
    assert (shelf.source / "SKILL.md").exists()


async def test_a_skill_is_also_removed_by_the_name_it_gives_itself(shelf: Shelf) -> None:
    for folder, name in (("a", "Mend It"), ("b", "fix"), ("c", "twice"), ("d", "twice")):
        (shelf.root / folder).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: d\n---\n"
        (shelf.root / folder / "SKILL.md").write_text(text)
    (shelf.root / "fix").mkdir()
    assert (await shelf.skills.uninstall("Mend It", str(shelf.root), force=True)).name == "a"
    assert (await shelf.skills.uninstall("fix", str(shelf.root), force=True)).name == "fix"
    with pytest.raises(RefusedError) as refused:
        await shelf.skills.uninstall("twice", str(shelf.root), force=True)
    assert refused.value.refusal.hint == "name the folder of one of them: c, d"
    assert sorted(os.listdir(shelf.root)) == ["b", "c", "d"]


async def test_a_directory_that_is_not_there_holds_nothing(shelf: Shelf) -> None:
    assert await shelf.skills.installed(str(shelf.root)) == []
