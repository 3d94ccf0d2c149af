"""Backups beside a running service, and who notices that a home was restored."""

import json
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.client.control_client import ControlClient, ControlError
from holon.client.endpoint import UnixEndpoint
from holon.client.event_stream import follow
from holon.model.values import MessageId
from tests.hostile.served import PATIENCE_S, World, until
from tests.hostile.test_database_exchanged import holon


def command(
    world: World, *words: str, file: Path, home: Path
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "holon", *words[:1], str(file), "--home", str(home), *words[1:]],
        env=world.variables(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.requirement("backup:consistent-while-a-service-writes")
@pytest.mark.requirement("backup:whole-home")
def test_a_backup_beside_a_running_service_holds_what_was_acknowledged(world: World) -> None:
    file, again = world.folder / "b.tar", world.folder / "again"
    with world.served() as served:
        acked = {served.prompt(f"hello {number}") for number in range(20)}
        done = command(world, "backup", "--json", file=file, home=world.home)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        served.prompt("goes on")
        until(served.is_at_rest)
        assert served.end() == 0
    told = json.loads(done.stdout)
    assert (told["ok"], told["left_out"]) == (True, ["trigger_key", "run/token"])
    made = command(world, "restore", file=file, home=again)
    assert made.returncode == 0, made.stderr
    found = check_database(database_path(again), acked={MessageId(each) for each in acked})
    assert found.is_clean
    assert (again / "agents" / "main" / "AGENTS.md").is_file()
    there = World(folder=world.folder, home=again)
    with there.served() as served:
        until(served.is_at_rest)
        assert served.end() == 0


@pytest.mark.requirement("backup:restore-refuses-a-home-in-the-way")
def test_a_home_that_is_served_is_not_replaced(world: World) -> None:
    file = world.folder / "b.tar"
    with world.served() as served:
        assert command(world, "backup", file=file, home=world.home).returncode == 0
        for words in (("restore",), ("restore", "--replace")):
            refused = command(world, *words, "--json", file=file, home=world.home)
            assert refused.returncode == 2
            assert json.loads(refused.stdout)["ok"] is False
        assert served.prompt("still here")
        assert served.end() == 0


@pytest.mark.requirement("events:followers-notice-a-restored-home")
def test_those_who_follow_notice_that_the_home_was_restored(world: World) -> None:
    file = world.folder / "b.tar"
    with world.served() as served:
        served.prompt("hello")
        until(served.is_at_rest)
        assert command(world, "backup", file=file, home=world.home).returncode == 0
        served.prompt("after the backup")
        until(served.is_at_rest)
        followed = follow(
            ControlClient(UnixEndpoint(world.home / "run" / "holon.sock")),
            "/agents/main/events/stream",
            pause=lambda _: None,
            query={"after_seq": 0},
        )
        first = next(followed)
        tail = subprocess.Popen(
            [sys.executable, "-m", "holon", "tail", "--follow", "--home", str(world.home)],
            env=world.variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert tail.stdout is not None
        assert tail.stderr is not None
        try:
            assert tail.stdout.readline()
            until(lambda: len(sockets_of(tail.pid)) > 0)
            assert served.end() == 0
            done = command(world, "restore", "--replace", file=file, home=world.home)
            assert done.returncode == 0, done.stderr
            with world.served() as again:
                said = ""
                while "was restored" not in said:
                    said = tail.stderr.readline()
                    assert said, "tail ended"
                again.prompt("on the new timeline")
                while "Hello yourself" not in tail.stdout.readline():
                    assert tail.poll() is None
                with pytest.raises(ControlError) as refused:
                    deque(followed, maxlen=0)
                assert refused.value.body.code == "log_epoch_changed"
                epoch = again.get("/agents/main/events")["event_log_epoch"]
                assert epoch != json.loads(first.data)["event_log_epoch"]
                assert again.end() == 0
        finally:
            tail.kill()
            tail.communicate()
    assert holon(world, "debug", "check").returncode == 0


def sockets_of(pid: int) -> list[str]:
    """What a process is connected to: a stream that was opened stays."""
    found = []
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(handle.readlink()))
        except OSError:
            continue
    return [each for each in found if each.startswith("socket:")]
