"""Homes in odd places work; homes that cannot be served are refused with what to do about them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.served import World, until

ODD = "wïth späces, “quotes” & 雪\tand a tab"
# As on a file system over the network that has none.
NO_LOCKS = """
import errno, fcntl, os
def flock(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
fcntl.flock = flock
from holon.cli.main import main
main()
"""


def linked(folder: Path) -> Path:
    (folder / "elsewhere").mkdir(mode=0o700)
    (folder / "link").symlink_to(folder / "elsewhere")
    return folder / "link"


def deep(folder: Path) -> Path:
    return folder.joinpath(*["a rather long name of a folder"] * 6)


WORKING: dict[str, Callable[[Path], Path]] = {
    "behind a link": linked,
    "spaces and letters": lambda folder: folder / ODD,
    "too deep for a socket": deep,
}


@pytest.mark.requirement("hostile:odd-homes-work")
@pytest.mark.parametrize("place", WORKING.values(), ids=list(WORKING))
def test_a_home_in_an_odd_place_is_served(folder: Path, place: Callable[[Path], Path]) -> None:
    world = World(folder=folder, home=place(folder))
    with world.served() as served:
        served.prompt("hello")
        assert served.ended_task(served.task("exit 0"))["status"] == "completed"
        until(served.is_at_rest)
        assert served.end() == 0
    assert "Traceback" not in world.said()


def group_writable(folder: Path) -> tuple[Path, str]:
    home = folder / "home"
    home.mkdir()
    home.chmod(0o770)
    return home, f"chmod go-w {home}"


def run_folder_open(folder: Path) -> tuple[Path, str]:
    run = folder / "home" / "run"
    run.mkdir(parents=True)
    run.parent.chmod(0o700)
    run.chmod(0o755)
    return run.parent, f"chmod go-rwx {run}"


def somebody_elses(folder: Path) -> tuple[Path, str]:
    if os.getuid() != 0:
        return Path("/usr"), "chown"
    home = folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, 12_345, -1)
    return home, f"chown 0 {home}"


def a_file(folder: Path) -> tuple[Path, str]:
    (folder / "home").write_text("precious", encoding="utf-8")
    return folder / "home", "--home"


def below_a_file(folder: Path) -> tuple[Path, str]:
    (folder / "file").write_text("precious", encoding="utf-8")
    return folder / "file" / "home", "HOLON_HOME"


def a_loop(folder: Path) -> tuple[Path, str]:
    (folder / "home").symlink_to(folder / "home")
    return folder / "home", "HOLON_HOME"


def leading_nowhere(folder: Path) -> tuple[Path, str]:
    (folder / "home").symlink_to("/proc/nowhere")
    return folder / "home", "HOLON_HOME"


def not_to_be_made(folder: Path) -> tuple[Path, str]:
    del folder
    return Path("/proc/holon-home"), "HOLON_HOME"


REFUSED = (
    group_writable,
    run_folder_open,
    somebody_elses,
    a_file,
    below_a_file,
    a_loop,
    leading_nowhere,
    not_to_be_made,
)


@pytest.mark.requirement("hostile:unusable-homes-are-refused")
@pytest.mark.parametrize("spoil", REFUSED, ids=lambda spoil: spoil.__name__)
def test_a_home_that_cannot_be_served_is_refused_with_a_remedy(
    folder: Path, spoil: Callable[[Path], tuple[Path, str]]
) -> None:
    home, remedy = spoil(folder)
    done = World(folder=folder, home=home).refused()
    assert done.returncode == 2, done.stderr
    assert str(home) in done.stderr
    assert remedy in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("hostile:unusable-homes-are-refused")
def test_a_file_system_without_locks_is_refused_with_a_remedy(folder: Path) -> None:
    program = (sys.executable, "-c", NO_LOCKS)
    done = World(folder=folder, home=folder / "home", program=program).refused()
    assert done.returncode == 2, done.stderr
    assert f"holon: the file system of {folder}/home/run/lock has no locks" in done.stderr
    assert "HOLON_HOME" in done.stderr
    assert "Traceback" not in done.stderr
