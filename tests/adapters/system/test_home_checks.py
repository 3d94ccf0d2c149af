"""A home others could have a hand in is refused, with the way to repair it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holon.adapters.system.home_checks import require_safe_home
from holon.adapters.system.run_files import (
    RunFiles,
    RuntimeRecord,
    UnsafePathError,
    put_in_place,
    read_own,
)

NOBODY_UID = 65_534


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in (tmp_path / "h", tmp_path / "h/run", tmp_path / "h/state"):
        folder.mkdir(mode=0o700)
    return tmp_path / "h"


def made(path: Path, mode: int = 0o600) -> Path:
    path.write_bytes(b"kept")
    path.chmod(mode)
    return path


def test_a_private_home_and_one_that_is_not_there_yet_are_in_order(home: Path) -> None:
    made(home / "run/token")
    made(home / "state/runtime.sqlite", 0o644)
    require_safe_home(home)
    require_safe_home(home.parent / "missing")


@pytest.mark.parametrize(
    ("spoil", "repair"),
    [
        (lambda home: home.chmod(0o777), "chmod go-w"),
        (lambda home: home.chmod(0o720), "chmod go-w"),
        (lambda home: (home / "run").chmod(0o755), "chmod go-rwx"),
        (lambda home: (home / "state").chmod(0o707), "chmod go-w"),
        (lambda home: made(home / "run/token", 0o644), "chmod go-rwx"),
        (lambda home: made(home / "run/daemon.log", 0o666), "chmod go-w"),
        (lambda home: made(home / "state/runtime.sqlite", 0o666), "chmod go-w"),
        (lambda home: (home / "run/lock").mkdir(), "move it away"),
        (lambda home: made(home / "run/holon.sock"), "move it away"),
    ],
)
def test_what_others_may_write_to_is_refused_with_the_repair(
    home: Path, spoil: Callable[[Path], object], repair: str
) -> None:
    spoil(home)
    with pytest.raises(UnsafePathError) as refused:
        require_safe_home(home)
    assert refused.value.hint is not None
    assert repair in refused.value.hint


@pytest.mark.parametrize(
    "name", ["lock", "holon.pid", "daemon.json", "daemon.log", "token", "startup_failure.json"]
)
def test_a_link_in_the_place_of_a_file_is_refused_and_not_followed(home: Path, name: str) -> None:
    target = made(home.parent / "precious")
    (home / "run" / name).symlink_to(target)
    with pytest.raises(UnsafePathError, match="symbolic link"):
        require_safe_home(home)
    assert target.read_bytes() == b"kept"


def test_a_run_folder_that_is_a_link_is_refused(home: Path) -> None:
    (home / "run").rmdir()
    (home.parent / "other").mkdir(mode=0o700)
    (home / "run").symlink_to(home.parent / "other")
    with pytest.raises(UnsafePathError, match="not a folder"):
        require_safe_home(home)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", "run", "state", "state/runtime.sqlite", "run/holon.pid"])
def test_what_belongs_to_somebody_else_is_refused(home: Path, name: str) -> None:
    path = home / name
    if not path.exists():
        made(path)
    os.chown(path, NOBODY_UID, -1)
    with pytest.raises(UnsafePathError, match="another user"):
        require_safe_home(home)


def test_a_file_is_put_in_place_of_ours_and_of_nobody_elses(home: Path) -> None:
    path = home / "run/note"
    put_in_place(path, b"one")
    put_in_place(path, b"two")
    assert read_own(path) == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["note"]
    target = made(home.parent / "precious")
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(UnsafePathError):
        put_in_place(path, b"three")
    assert read_own(path) is None
    assert (path.is_symlink(), target.read_bytes()) == (True, b"kept")


def test_a_record_is_taken_back_only_by_the_one_who_wrote_it(home: Path) -> None:
    files = RunFiles(home)
    files.write_record(RuntimeRecord(pid=7, start_ticks=1, boot_id="b"))
    files.remove_record(pid=8)
    assert files.read_record() == RuntimeRecord(pid=7, start_ticks=1, boot_id="b")
    files.remove_record(pid=7)
    assert (files.record.exists(), files.pid.exists()) == (False, False)
