"""The database of a running service is removed, exchanged or damaged under its hands."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.client.connection import SilentRuntimeError
from holon.client.control_client import ControlError
from holon.client.endpoint import NoRuntimeError
from holon.model.values import MessageId
from tests.adapters.sqlite.test_database_underneath import overwrite_pages_of
from tests.hostile.served import PATIENCE_S, Served, World, until

PROMPTS_MAX = 500


def holon(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holon", *arguments, "--home", str(world.home)],
        env=world.variables(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def an_older_backup(world: World) -> Path:
    """What the home's database was at the end of an earlier life."""
    with world.served() as served:
        served.prompt("hello")
        until(served.is_at_rest)
        assert served.end() == 0
    older = world.folder / "older.sqlite"
    shutil.copy(database_path(world.home), older)
    return older


def removed(path: Path, older: Path) -> None:
    path.unlink()


def renamed_over(path: Path, older: Path) -> None:
    shutil.copy(older, path.with_name("new"))
    path.with_name("new").rename(path)


def copied_over(path: Path, older: Path) -> None:
    shutil.copyfile(older, path)


def prompts_until_it_ends(served: Served) -> set[str]:
    """What is acknowledged from now on, until nothing answers any more."""
    acked, codes = set[str](), set[str]()
    for number in range(PROMPTS_MAX):
        try:
            acked.add(served.prompt(f"one more {number}"))
        except ControlError as refusal:
            codes.add(refusal.body.code)
        except (NoRuntimeError, SilentRuntimeError):
            break
        if not served.is_alive():
            break
    else:
        raise AssertionError("it went on for ever")
    assert codes <= {"database_replaced", "shutting_down", "storage_closed"}
    return acked


@pytest.mark.requirement("database:exchanged-while-it-is-open")
@pytest.mark.requirement("database:ends-and-says-why")
@pytest.mark.parametrize("swap", [removed, renamed_over, copied_over])
def test_a_service_whose_database_is_exchanged_acknowledges_nothing_more_and_says_why(
    world: World, swap: Callable[[Path, Path], None]
) -> None:
    older = an_older_backup(world)
    with world.served() as served:
        served.prompt("hello")
        until(served.is_at_rest)
        swap(database_path(world.home), older)
        acked = prompts_until_it_ends(served)
        assert served.process.wait(timeout=PATIENCE_S) == 1

    assert acked == set()
    assert "Traceback" not in world.said()
    assert "database" in world.said()
    status = json.loads(holon(world, "daemon", "status", "--json").stdout)
    assert str(database_path(world.home)) in status["last_failure"]["summary"]
    assert status["stale_files"] == []
    assert str(database_path(world.home)) in holon(world, "daemon", "logs").stdout

    refused = world.refused()  # the log that was left belongs to the one that is gone
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


@pytest.mark.requirement("database:exchanged-while-it-is-open")
def test_an_idle_service_notices_as_well(world: World) -> None:
    with world.served() as served:
        database_path(world.home).unlink()
        assert served.process.wait(timeout=PATIENCE_S) == 1
    assert "was removed" in world.said()


@pytest.mark.requirement("database:ends-and-says-why")
def test_after_the_old_file_is_put_back_everything_acknowledged_is_there(world: World) -> None:
    with world.served() as served:
        acked = {served.prompt("hello")}
        until(served.is_at_rest)
        path, away = database_path(world.home), world.folder / "away.sqlite"
        path.rename(away)
        assert served.process.wait(timeout=PATIENCE_S) == 1
    assert world.refused().returncode == 2
    away.rename(path)
    with world.served() as served:
        until(served.is_at_rest)
        assert served.end() == 0
    assert check_database(path, acked={MessageId(each) for each in acked}).is_clean


@pytest.mark.requirement("database:gone-beside-what-belonged-to-it")
def test_a_service_does_not_begin_anew_beside_the_homes_of_its_agents(world: World) -> None:
    an_older_backup(world)
    database_path(world.home).unlink()
    refused = world.refused()
    assert refused.returncode == 2
    assert "holon restore" in refused.stderr
    assert not database_path(world.home).exists()
    checked = holon(world, "debug", "check")
    assert checked.returncode == 2
    assert "holon restore" in checked.stderr


@pytest.mark.requirement("database:damage-is-told-with-the-way-out")
@pytest.mark.parametrize("table", ["agents", "messages", "events", "turns"])
def test_a_start_that_meets_damage_says_so_and_what_helps(world: World, table: str) -> None:
    path = an_older_backup(world).rename(database_path(world.home))
    overwrite_pages_of(path, table)
    refused = world.refused()
    assert refused.returncode in (1, 2)
    assert "Traceback" not in refused.stderr
    assert "holon restore" in refused.stderr
    assert "start Holon again: it recovers" not in refused.stderr
    checked = holon(world, "debug", "check")
    assert checked.returncode in (1, 2)
    assert "Traceback" not in checked.stderr


@pytest.mark.requirement("database:damage-is-a-finding")
@pytest.mark.parametrize("cut", [0, 1, 99, 4_096, 10_000])
def test_a_cut_database_is_refused_at_the_start_and_by_the_check(world: World, cut: int) -> None:
    an_older_backup(world)
    os.truncate(database_path(world.home), cut)
    refused = world.refused()
    assert refused.returncode == 2
    assert "holon restore" in refused.stderr
    checked = holon(world, "debug", "check", "--json")
    assert checked.returncode in (1, 2)
    assert "Traceback" not in checked.stderr
    json.loads(checked.stdout)
