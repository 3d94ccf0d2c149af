"""Files that change between the plan and the writing, and real errors in the middle of it."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holon.adapters.files.contained_files import ContainedFiles
from holon.ports.workspaces import FileChange, FileChangedError, FileRefusedError, StoredFile

NOBODY_ID = 65_534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two files and a folder, of somebody who may write there."""
    (tmp_path / "d").mkdir()
    for name in ("a", "d/b", "gone"):
        (tmp_path / name).write_bytes(f"old {name}".encode())
        (tmp_path / name).chmod(0o644)
    return tmp_path


def held(root: Path) -> dict[str, bytes]:
    """Everything there is, drafts and all."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def stored(text: str, mode: int = 0o644) -> StoredFile:
    return StoredFile(content=text.encode(), mode=mode)


PLANNED = (
    FileChange(path="a", after=stored("new a"), before=stored("old a")),
    FileChange(path="n", after=stored("new n"), before=None),
    FileChange(path="gone", after=None, before=stored("old gone")),
    FileChange(path="d/b", after=stored("new b"), before=stored("old d/b")),
)


def rewrite(root: Path) -> None:
    (root / "d" / "b").write_bytes(b"THEIR b")


def append(root: Path) -> None:
    with (root / "d" / "b").open("ab") as file:
        file.write(b"!")


def replace(root: Path) -> None:
    (root / "mine").write_bytes(b"old d/b ")
    (root / "mine").rename(root / "d" / "b")


def allow(root: Path) -> None:
    (root / "d" / "b").chmod(0o755)


def remove(root: Path) -> None:
    (root / "d" / "b").unlink()


def appear(root: Path) -> None:
    (root / "n").write_bytes(b"theirs")


def remove_the_removed(root: Path) -> None:
    (root / "gone").unlink()


MEDDLINGS = [rewrite, append, replace, allow, remove, appear, remove_the_removed]


@pytest.mark.requirement("apply-patch:only-what-was-planned-for")
@pytest.mark.parametrize("meddle", MEDDLINGS)
async def test_what_changed_since_the_plan_is_left_alone(
    root: Path, meddle: Callable[[Path], None]
) -> None:
    meddle(root)
    theirs = held(root)
    with pytest.raises(FileChangedError, match="meanwhile") as caught:
        await ContainedFiles().under(str(root)).replace_all(PLANNED)
    assert caught.value.hint is not None
    assert held(root) == theirs


@pytest.mark.requirement("apply-patch:only-what-was-planned-for")
@pytest.mark.parametrize(
    ("at", "meddle"),
    [
        (at, meddle)
        for at in ("write draft", "sync draft", "exchange", "add", "take away")
        for meddle in MEDDLINGS
        if (at, meddle) != ("take away", appear)  # by then the new file is in place
    ],
)
async def test_what_changes_while_we_write_is_left_alone_and_all_is_taken_back(
    root: Path, at: str, meddle: Callable[[Path], None]
) -> None:
    before = held(root)
    theirs: dict[str, bytes] = {}

    def watch(step: str) -> None:
        if step == at and not theirs:
            meddle(root)
            theirs.update(
                {name: text for name, text in held(root).items() if not name.startswith(".")}
            )

    # Its name changes hands right after this step, so nothing is left to look at.
    passed = {("add", appear), ("take away", remove_the_removed)}
    with pytest.raises(FileRefusedError if (at, meddle) in passed else FileChangedError):
        await ContainedFiles(watch=watch).under(str(root)).replace_all(PLANNED)
    now = held(root)
    assert not [name for name in now if ".holon-draft" in name]
    for name in ("a", "d/b", "gone", "n"):
        ours_or_theirs = (before.get(name), theirs.get(name))
        assert now.get(name) in ours_or_theirs, name
    touched = {"n"} if meddle is appear else {"gone"} if meddle is remove_the_removed else {"d/b"}
    for name in touched:
        assert now.get(name) == theirs.get(name)
    for name in {"a", "d/b", "gone", "n"} - touched:
        assert now.get(name) == before.get(name)


@pytest.fixture
def small_files_only() -> Iterator[int]:
    """The system refuses to let a file grow beyond a size, as it does on a full disk."""
    bytes_max = 8 << 20
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    yield bytes_max
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.requirement("apply-patch:all-or-nothing")
async def test_a_write_the_system_refuses_half_way_leaves_all_as_it_was(
    root: Path, small_files_only: int
) -> None:
    before = held(root)
    grown = StoredFile(content=b"x" * (small_files_only + 1), mode=0o644)
    changes = (*PLANNED, FileChange(path="d/e/large", after=grown, before=None))
    with pytest.raises(FileRefusedError, match="File too large"):
        await ContainedFiles().under(str(root)).replace_all(changes)
    assert held(root) == before
    assert sorted(p.name for p in root.rglob("*")) == ["a", "b", "d", "gone"]


@pytest.fixture
def without_privileges() -> Iterator[None]:
    """Whoever runs the tests is bound by permissions."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY_ID)
    yield
    if is_root:
        os.seteuid(0)


@pytest.fixture
def locked(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The root is the working directory, and one of its folders takes no new files."""
    monkeypatch.chdir(root)
    if os.geteuid() == 0:
        for path in root.rglob("*"):
            os.chown(path, NOBODY_ID, -1)
    root.chmod(0o777)
    (root / "d").chmod(0o555)
    yield root
    (root / "d").chmod(0o755)


@pytest.mark.requirement("apply-patch:all-or-nothing")
async def test_a_folder_that_may_not_be_written_keeps_every_file_as_it_is(
    locked: Path, without_privileges: None
) -> None:
    before = {name: Path(name).read_bytes() for name in ("a", "d/b", "gone")}
    with pytest.raises(FileRefusedError, match="Permission denied"):
        await ContainedFiles().under(".").replace_all(PLANNED)
    assert {name: Path(name).read_bytes() for name in before} == before
    assert sorted(os.listdir(".")) == ["a", "d", "gone"]
    assert os.listdir("d") == ["b"]
