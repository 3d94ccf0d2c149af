"""Trees of repositories, from a server on this machine."""

import tarfile
from pathlib import Path

import pytest

from holon.adapters.files.github_tree import BadBaseError, GithubTrees
from holon.adapters.files.new_tree import BadTreeError
from holon.decide.guidance.skills import parse_package
from holon.model.agents import GithubTree
from holon.ports.agents import SourceUnreachableError
from tests.adapters.files.archives import (
    COMMIT,
    TOP,
    member,
    packed,
    repository,
    serving,
    serving_repository,
)

TREE = GithubTree(owner="acme", repo="agents", ref="v2", path="templates/ci")
FILES = {"templates/ci/AGENTS.md": "# CI\n", "templates/other/AGENTS.md": "# No\n"}


async def fetched(base: str, tmp_path: Path, tree: GithubTree = TREE) -> str | None:
    into, scratch = tmp_path / "into", tmp_path / "scratch"
    into.mkdir()
    scratch.mkdir()
    return await GithubTrees(base).fetch_tree(tree, into, scratch=scratch)


@pytest.mark.requirement("agent-init:github-url-form")
async def test_one_tree_at_one_ref_is_fetched(tmp_path: Path) -> None:
    with serving_repository(FILES) as (base, asked):
        assert await fetched(base, tmp_path) == COMMIT
    assert asked == ["/acme/agents/tar.gz/v2"]
    assert [each.name for each in (tmp_path / "into").iterdir()] == ["AGENTS.md"]


@pytest.mark.requirement("agent-init:github-target-must-be-a-template")
@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, b"", BadTreeError),
        (200, repository({"README.md": "x"}), BadTreeError),
        (200, b"<html>", BadTreeError),
        (500, b"", SourceUnreachableError),
        (403, b"", SourceUnreachableError),
    ],
)
async def test_an_answer_without_the_tree_is_an_error(
    tmp_path: Path, status: int, body: bytes, error: type[Exception]
) -> None:
    with serving(lambda path: (status, {}, body)) as (base, _), pytest.raises(error):
        await fetched(base, tmp_path)
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://evil.example/x",
        "https://127.0.0.1/x",
        "http://127.0.0.1:1/x",
        "http://user@127.0.0.1/x",
        "//evil.example/x",
        "file:///etc/passwd",
        "http://[bad",
        "",
    ],
)
async def test_a_redirect_elsewhere_is_not_followed(tmp_path: Path, location: str) -> None:
    with (
        serving(lambda path: (302, {"Location": location}, b"")) as (base, asked),
        pytest.raises(SourceUnreachableError),
    ):
        await fetched(base, tmp_path)
    assert set(asked) == {"/acme/agents/tar.gz/v2"}


async def test_a_redirect_on_the_same_server_is_followed(tmp_path: Path) -> None:
    body = repository(FILES)
    with serving(
        lambda path: (200, {}, body) if path == "/x" else (301, {"Location": "/x"}, b"")
    ) as (base, asked):
        await fetched(base, tmp_path)
    assert asked == ["/acme/agents/tar.gz/v2", "/x"]


@pytest.mark.parametrize("base", ["http://github.com", "http://10.0.0.1", "ftp://127.0.0.1", "x"])
async def test_plain_http_is_for_this_machine_alone(tmp_path: Path, base: str) -> None:
    with pytest.raises(BadBaseError):
        await fetched(base, tmp_path)


async def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with serving(lambda path: (200, {}, b"")) as (base, _):
        pass
    with pytest.raises(SourceUnreachableError, match="cannot be reached"):
        await fetched(base, tmp_path)


