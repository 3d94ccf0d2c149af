"""The user's templates: Holon's own among them, and never in place of theirs."""

import json
import os
from pathlib import Path

import pytest

from holon.adapters.files import builtin_templates
from holon.adapters.files.builtin_templates import (
    RECORD_FILE,
    builtin_skill_names,
    builtin_template_ids,
    seed_templates,
)
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.templates import TemplateStore, read_template, summary_of
from holon.model.agents import BadTemplateError
from holon.model.guidance import BuiltinSkillRef
from holon.model.limits import SUMMARY_CHARS_MAX, TEMPLATE_TEXT_BYTES_MAX
from tests.adapters.files.archives import COMMIT, serving, serving_repository

OWN = (
    "holon-default",
    "holon-developer",
    "holon-github-solve",
    "holon-release",
    "holon-reviewer",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".agents" / "templates"


@pytest.fixture
def store(root: Path) -> TemplateStore:
    return TemplateStore(root, GithubTrees())


def a_template(
    folder: Path, text: str = "# Ops\n\nRuns things.\n", manifest: object = None
) -> Path:
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text(text, encoding="utf-8")
    if manifest is not None:
        (folder / "skills.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def tree_of(root: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(root.rglob("*")) if each.is_file()}


@pytest.mark.requirement("agent-init:builtin-templates")
def test_holons_own_templates_are_sound(root: Path) -> None:
    assert builtin_template_ids() == OWN
    assert seed_templates(root) == ()
    skills = builtin_skill_names()
    for template_id in OWN:
        content = read_template(root / template_id)
        assert len(content.agents_md) > 800
        assert content.skill_refs
        for ref in content.skill_refs:
            assert isinstance(ref, BuiltinSkillRef)
            assert ref.name in skills


@pytest.mark.requirement("agent-init:seeding-is-idempotent")
@pytest.mark.requirement("agent-init:no-metadata-file-needed")
def test_seeding_again_changes_nothing(root: Path) -> None:
    seed_templates(root)
    before = {path: os.stat(path).st_mtime_ns for path in tree_of(root)}
    assert seed_templates(root) == ()
    assert {path: os.stat(path).st_mtime_ns for path in tree_of(root)} == before
    assert (root / OWN[0]).stat().st_mode & 0o777 == 0o700
    assert (root / OWN[0] / "AGENTS.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("agent-init:user-templates-are-kept")
@pytest.mark.parametrize("edit", ["text", "added", "no record", "bad record", "file", "empty"])
def test_what_the_user_has_is_not_overwritten(root: Path, edit: str) -> None:
    mine = root / "holon-default"
    if edit in ("text", "added", "no record", "bad record"):
        seed_templates(root)
    if edit == "text":
        (mine / "AGENTS.md").write_text("mine")
    if edit == "added":
        (mine / "notes.md").write_text("mine")
    if edit == "no record":
        (mine / RECORD_FILE).unlink()
    if edit == "bad record":
        (mine / RECORD_FILE).write_text("{")
    if edit == "file":
        root.mkdir(parents=True)
        mine.write_text("mine")
    if edit == "empty":
        mine.mkdir(parents=True)
    before = tree_of(mine) if mine.is_dir() else mine.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtin_templates, "_hashes", _hashes_of_a_newer_holon)
        seed_templates(root)
    assert (tree_of(mine) if mine.is_dir() else mine.read_text()) == before


_old_hashes = builtin_templates._hashes


def _hashes_of_a_newer_holon(folder: Path) -> dict[str, str]:
    """Make the package's templates look newer than those on disk."""
    found = _old_hashes(folder)
    return found | {"AGENTS.md": "newer"} if "src" in folder.parts else found


@pytest.mark.requirement("agent-init:seeded-templates-are-refreshed")
def test_an_untouched_template_follows_a_newer_holon(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_templates(root)
    package = tmp_path / "package"
    a_template(package / "holon-default", "# Newer\n")
    monkeypatch.setattr(builtin_templates, "_TEMPLATES", package)
    (root / "holon-release" / "AGENTS.md").write_text("mine")
    assert seed_templates(root) == ()
    assert (root / "holon-default" / "AGENTS.md").read_text() == "# Newer\n"
    assert not (root / "holon-default" / "skills.json").exists()
    assert (root / "holon-release" / "AGENTS.md").read_text() == "mine"
    assert not [name for name in os.listdir(root) if name.startswith(".")]
    assert seed_templates(root) == ()


def test_what_a_killed_process_left_is_swept(root: Path) -> None:
    root.mkdir(parents=True)
    (root / ".holon-new-0123").mkdir()
    seed_templates(root)
    assert sorted(os.listdir(root)) == sorted(OWN)


def test_a_place_that_cannot_be_written_is_told_and_no_more(tmp_path: Path) -> None:
    (tmp_path / ".agents").write_text("a file")
    [problem] = seed_templates(tmp_path / ".agents" / "templates")
    assert "cannot be put into" in problem


@pytest.mark.requirement("agent-init:id-resolves-among-the-users-templates")
async def test_an_id_means_the_users_directory_and_no_other(
    store: TemplateStore, root: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadTemplateError, match="no template ops"):
        await store.resolve("ops", scratch=tmp_path)
    seed_templates(root)
    (root / "holon-default" / "AGENTS.md").write_text("mine")
    found = await store.resolve("holon-default", scratch=tmp_path)
    assert (found.kind, found.content.agents_md) == ("template_id", "mine")
    (root / "holon-default" / "AGENTS.md").unlink()
    with pytest.raises(BadTemplateError, match=r"has no AGENTS\.md"):
        await store.resolve("holon-default", scratch=tmp_path)


@pytest.mark.requirement("agent-init:absolute-path-is-used")
@pytest.mark.requirement("agent-init:skills-json-is-optional")
async def test_an_absolute_path_is_used_as_it_is(store: TemplateStore, tmp_path: Path) -> None:
    folder = a_template(tmp_path / "ops")
    found = await store.resolve(str(folder), scratch=tmp_path)
    assert (found.kind, found.source) == ("local_path", str(folder))
    assert found.content.skill_refs == ()


@pytest.mark.requirement("agent-init:github-url-names-the-directory")
async def test_a_tree_is_fetched_and_read(root: Path, tmp_path: Path) -> None:
    url = "https://github.com/acme/agents/tree/v2/templates/ci"
    with serving_repository({"templates/ci/AGENTS.md": "# CI\n"}) as (base, _):
        store = TemplateStore(root, GithubTrees(base))
        found = await store.resolve(url, scratch=tmp_path)
        assert (found.kind, found.ref, found.commit) == ("github", "v2", COMMIT)
        assert (await store.install(url)).template_id == "ci"
        with pytest.raises(BadTemplateError, match="is no template"):
            await store.install("https://github.com/acme/agents/tree/v2/templates")
    assert os.listdir(root) == ["ci"]


async def test_a_bad_selector_asks_nobody(root: Path, tmp_path: Path) -> None:
    with serving(lambda path: (200, {}, b"")) as (base, asked):
        store = TemplateStore(root, GithubTrees(base))
        for text in ("http://github.com/a/b/tree/c/d", "https://evil.example/a", "a/b"):
            with pytest.raises(BadTemplateError):
                await store.resolve(text, scratch=tmp_path)
    assert asked == []


@pytest.mark.requirement("agent-init:agents-md-is-required")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("AGENTS.md", None),
        ("AGENTS.md", b" \n"),
        ("AGENTS.md", b"caf\xe9"),
        ("AGENTS.md", b"x" * (TEMPLATE_TEXT_BYTES_MAX + 1)),
        ("skills.json", b""),
        ("skills.json", b"{"),
        ("skills.json", b"[" * 60_000),
        ("skills.json", b'{"skill_refs": [{"kind": "local", "path": "x"}]}'),
        ("skills.json", b"\xff"),
    ],
)
def test_a_template_is_sound_or_refused(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = a_template(tmp_path / "ops")
    (folder / name).unlink(missing_ok=True)
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(BadTemplateError):
        read_template(folder)


@pytest.mark.requirement("agent-init:a-strangers-template-tells-nothing-of-this-machine")
@pytest.mark.parametrize("name", ["AGENTS.md", "skills.json"])
@pytest.mark.parametrize("target", ["absolute", "../secret"])
async def test_a_link_that_leads_out_of_a_strangers_template_is_refused(
    store: TemplateStore, tmp_path: Path, name: str, target: str
) -> None:
    (tmp_path / "secret").write_text("the key of the house")
    folder = a_template(tmp_path / "cloned")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "secret" if target == "absolute" else target)
    with pytest.raises(BadTemplateError, match=f"{name} is a link that leads out"):
        await store.resolve(str(folder), scratch=tmp_path)


@pytest.mark.requirement("agent-init:a-strangers-template-tells-nothing-of-this-machine")
async def test_a_link_inside_a_template_and_any_of_the_users_own_are_followed(
    store: TemplateStore, root: Path, tmp_path: Path
) -> None:
    folder = a_template(tmp_path / "cloned")
    (folder / "AGENTS.md").rename(folder / "role.md")
    (folder / "AGENTS.md").symlink_to("role.md")
    own = a_template(root / "own")
    (own / "AGENTS.md").unlink()
    (own / "AGENTS.md").symlink_to(folder / "role.md")
    for selector in (str(folder), str(own), "own"):
        found = await store.resolve(selector, scratch=tmp_path)
        assert found.content.summary == "Runs things."


@pytest.mark.requirement("agent-init:skill-failure-fails-the-template")
def test_two_skills_of_one_name_are_told_where_the_template_is_read(
    store: TemplateStore, root: Path
) -> None:
    refs = [{"kind": "builtin", "name": "ghx"}, {"kind": "local", "path": "/srv/skills/ghx"}]
    folder = a_template(root / "ops", manifest={"skill_refs": refs})
    with pytest.raises(BadTemplateError, match="2 of its skills would be named ghx"):
        read_template(folder)
    (listed,) = store.listing()
    assert listed.problem is not None


async def test_templates_are_listed_with_what_is_wrong(store: TemplateStore, root: Path) -> None:
    assert store.listing() == ()
    seed_templates(root)
    a_template(root / "ops", manifest={"skill_refs": [{"kind": "local", "path": "/srv/x"}]})
    (root / "broken").mkdir()
    (root / ".hidden").mkdir()
    (root / "holon-release" / "AGENTS.md").write_text("mine")
    found = {each.template_id: each for each in store.listing()}
    assert sorted(found) == sorted([*OWN, "ops", "broken"])
    assert (found["ops"].summary, found["ops"].skills) == ("Runs things.", ("local:/srv/x",))
    assert found["broken"].problem is not None
    assert (found["holon-default"].is_builtin, found["holon-default"].is_modified) == (True, False)
    assert found["holon-release"].is_modified
    listed = [each.template_id for each in await store.entries()]
    assert listed == sorted([*OWN, "ops"])
    problems = {each.template_id: each.problem for each in await store.checked_listing()}
    assert problems["ops"] == "there is no such directory: /srv/x"
    assert problems["holon-default"] is None


async def test_a_directory_is_installed_whole_or_not_at_all(
    store: TemplateStore, root: Path, tmp_path: Path
) -> None:
    folder = a_template(tmp_path / "ops")
    (folder / "docs").mkdir()
    (folder / "docs" / "x.md").write_text("x")
    assert (await store.install(str(folder), name="mine")).template_id == "mine"
    assert (root / "mine" / "docs" / "x.md").read_text() == "x"
    with pytest.raises(BadTemplateError, match="already a template mine"):
        await store.install(str(folder), name="mine")
    (folder / "docs" / "evil").symlink_to("/etc/passwd")
    with pytest.raises(BadTemplateError, match="an absolute path"):
        await store.install(str(folder))
    with pytest.raises(BadTemplateError):
        await store.install(str(folder), name="../x")
    with pytest.raises(BadTemplateError):
        await store.install("mine")
    with pytest.raises(BadTemplateError, match="no template directory"):
        await store.install(str(tmp_path / "nothing"))
    assert os.listdir(root) == ["mine"]


def test_a_template_is_removed_and_a_link_only_unlinked(
    store: TemplateStore, root: Path, tmp_path: Path
) -> None:
    folder = a_template(tmp_path / "ops")
    root.mkdir(parents=True)
    (root / "linked").symlink_to(folder)
    a_template(root / "mine")
    store.remove("linked")
    store.remove("mine")
    assert (os.listdir(root), (folder / "AGENTS.md").exists()) == ([], True)
    for bad in ("mine", "../templates", "/etc", ""):
        with pytest.raises(BadTemplateError):
            store.remove(bad)


@pytest.mark.parametrize(
    ("text", "summary"),
    [("# A\n\n<!-- x -->\nDoes it.\nMore.", "Does it."), ("# Only", "Only"), ("\n", "")],
)
def test_a_summary_is_the_first_line_of_prose(text: str, summary: str) -> None:
    assert summary_of(text) == summary


def test_a_summary_that_is_too_long_is_cut_behind_a_word() -> None:
    cut = summary_of("abcd, " * 100)
    assert (len(cut) <= SUMMARY_CHARS_MAX, cut[-6:]) == (True, " abcd…")
    assert summary_of("x" * 300) == "x" * (SUMMARY_CHARS_MAX - 1) + "…"
