"""Archives that strangers made: the wanted directory comes out, or nothing does any harm."""

import tarfile
from pathlib import Path

import pytest

from holon.adapters.files.archives import ArchiveBounds, extract_folder, list_archive
from holon.adapters.files.new_tree import BadTreeError, TreeBounds
from tests.adapters.files.archives import COMMIT, TOP, gzipped, member, packed, raw_header

WANTED = "templates/ci"
BELOW = f"{TOP}/{WANTED}"


def extracted(tmp_path: Path, content: bytes, **bounds: int) -> Path:
    """Write the wanted directory out of an archive."""
    archive, into = tmp_path / "a.tar.gz", tmp_path / "into"
    archive.write_bytes(content)
    into.mkdir()
    extract_folder(
        archive,
        WANTED,
        into,
        tree_bounds=TreeBounds(**bounds) if bounds else None,
    )
    return into


def test_one_directory_comes_out_and_nothing_besides(tmp_path: Path) -> None:
    long = "n" * 120
    content = packed(
        member(TOP, kind=tarfile.DIRTYPE),
        member(f"{TOP}/README.md"),
        member(f"{TOP}/link", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        member(BELOW, kind=tarfile.DIRTYPE),
        member(f"{BELOW}/AGENTS.md", b"# CI\n"),
        member(f"{BELOW}/scripts/{long}.sh", b"#!/bin/sh\n", mode=0o755),
        member(f"{BELOW}/empty", b""),
        member(f"{BELOW}2/AGENTS.md"),
    )
    into = extracted(tmp_path, content)
    script = into / "scripts" / f"{long}.sh"
    found = sorted(str(each.relative_to(into)) for each in into.rglob("*") if each.is_file())
    assert found == ["AGENTS.md", "empty", f"scripts/{long}.sh"]
    assert (into / "AGENTS.md").read_bytes() == b"# CI\n"
    modes = [path.stat().st_mode & 0o7777 for path in (into / "AGENTS.md", script, script.parent)]
    assert modes == [0o600, 0o700, 0o700]
    listing = list_archive(tmp_path / "a.tar.gz")
    assert listing.comment == COMMIT
    assert "README.md" in listing.files


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([member(f"{BELOW}/../../../../evil")], id="dots"),
        pytest.param([member("../evil")], id="dots at the top"),
        pytest.param([member(f"{TOP}/x/../../../evil")], id="dots elsewhere"),
        pytest.param([member("/etc/evil")], id="absolute"),
        pytest.param([member(f"{BELOW}/a\\..\\evil")], id="backslashes"),
        pytest.param([member(f"{BELOW}/a\x1b[2J")], id="control characters"),
        pytest.param([member("stray")], id="outside the top"),
        pytest.param(
            [
                member(f"{BELOW}/out", kind=tarfile.SYMTYPE, link="/tmp"),
                member(f"{BELOW}/out/evil"),
            ],
            id="link then file",
        ),
        pytest.param(
            [
                member(f"{BELOW}", kind=tarfile.SYMTYPE, link="/tmp"),
                member(f"{BELOW}/evil"),
            ],
            id="the directory is a link",
        ),
        pytest.param(
            [member(f"{BELOW}/h", kind=tarfile.LNKTYPE, link="../../etc/passwd")], id="hard link"
        ),
        pytest.param([member(f"{BELOW}/d", kind=tarfile.CHRTYPE)], id="device"),
        pytest.param([member(f"{BELOW}/p", kind=tarfile.FIFOTYPE)], id="pipe"),
        pytest.param([member(f"{BELOW}/s", mode=0o4755)], id="setuid"),
        pytest.param([member(f"{BELOW}/s", mode=0o2755)], id="setgid"),
        pytest.param([member(f"{BELOW}/x"), member(f"{BELOW}/x")], id="twice"),
        pytest.param([member(f"{BELOW}/x"), member(f"{BELOW}/x/y")], id="file and folder"),
        pytest.param([member(f"{BELOW}/" + "d/" * 40 + "x")], id="too deep"),
        pytest.param([member(f"{BELOW}/{'x' * 300}")], id="name too long"),
        pytest.param([member(f"{TOP}/other/AGENTS.md")], id="not there"),
        pytest.param([], id="empty"),
    ],
)
def test_a_bad_member_spoils_the_archive(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    with pytest.raises(BadTreeError):
        extracted(tmp_path, packed(*members))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.tar.gz", "into"]
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink() or "evil" in path.name]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"PK\x03\x04 not a tar", id="a zip"),
        pytest.param(gzipped(b"x" * 5_000), id="no tar"),
        pytest.param(gzipped(raw_header(f"{BELOW}/big", size=8 << 30)), id="claims 8 GB"),
        pytest.param(gzipped(raw_header(f"{TOP}/big", size=8 << 30)), id="elsewhere 8 GB"),
        pytest.param(gzipped(raw_header(f"{BELOW}/s", size=0, kind=b"S")), id="sparse"),
        pytest.param(gzipped(raw_header(f"{BELOW}/v", size=0, kind=b"V")), id="unknown kind"),
        pytest.param(gzipped(raw_header("x", size=1 << 30, kind=b"x")), id="a header of 1 GB"),
        pytest.param(gzipped(raw_header("x", size=1 << 20, kind=b"L")), id="a name of 1 MB"),
        pytest.param(gzipped(raw_header(f"{BELOW}/cut", size=4_000), b"half"), id="cut off"),
        pytest.param(
            gzipped(raw_header("x", size=20, kind=b"x"), b"999 path=x\n".ljust(512, b"\0")),
            id="a record that overruns",
        ),
        pytest.param(
            gzipped(
                raw_header("x", size=30, kind=b"x"),
                b"30 GNU.sparse.realsize=9999999\n".ljust(512, b"\0")[:512],
                raw_header(f"{BELOW}/s", size=0),
            ),
            id="sparse by another name",
        ),
        pytest.param(packed(member(f"{BELOW}/AGENTS.md"))[:-40], id="half of a stream"),
        pytest.param(
            gzipped(raw_header(f"{BELOW}/x", size=0), b"y" * 512), id="no tar after a member"
        ),
        pytest.param(
            gzipped(
                raw_header("x", size=12, kind=b"x"),
                b"12 size=-99\n".ljust(512, b"\0"),
                raw_header(f"{BELOW}/x", size=0),
            ),
            id="less than nothing",
        ),
    ],
)
def test_what_is_no_sound_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadTreeError):
        extracted(tmp_path, content)


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(f"{BELOW}/{name}", kind=tarfile.SYMTYPE, link=target)


