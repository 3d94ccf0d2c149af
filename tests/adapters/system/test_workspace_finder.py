"""What a path leads to, on a real disk and with real repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from holon.adapters.system.directories import SystemWorkspaceFinder
from holon.model.workspaces import PathProblem, ResolvedDirectory


def git(where: Path, *arguments: str) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(where),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    subprocess.run(["git", *arguments], cwd=where, env=environ, check=True, capture_output=True)


async def find(path: Path | str) -> ResolvedDirectory | PathProblem:
    return await SystemWorkspaceFinder().find(str(path))


async def test_a_directory_outside_of_every_repository_is_itself(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # an empty folder of that name makes no repository
    assert await find(tmp_path) == ResolvedDirectory(path=str(tmp_path))


@pytest.mark.requirement("workspace:attach-binds")
async def test_a_repository_its_worktree_and_a_link_into_it_are_told_apart(tmp_path: Path) -> None:
    repo, tree, link = tmp_path / "repo", tmp_path / "tree", tmp_path / "link"
    (repo / "docs").mkdir(parents=True)
    git(repo, "init", "-q")
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    git(repo, "worktree", "add", "-q", str(tree))
    link.symlink_to(repo / "docs")
    inside = ResolvedDirectory(path=str(repo / "docs"), repository_root=str(repo))
    assert await find(repo / "docs") == inside
    assert await find(link) == inside
    assert await find(f"{repo}/docs/../docs/.") == inside
    assert await find(tree) == ResolvedDirectory(
        path=str(tree), repository_root=str(tree), main_root=str(repo)
    )


@pytest.mark.requirement("workspace:bad-input")
async def test_what_is_no_directory_is_told_by_its_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    expected = {
        "gone": PathProblem.MISSING,
        "gone/deeper": PathProblem.MISSING,
        "loop": PathProblem.MISSING,
        "dangling": PathProblem.MISSING,
        "file": PathProblem.NOT_A_DIRECTORY,
        "file/x": PathProblem.NOT_A_DIRECTORY,
        "pipe": PathProblem.NOT_A_DIRECTORY,
        "nul\0": PathProblem.MALFORMED,
        "\ud800": PathProblem.MALFORMED,
        "x" * 300: PathProblem.MISSING,
    }
    assert {name: await find(f"{tmp_path}/{name}") for name in expected} == expected


async def test_a_name_that_is_no_text_is_refused_wherever_a_link_to_it_is(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    os.symlink(os.fsencode(tmp_path) + b"/\xff", os.fsencode(tmp_path) + b"/link")
    assert await find(tmp_path / "link") is PathProblem.MALFORMED


async def test_a_pointer_that_leads_nowhere_makes_no_main_tree(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert await find(tmp_path) == ResolvedDirectory(
        path=str(tmp_path), repository_root=str(tmp_path)
    )
    (tmp_path / ".git").unlink()
    os.mkfifo(tmp_path / ".git")  # reading it would never end
    assert await find(tmp_path) == ResolvedDirectory(path=str(tmp_path))


@pytest.mark.requirement("workspace:bad-input")
async def test_a_directory_the_runtime_may_not_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs this as root may read everything: the kernel's answer is told in its place.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert await find(tmp_path) is PathProblem.UNREADABLE
