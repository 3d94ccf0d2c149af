"""A disk that turns read-only: the same answers as a full one, until it can be written again."""

import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.hostile.conftest import require_own_disk
from tests.hostile.served import World, declined, own_disk, until
from tests.hostile.system_library import environ_with
from tests.hostile.test_disk_full import (
    LONG,
    WRITES,
    problems_of,
    require_nothing_failed,
    require_says_what_to_do,
)


@pytest.mark.requirement("hostile:read-only-refuses-writes")
@pytest.mark.requirement("hostile:read-only-pauses-and-resumes")
def test_a_disk_that_turns_read_only_is_refused_waited_out_and_costs_nothing(
    folder: Path, switches: Path, hostile_world: Path
) -> None:
    home = folder / "home"
    environ = {**environ_with(hostile_world, switches), "HOSTILE_DISK": str(home)}
    world = World(folder=folder, home=home, environ=environ)
    with world.served() as served:
        acked = {served.prompt("hello"), served.prompt("hold on")}
        until((folder / "here").exists)  # it is in the middle of a turn
        switch = switches / "read_only"
        switch.touch()
        for path, body in WRITES:
            refusal = declined(partial(served.post, path, body))
            assert refusal.status == 507
            assert refusal.body.hint is not None
            if not path.endswith("/tasks"):
                require_says_what_to_do(refusal, "storage_read_only")
        served.read_everything()
        served.open_gate()
        require_says_what_to_do(declined(lambda: served.prompt(LONG)), "storage_read_only")
        assert not served.is_at_rest()
        require_nothing_failed(served)

        switch.unlink()
        acked.add(served.prompt(LONG))
        until(served.is_at_rest)
        require_nothing_failed(served)
        assert problems_of(served, folder / "copy", acked) == []
        assert served.end() == 0


@pytest.mark.requirement("hostile:read-only-pauses-and-resumes")
def test_a_service_ends_in_good_order_on_a_disk_that_is_read_only(
    folder: Path, switches: Path, hostile_world: Path
) -> None:
    home = folder / "home"
    environ = {**environ_with(hostile_world, switches), "HOSTILE_DISK": str(home)}
    world = World(folder=folder, home=home, environ=environ)
    with world.served() as served:
        (switches / "read_only").touch()
        assert served.end() == 0
        assert "Traceback" not in world.said()
        (switches / "read_only").unlink()
    with world.served() as again:  # what could not be removed is stale, and in nobody's way
        again.prompt("hello")


@pytest.mark.requirement("hostile:read-only-at-the-start")
def test_a_home_on_a_read_only_disk_is_refused_in_a_sentence(folder: Path) -> None:
    require_own_disk()
    disk = folder / "disk"
    shut = 'mkdir -m 700 "$0/home" && mount -o remount,ro "$0"'
    done = World(folder=folder, home=disk / "home", before=own_disk(disk, first=shut)).refused()
    assert done.returncode == 2
    assert f"\nholon: {disk}/home" in f"\n{done.stderr}"
    assert "Read-only file system" in done.stderr
    assert "HOLON_HOME" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("hostile:read-only-refuses-writes")
def test_the_kernel_leaves_the_disk_of_a_service_writable(small_disk: World) -> None:
    """Nobody turns the disk of a living service read-only by a plain remount."""
    with small_disk.served() as served:
        disk = str(small_disk.home.parent)
        entered = ["nsenter", "-t", str(served.process.pid), "-U", "-m", "--preserve-credentials"]
        tried = subprocess.run(
            [*entered, "mount", "-o", "remount,ro", disk], capture_output=True, check=False
        )
        assert tried.returncode != 0
        served.prompt("hello")