def test_a_link_to_a_file_of_the_directory_becomes_a_copy_of_it(tmp_path: Path) -> None:
    long = "n" * 120
    content = packed(
        link("AGENTS.md", "SKILL.md"),
        link("docs/again.md", "../AGENTS.md"),
        link("go", f"./scripts/../scripts/{long}.sh"),
        member(f"{BELOW}/SKILL.md", b"# CI\n"),
        member(f"{BELOW}/scripts/{long}.sh", b"#!/bin/sh\n", mode=0o755),
    )
    into = extracted(tmp_path, content)
    assert not [path for path in into.rglob("*") if path.is_symlink()]
    assert (into / "AGENTS.md").read_bytes() == (into / "docs/again.md").read_bytes() == b"# CI\n"
    assert (into / "go").read_bytes() == b"#!/bin/sh\n"
    assert (into / "go").stat().st_mode & 0o7777 == 0o700


BAD_LINKS = {
    "absolute": ([link("a", "/etc/passwd")], "an absolute path"),
    "out": ([link("a", "../../../etc/passwd")], "leads out of its folder"),
    "out and in again": ([link("a", "../ci/x"), member(f"{BELOW}/x")], "leads out of its folder"),
    "to a folder": ([link("a", "d"), member(f"{BELOW}/d/x")], "not a file that comes with it"),
    "to its folder": ([link("d/a", "..")], "not a file that comes with it"),
    "to nothing": ([link("a", "b")], "not a file that comes with it"),
    "through a file": ([link("a", "x/y"), member(f"{BELOW}/x")], "not a file that comes with it"),
    "through a link": (
        [link("l", "d"), link("a", "l/x"), member(f"{BELOW}/d/x")],
        "not a file that comes with it",
    ),
    "to itself": ([link("a", "a")], "in a circle"),
    "in a circle": ([link("a", "b"), link("b", "a")], "in a circle"),
    "twice": ([link("a", "x"), link("a", "x"), member(f"{BELOW}/x")], "twice"),
    "over a file": ([link("a", "x"), member(f"{BELOW}/a"), member(f"{BELOW}/x")], "twice"),
    "then a file below it": (
        [link("a", "d/x"), member(f"{BELOW}/d/x"), member(f"{BELOW}/a/evil")],
        "twice",
    ),
}


@pytest.mark.parametrize(("members", "said"), BAD_LINKS.values(), ids=BAD_LINKS.keys())
def test_any_other_link_spoils_the_directory(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], said: str
) -> None:
    with pytest.raises(BadTreeError, match=said):
        extracted(tmp_path, packed(*members))


def test_copies_in_the_place_of_links_are_bounded(tmp_path: Path) -> None:
    members = [member(f"{BELOW}/x", b"xx"), *(link(f"l{number}", "x") for number in range(3))]
    with pytest.raises(BadTreeError, match=r"larger than 7 bytes|too large"):
        extracted(tmp_path, packed(*members), bytes_max=7)


def test_a_bomb_is_put_out_at_the_bound(tmp_path: Path) -> None:
    bomb = gzipped(*[raw_header(f"{TOP}/zeros", size=64 << 20), b"\0" * (64 << 20)])
    assert len(bomb) < 1 << 20
    archive, into = tmp_path / "a.tar.gz", tmp_path / "into"
    archive.write_bytes(bomb)
    into.mkdir()
    with pytest.raises(BadTreeError, match="unpacks to more"):
        extract_folder(archive, WANTED, into, bounds=ArchiveBounds(unpacked_bytes_max=8 << 20))


def test_a_million_entries_end_at_the_bound(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzipped(raw_header(f"{TOP}/x", size=0) * 60_000))
    with pytest.raises(BadTreeError, match="more than 50000 entries"):
        list_archive(archive)


@pytest.mark.parametrize("bounds", [{"files_max": 2}, {"bytes_max": 5}, {"file_bytes_max": 1}])
def test_what_is_taken_over_is_bounded(tmp_path: Path, bounds: dict[str, int]) -> None:
    members = [member(f"{BELOW}/{name}", b"xx") for name in "abc"]
    with pytest.raises(BadTreeError):
        extracted(tmp_path, packed(*members), **bounds)