@pytest.mark.requirement("agent-init:skill-github-package")
@pytest.mark.parametrize(
    ("files", "body"),
    [
        ({"skills/fix/SKILL.md": "a", "fix/SKILL.md": "b"}, "a"),
        ({"fix/SKILL.md": "b", "docs/fix/SKILL.md": "c"}, "b"),
        ({".claude/skills/fix/SKILL.md": "d"}, "d"),
        ({"packages/web/fix/SKILL.md": "e", "packages/web/fixes/SKILL.md": "f"}, "e"),
    ],
)
async def test_a_skill_is_found_where_repositories_keep_them(
    tmp_path: Path, files: dict[str, str], body: str
) -> None:
    into = tmp_path / "into"
    into.mkdir()
    with serving_repository(files) as (base, asked):
        ref = parse_package("acme/skills@fix")
        await GithubTrees(base).fetch_skill(ref, into, scratch=tmp_path)
    assert asked == ["/acme/skills/tar.gz/HEAD"]
    assert (into / "SKILL.md").read_text() == body


CALLED = "---\nname: fix\ndescription: d\n---\n"
OTHER = "---\nname: other\ndescription: d\n---\n"


@pytest.mark.requirement("agent-init:skill-github-package")
@pytest.mark.parametrize(
    ("package", "files", "expected"),
    [
        ("a/tools@fix", {"skills/mend/skill.md": CALLED, "skills/a/SKILL.md": OTHER}, "skill.md"),
        ("a/tools@fix", {"SKILL.md": CALLED, "scripts/run.sh": "x"}, "SKILL.md"),
        ("a/fix@fix", {"SKILL.md": OTHER, "README.md": "x"}, "SKILL.md"),
        ("a/Fix@fix", {"SKILL.md": "# Bare\n", "docs/a/SKILL.md": "x"}, "SKILL.md"),
        ("a/fix@fix", {"SKILL.md": OTHER, "skills/fix/Skill.md": "b"}, "Skill.md"),
    ],
)
async def test_a_skill_is_also_found_by_its_own_name_and_as_a_whole_repository(
    tmp_path: Path, package: str, files: dict[str, str], expected: str
) -> None:
    into = tmp_path / "into"
    into.mkdir()
    with serving_repository(files) as (base, _):
        await GithubTrees(base).fetch_skill(parse_package(package), into, scratch=tmp_path)
    assert expected in [each.name for each in into.iterdir()]


async def test_of_a_whole_repository_links_are_passed_over(tmp_path: Path) -> None:
    body = packed(
        member(TOP, kind=tarfile.DIRTYPE, mode=0o755),
        member(f"{TOP}/SKILL.md", CALLED.encode()),
        member(f"{TOP}/CLAUDE.md", kind=tarfile.SYMTYPE, link="/etc/passwd"),
    )
    into = tmp_path / "into"
    into.mkdir()
    with serving(lambda path: (200, {}, body)) as (base, _):
        await GithubTrees(base).fetch_skill(parse_package("acme/tools@fix"), into, scratch=tmp_path)
    assert [each.name for each in into.iterdir()] == ["SKILL.md"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"skills/b/SKILL.md": OTHER, "skills/a/SKILL.md": OTHER}, "it has a, b"),
        ({"README.md": "x"}, "it has none at all"),
        ({"x/SKILL.md": CALLED, "y/SKILL.md": CALLED}, "several .*: x, y"),
    ],
)
async def test_a_skill_that_is_not_there_is_told_with_those_that_are(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    ref = parse_package("acme/skills@fix")
    with serving_repository(files) as (base, _), pytest.raises(BadTreeError, match=said):
        await GithubTrees(base).fetch_skill(ref, tmp_path, scratch=tmp_path)


@pytest.mark.parametrize(
    "files", [{"skills/other/SKILL.md": "x"}, {"a/b/fix/SKILL.md": "x", "a/c/fix/SKILL.md": "y"}]
)
async def test_a_skill_that_is_missing_or_ambiguous_is_refused(
    tmp_path: Path, files: dict[str, str]
) -> None:
    ref = parse_package("acme/skills@fix")
    with serving_repository(files) as (base, _), pytest.raises(BadTreeError, match="named fix"):
        await GithubTrees(base).fetch_skill(ref, tmp_path, scratch=tmp_path)
