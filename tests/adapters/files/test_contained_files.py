"""Files beneath a root: what is read, what is refused, and that nothing leads out."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from holon.adapters.files import openat
from holon.adapters.files.contained_files import ContainedFiles
from holon.ports.workspaces import (
    FileChange,
    FileRefusedError,
    PathEscapeError,
    RootedFiles,
    StoredFile,
)

LIMIT = 1_000


@pytest.fixture(params=["openat2", "walk"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a neighbour, looked at in both ways."""
    if request.param == "walk":
        monkeypatch.setattr(openat, "_has_openat2", lambda: False)
    elif not openat._has_openat2():
        pytest.skip("this kernel has no openat2")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    inside = tmp_path / "root"
    (inside / "d").mkdir(parents=True)
    (inside / "f").write_text("text")
    (inside / "d" / "g").write_text("deep")
    return inside


def under(root: Path) -> RootedFiles:
    """The files under a root."""
    return ContainedFiles().under(str(root))


def write(path: str, content: bytes = b"new", mode: int = 0o644) -> FileChange:
    """A change that writes."""
    return FileChange(path=path, after=StoredFile(content=content, mode=mode))


async def test_a_regular_file_is_read_with_its_mode(root: Path) -> None:
    (root / "f").chmod(0o755)
    stored = await under(root).read("f", bytes_max=LIMIT)
    assert stored == StoredFile(content=b"text", mode=0o755)
    assert await under(root).read("./d//g", bytes_max=LIMIT) is not None


@pytest.mark.parametrize("path", ["none", "none/deeper", "f/below"])
async def test_what_is_not_there_is_nothing(root: Path, path: str) -> None:
    assert await under(root).read(path, bytes_max=LIMIT) is None


@pytest.mark.requirement("apply-patch:nothing-outside-the-root")
@pytest.mark.parametrize(
    "path", ["../outside/secret", "/etc/passwd", "d/../../outside/secret", "a\0b"]
)
async def test_s37_a_path_that_leads_out_is_an_escape(root: Path, path: str) -> None:
    with pytest.raises(PathEscapeError):
        await under(root).read(path, bytes_max=LIMIT)
    with pytest.raises(PathEscapeError):
        await under(root).replace_all([write(path)])
    assert (root.parent / "outside" / "secret").read_text() == "secret"


@pytest.mark.parametrize("path", ["", ".", "./"])
async def test_no_name_is_no_file(root: Path, path: str) -> None:
    with pytest.raises(FileRefusedError):
        await under(root).read(path, bytes_max=LIMIT)


def link_to_file(root: Path) -> str:
    (root / "link").symlink_to("../outside/secret")
    return "link"


def link_to_inner_file(root: Path) -> str:
    (root / "link").symlink_to("f")
    return "link"


def link_to_folder(root: Path) -> str:
    (root / "away").symlink_to("../outside")
    return "away/secret"


def chain_of_links(root: Path) -> str:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("/")
    return "one/etc/passwd"


def loop_of_links(root: Path) -> str:
    (root / "loop").symlink_to("loop")
    return "loop/x"


def dangling_link(root: Path) -> str:
    (root / "link").symlink_to("../outside/new")
    return "link"


def magic_link(root: Path) -> str:
    (root / "magic").symlink_to("/proc/self/root")
    return "magic/etc/passwd"


@pytest.mark.requirement("apply-patch:nothing-outside-the-root")
@pytest.mark.parametrize(
    "make",
    [
        link_to_file,
        link_to_inner_file,
        link_to_folder,
        chain_of_links,
        loop_of_links,
        dangling_link,
        magic_link,
    ],
)
async def test_s37_no_link_is_followed(root: Path, make: Callable[[Path], str]) -> None:
    path = make(root)
    with pytest.raises(PathEscapeError):
        await under(root).read(path, bytes_max=LIMIT)
    with pytest.raises(PathEscapeError):
        await under(root).replace_all([write("fresh"), write(path)])
    assert sorted(p.name for p in (root.parent / "outside").iterdir()) == ["secret"]
    assert (root.parent / "outside" / "secret").read_text() == "secret"
    assert not (root / "fresh").exists()


def fifo(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()


def unix_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        here = os.open(place.parent, os.O_RDONLY)
        try:
            end.bind(f"/proc/self/fd/{here}/{place.name}")
        finally:
            os.close(here)


@pytest.mark.requirement("apply-patch:only-regular-files")
@pytest.mark.parametrize("make", [fifo, folder, unix_socket])
async def test_s34_what_is_no_regular_file_is_refused(
    root: Path, make: Callable[[Path], None]
) -> None:
    make(root / "odd")
    with pytest.raises(FileRefusedError):
        await under(root).read("odd", bytes_max=LIMIT)
    for change in (write("odd"), FileChange(path="odd", after=None)):
        with pytest.raises(FileRefusedError):
            await under(root).replace_all([change])
    assert (root / "odd").exists()


@pytest.mark.requirement("apply-patch:only-regular-files")
async def test_s34_a_device_is_refused_without_being_opened() -> None:
    with pytest.raises(FileRefusedError):
        await ContainedFiles().under("/dev").read("zero", bytes_max=LIMIT)


@pytest.mark.requirement("apply-patch:only-regular-files")
@pytest.mark.parametrize("size", [LIMIT + 1, 1 << 40])
async def test_s34_a_file_that_is_too_large_is_refused_by_its_size(root: Path, size: int) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(size)
    with pytest.raises(FileRefusedError, match="larger"):
        await under(root).read("huge", bytes_max=LIMIT)


@pytest.mark.requirement("apply-patch:only-regular-files")
async def test_s34_a_second_name_outside_keeps_the_old_content(root: Path) -> None:
    os.link(root.parent / "outside" / "secret", root / "shared")
    await under(root).replace_all([write("shared")])
    assert (root / "shared").read_text() == "new"
    assert (root.parent / "outside" / "secret").read_text() == "secret"


async def test_a_missing_root_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(FileRefusedError):
        await under(tmp_path / "none").read("f", bytes_max=LIMIT)


@pytest.mark.requirement("apply-patch:nothing-outside-the-root")
async def test_s37_a_folder_swapped_for_a_link_while_writing_leads_nowhere(root: Path) -> None:
    def swap(step: str) -> None:
        if step == "exchange" and not (root / "d").is_symlink():
            (root / "d").rename(root / "was_d")
            (root / "d").symlink_to("../outside")

    files = ContainedFiles(watch=swap).under(str(root))
    await files.replace_all([write("d/g", b"changed")])
    assert sorted(p.name for p in (root.parent / "outside").iterdir()) == ["secret"]
    assert (root / "was_d" / "g").read_text() == "changed"
