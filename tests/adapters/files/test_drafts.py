"""Drafts of a replacement that was killed are swept by the next; those of a living one are not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holon.adapters.files.contained_files import ContainedFiles
from holon.adapters.files.replacement import DRAFT_PREFIX
from holon.ports.workspaces import FileChange, StoredFile

# Replaces files under the working directory, and hangs before the step it is told.
KILLED = """
import asyncio, sys, threading
from holon.adapters.files.contained_files import ContainedFiles
from holon.ports.workspaces import FileChange, StoredFile
left = int(sys.argv[1])
def watch(step):
    global left
    left -= 1
    if left == 0:
        print("here", flush=True)
        threading.Event().wait()
changes = [FileChange(path=path, after=StoredFile(content=b"new", mode=0o644))
           for path in ("a", "d/b", "d/e/c")] + [FileChange(path="gone", after=None)]
asyncio.run(ContainedFiles(watch=watch).under(".").replace_all(changes))
print("done", flush=True)
"""
STEPS_COUNT = 19


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with files."""
    (tmp_path / "d").mkdir()
    for name in ("a", "d/b", "gone"):
        (tmp_path / name).write_text("old")
    return tmp_path


def drafts(root: Path) -> list[str]:
    """Every draft there is."""
    return sorted(str(p.relative_to(root)) for p in root.rglob(f"{DRAFT_PREFIX}*"))


def begun(root: Path, steps: int) -> subprocess.Popen[bytes]:
    """A replacement of another process that waits in the middle."""
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(steps)], cwd=root, stdout=subprocess.PIPE
    )


async def touch(root: Path, path: str = "other") -> None:
    change = FileChange(path=path, after=StoredFile(content=b"x", mode=0o644))
    await ContainedFiles().under(str(root)).replace_all([change])


@pytest.mark.requirement("apply-patch:leftovers-are-swept")
@pytest.mark.parametrize("steps", [2, 4, 7, 9, 12, 15, STEPS_COUNT])
async def test_a_killed_replacement_leaves_drafts_until_the_next_one(
    root: Path, steps: int
) -> None:
    with begun(root, steps) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"here\n"
        living = drafts(root)
        await touch(root)
        assert drafts(root) == living, "it may still need them"
        other.send_signal(signal.SIGKILL)
    assert drafts(root) == living
    assert living or steps == 2
    await touch(root)  # it does not go near the folders the drafts are in
    assert drafts(root) == []
    for name in ("a", "d/b"):
        assert (root / name).read_text() in ("old", "new")


async def test_only_drafts_are_swept_whatever_a_list_says(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    for folder in (outside, inside, inside / "d"):
        folder.mkdir()
    name = f"{DRAFT_PREFIX}{'0' * 16}"
    (outside / name).write_text("not theirs to remove")
    (inside / "link").symlink_to(outside)
    (inside / f"{DRAFT_PREFIX}notes").write_text("mine")
    (inside / f"{DRAFT_PREFIX}{'1' * 16}").mkdir()
    (inside / f"{DRAFT_PREFIX}{'2' * 16}").symlink_to(outside / name)
    (inside / "d" / "kept").write_text("kept")
    listed = b"\0".join((b"../outside", b"link", b"/", b"d", b"none", os.fsencode(str(outside))))
    (inside / name).write_bytes(b"folders with drafts\0" + listed)
    await touch(inside)
    assert (outside / name).read_text() == "not theirs to remove"
    assert sorted(p.name for p in inside.iterdir()) == [
        f"{DRAFT_PREFIX}{'1' * 16}",
        f"{DRAFT_PREFIX}{'2' * 16}",
        f"{DRAFT_PREFIX}notes",
        "d",
        "link",
        "other",
    ]
    assert (inside / "d" / "kept").exists()
