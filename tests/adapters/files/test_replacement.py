"""Many files change together: all of them, or none, and each one whole whatever happens."""

from contextlib import suppress
from pathlib import Path

import pytest

from holon.adapters.files.contained_files import ContainedFiles
from holon.adapters.files.replacement import DRAFT_PREFIX
from holon.ports.workspaces import FileChange, FileRefusedError, StoredFile

BEFORE = {"a": b"old a", "d/b": b"old b", "gone": b"old gone"}
AFTER = {"a": b"new a", "d/b": b"new b", "n/e/w": b"new"}
CHANGES = (
    FileChange(path="a", after=StoredFile(content=b"new a", mode=0o755)),
    FileChange(path="n/e/w", after=StoredFile(content=b"new", mode=0o600)),
    FileChange(path="gone", after=None),
    FileChange(path="d/b", after=StoredFile(content=b"new b", mode=0o4755)),
)


class Steps:
    """Counts the steps of a replacement, and stops it before one of them."""

    def __init__(self, *, fail_at: int | None = None, dies: bool = False) -> None:
        self.count = 0
        self._fail_at = fail_at
        self._dies = dies
        self._dead = False

    def __call__(self, step: str) -> None:
        if self._dead:
            raise Died
        if step == "take back":
            return
        self.count += 1
        if self.count == self._fail_at:
            self._dead = self._dies
            raise Died if self._dies else OSError(28, "No space left on device")


class Died(BaseException):
    """The process is gone: nothing it meant to do happens any more."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with files."""
    for name, content in BEFORE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def held(root: Path) -> dict[str, bytes]:
    """What the files hold, drafts left out."""
    paths = [p for p in root.rglob("*") if p.is_file() and not p.name.startswith(DRAFT_PREFIX)]
    return {str(p.relative_to(root)): p.read_bytes() for p in paths}


def everything(root: Path) -> list[str]:
    """Every name there is."""
    return sorted(str(p.relative_to(root)) for p in root.rglob("*"))


async def step_count(root: Path) -> int:
    """How many steps the replacement takes."""
    steps = Steps()
    await ContainedFiles(watch=steps).under(str(root)).replace_all(CHANGES)
    return steps.count


@pytest.mark.requirement("apply-patch:all-or-nothing")
async def test_all_changes_are_made_and_nothing_is_left_behind(root: Path) -> None:
    await ContainedFiles().under(str(root)).replace_all(CHANGES)
    assert held(root) == AFTER
    assert everything(root) == ["a", "d", "d/b", "n", "n/e", "n/e/w"]
    modes = {name: (root / name).stat().st_mode & 0o7777 for name in AFTER}
    assert modes == {"a": 0o755, "n/e/w": 0o600, "d/b": 0o755}


@pytest.mark.requirement("apply-patch:all-or-nothing")
async def test_whichever_step_fails_everything_is_as_it_was(root: Path, tmp_path: Path) -> None:
    names = everything(root)
    other = tmp_path / "other"
    for name, content in BEFORE.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes(content)
    sweeps = 5
    last = await step_count(other) - sweeps
    for at in range(1, last + 1):
        with pytest.raises(FileRefusedError, match="No space"):
            await ContainedFiles(watch=Steps(fail_at=at)).under(str(root)).replace_all(CHANGES)
        assert {n: c for n, c in held(root).items() if not n.startswith("other/")} == BEFORE
        assert [name for name in everything(root) if not name.startswith("other")] == names


@pytest.mark.requirement("apply-patch:all-or-nothing")
@pytest.mark.parametrize("at", range(1, 24))
async def test_a_crash_at_any_step_leaves_whole_files(root: Path, at: int) -> None:
    files = ContainedFiles(watch=Steps(fail_at=at, dies=True)).under(str(root))
    with suppress(Died):
        await files.replace_all(CHANGES)
    for name, content in held(root).items():
        assert content in (BEFORE.get(name), AFTER.get(name)), name
    for name in ("a", "d/b"):
        assert (root / name).exists()


async def test_the_failing_of_a_sweep_changes_nothing_any_more(root: Path) -> None:
    steps = Steps()

    def watch(step: str) -> None:
        steps(step)
        if step == "sweep":
            raise OSError(5, "Input/output error")

    await ContainedFiles(watch=watch).under(str(root)).replace_all(CHANGES)
    assert held(root) == AFTER


@pytest.mark.parametrize(
    "changes",
    [
        [FileChange(path="none", after=None)],
        [CHANGES[0], FileChange(path="./a", after=None)],
        [CHANGES[0], FileChange(path="gone/x", after=CHANGES[0].after)],
        [CHANGES[0], FileChange(path="d", after=None)],
    ],
    ids=["missing", "twice", "below-a-file", "folder"],
)
async def test_what_cannot_be_done_is_not_half_done(root: Path, changes: list[FileChange]) -> None:
    with pytest.raises(FileRefusedError):
        await ContainedFiles().under(str(root)).replace_all(changes)
    assert held(root) == BEFORE


async def test_a_file_somebody_else_replaced_meanwhile_is_left_alone(root: Path) -> None:
    def meddle(step: str) -> None:
        if step == "sync draft" and (root / "a").read_bytes() == b"old a":
            (root / "mine").write_bytes(b"theirs")
            (root / "mine").rename(root / "a")

    with pytest.raises(FileRefusedError, match="meanwhile"):
        await ContainedFiles(watch=meddle).under(str(root)).replace_all(CHANGES)
    assert held(root) == {**BEFORE, "a": b"theirs"}
