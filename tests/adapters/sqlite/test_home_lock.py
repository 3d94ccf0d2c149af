"""One process per home, refused at once and released by death."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holon.adapters.sqlite.database.home_lock import HomeLock, database_path, prepare_home
from holon.adapters.sqlite.store import open_store
from holon.model.errors import HomeInUseError, StoreUnwritableError

HOLD = """
import sys
import time
from pathlib import Path
from holon.adapters.sqlite.database.home_lock import HomeLock, prepare_home
home = Path(sys.argv[1])
prepare_home(home)
lock = HomeLock(home)
print("held", flush=True)
sys.stdin.read()
"""


def a_holder(home: Path) -> "subprocess.Popen[str]":
    """Start another process that owns the home."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_second_process_is_refused_and_told_which_one_is_first(tmp_path: Path) -> None:
    with a_holder(tmp_path) as child:
        with pytest.raises(HomeInUseError, match=f"process {child.pid}"):
            open_store(tmp_path)
        assert not database_path(tmp_path).exists(), "the loser touches nothing"
        child.kill()


def test_the_lock_dies_with_its_holder(tmp_path: Path) -> None:
    with a_holder(tmp_path) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
    HomeLock(tmp_path).release()


def test_a_second_lock_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    held = HomeLock(tmp_path)
    with pytest.raises(HomeInUseError, match=f"process {os.getpid()}"):
        HomeLock(tmp_path)
    held.release()
    HomeLock(tmp_path).release()


def test_whoever_finds_a_service_is_told_how_to_talk_to_it(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    held = HomeLock(tmp_path)
    for written, hint in (
        ("1\n", "stop that process"),
        (f"{os.getpid()}\n", "holon prompt --wait"),
    ):
        (tmp_path / "run" / "holon.pid").write_text(written, encoding="ascii")
        with pytest.raises(HomeInUseError) as refused:
            HomeLock(tmp_path)
        assert hint in str(refused.value.hint)
    held.release()


def test_what_is_written_in_the_lock_file_is_only_for_people(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    held = HomeLock(tmp_path)
    held.path.write_text("not a number at all")
    with pytest.raises(HomeInUseError, match="process unknown"):
        HomeLock(tmp_path)
    held.release()
    held.release()


@pytest.mark.parametrize("written", ["", "4194305\n"])  # nothing yet, or the pid of one long gone
def test_a_holder_that_has_only_just_come_is_waited_for_to_say_who_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    prepare_home(tmp_path)
    held = HomeLock(tmp_path)
    held.path.write_text(written, encoding="ascii")

    def until_it_says(_: float) -> None:
        held.path.write_text(f"{os.getpid()}\n", encoding="ascii")

    monkeypatch.setattr(time, "sleep", until_it_says)
    with pytest.raises(HomeInUseError, match=f"process {os.getpid()}"):
        HomeLock(tmp_path)
    held.release()


async def test_closing_a_store_frees_its_home(tmp_path: Path) -> None:
    for _ in range(2):
        await open_store(tmp_path).close()


def test_the_directories_of_a_home_are_private(tmp_path: Path) -> None:
    prepare_home(tmp_path / "home")
    modes = {(tmp_path / "home" / name).stat().st_mode & 0o777 for name in ("", "run", "state")}
    assert modes == {0o700}


@pytest.mark.parametrize("blocked", ["home", "home/run", "home/state", "home/run/lock/x"])
def test_a_file_in_the_way_is_a_home_that_cannot_be_written(tmp_path: Path, blocked: str) -> None:
    in_the_way = tmp_path / blocked
    in_the_way.parent.mkdir(parents=True, exist_ok=True)
    in_the_way.write_text("in the way")
    with pytest.raises(StoreUnwritableError) as refused:
        open_store(tmp_path / "home")
    assert refused.value.hint is not None
