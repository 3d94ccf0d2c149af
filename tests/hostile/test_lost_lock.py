"""The lock, the run folder or the home itself is removed while a service has it.

What a second process must not do is seen in what it leaves: the database and the journal of the
first.
"""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holon.adapters.system.run_files import RunFiles
from tests.hostile.served import PATIENCE_S, Served, World, until
from tests.support.database_oracle import generation_of
from tests.support.database_plants import take_over_home


def second(world: World, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Start a second service, which should not come up."""
    return subprocess.run(
        [*world.program, "serve", *arguments],
        env=world.variables(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@contextmanager
def halted(served: Served) -> Iterator[None]:
    """Keep a service from noticing anything while the block runs."""
    served.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        served.process.send_signal(signal.SIGCONT)


def assert_refused(done: "subprocess.CompletedProcess[str]", served: Served) -> None:
    """A second service was refused by the name of the first and has left nothing."""
    assert done.returncode == 2, done.stderr
    assert "is in use by process" in done.stderr
    assert str(served.process.pid) in done.stderr
    assert "Traceback" not in done.stderr
    files = RunFiles(served.world.home)
    assert not files.startup_failure.exists()
    assert not files.shutdown_failure.exists()
    assert generation_of(served.world.home) == 1
    assert served.is_alive()


@pytest.mark.requirement("home:the-lock-refuses-first")
def test_a_second_service_on_the_same_port_is_refused_by_the_lock(world: World) -> None:
    with world.served() as served:
        port = str(served.facts["http_addr"]).rpartition(":")[2]
        log = RunFiles(world.home).log
        before = log.read_text(encoding="utf-8")
        for arguments in (("--port", port), ("--port", "0")):
            assert_refused(second(world, *arguments), served)
        assert log.read_text(encoding="utf-8") == before
        assert served.end() == 0


@pytest.mark.requirement("home:one-owner-without-the-lock")
@pytest.mark.requirement("home:a-removed-lock-is-restored")
def test_a_service_whose_lock_is_removed_stays_the_owner_and_puts_it_back(world: World) -> None:
    with world.served() as served:
        task = served.task("cat gate; echo ended")
        port = str(served.facts["http_addr"]).rpartition(":")[2]
        lock = world.home / "run" / "lock"
        for arguments in (("--port", port), ("--port", "0")):
            with halted(served):
                lock.unlink()
                assert_refused(second(world, *arguments), served)
        until(lambda: lock.exists() and lock.read_text() == f"{served.process.pid}\n")
        until(lambda: "lock_restored" in RunFiles(world.home).log.read_text(encoding="utf-8"))
        assert_refused(second(world, "--port", "0"), served)
        assert served.get(f"/agents/main/tasks/{task}")["status"] == "running"
        served.open_gate()
        assert served.ended_task(task)["status"] == "completed"
        assert served.end() == 0


@pytest.mark.requirement("home:one-owner-without-the-lock")
@pytest.mark.requirement("home:a-removed-lock-is-restored")
def test_a_service_whose_run_folder_is_removed_stays_the_owner_and_ends_with_a_message(
    world: World,
) -> None:
    with world.served() as served:
        with halted(served):
            shutil.rmtree(world.home / "run")
            done = second(world, "--port", "0")
            assert not RunFiles(world.home).log.exists(), "the second has written nothing"
        assert done.returncode == 2, done.stderr
        assert f"process {served.process.pid}" in done.stderr
        assert generation_of(world.home) == 1
        assert served.process.wait(timeout=PATIENCE_S) == 1
        assert f"{RunFiles(world.home).socket} was removed" in world.said()
        assert "Traceback" not in world.said()
    with world.served() as served:
        served.prompt("hello")
        until(served.is_at_rest)
        assert served.end() == 0


@pytest.mark.requirement("home:a-removed-lock-is-restored")
def test_a_service_whose_home_is_moved_ends_and_goes_on_where_it_is_now(world: World) -> None:
    away = world.home.with_name("away")
    with world.served() as served:
        kept = served.prompt("hello")
        until(served.is_at_rest)
        world.home.rename(away)
        assert served.process.wait(timeout=PATIENCE_S) == 1
        assert f"{world.home} was moved" in world.said()
        assert "Traceback" not in world.said()
        assert not world.home.exists(), "nothing is made anew where the home was"
    away.rename(world.home)
    with world.served() as served:
        page = served.get("/agents/main/events?order=asc&limit=512")
        assert kept in str(page)
        assert served.end() == 0


@pytest.mark.requirement("home:a-replaced-owner-writes-nothing")
def test_a_service_that_was_replaced_ends_and_says_by_whom(world: World) -> None:
    with world.served() as served:
        served.prompt("hello")
        until(served.is_at_rest)
        take_over_home(world.home)
        assert served.process.wait(timeout=PATIENCE_S) == 1
        assert "was taken over by process 4194305" in world.said()
        assert "Traceback" not in world.said()
    assert not RunFiles(world.home).shutdown_failure.exists(), "the home is not its own any more"
