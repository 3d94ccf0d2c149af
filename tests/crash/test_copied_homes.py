"""A home that was copied or moved: a copy leaves the processes of the original alone.

A copy holds the same records as its original: who serves it, which commands run, which tasks are
open. The original is a service with a command in the background, alive or killed.
"""

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.run_files import RunFiles
from holon.ports.failpoint import Failpoint
from tests.crash.conftest import StartHost
from tests.crash.copies import copy_home, holon, run_copy_loop
from tests.crash.hands_aftermath import end_stragglers, open_tasks
from tests.crash.test_hand_windows import COMMAND, PROMPT, Stage, wait_until
from tests.support.served_host import ServedHost


@dataclass(frozen=True, slots=True)
class Twins:
    """A home with a running command, and a place for its copy."""

    original: Stage
    copy: Stage

    def start_task(self) -> ServedHost:
        """Serve the original, and run a command as a task there."""
        host = self.original.start(None)
        host.wait_ready()
        assert host.ask(PROMPT).ok
        wait_until(lambda: self.original.column("select status from tasks") == ["running"])
        assert self.original.supervisor_lives()
        return host

    def finish(self) -> None:
        """See the task of the original come to its end under its next host."""
        host = self.original.start(None)
        host.wait_ready()
        self.original.let_end()
        self.original.finish(host)
        assert self.original.effects == ["begun", "end"]
        assert self.original.column("select status from tasks") == ["completed"]


@pytest.fixture
def twins(tmp_path: Path, start_host: StartHost) -> Iterator[Twins]:
    """Both homes leave no process behind."""
    asked = {"cmd": COMMAND, "yield_time_ms": 30}
    calls = [{"name": "ExecCommand", "input": asked}, {"name": "TaskList"}]
    script = {"rules": [{"when": "run it", "rounds": [{"calls": calls}, {"text": "It runs."}]}]}

    def starter(home: Path) -> Callable[[str | None], ServedHost]:
        return lambda failpoints: start_host(home, script=script, failpoints=failpoints)

    homes = tmp_path / "home", tmp_path / "copy"
    original, copy = (Stage(home, starter(home)) for home in homes)
    yield Twins(original, copy)
    for home in homes:
        assert end_stragglers(home) == []


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
@pytest.mark.parametrize("arguments", [("stop",), ("restart", "--port", "0"), ("status",)])
def test_the_daemon_commands_on_a_copy_leave_the_service_of_the_original_alone(
    twins: Twins, arguments: tuple[str, ...]
) -> None:
    host = twins.start_task()
    copy_home(twins.original.home, twins.copy.home)
    done = holon(twins.copy.home, "daemon", *arguments)
    if arguments[0] == "restart":
        assert done.returncode == 0, done.stderr
        assert "started as process" in done.stdout
        assert holon(twins.copy.home, "daemon", "stop").returncode == 0
    else:
        said = " ".join((done.stdout + done.stderr).split())
        assert f"a copy of {twins.original.home}" in said
        assert f"process {host.pid}" in said
        assert "holon daemon start" in said
    assert host.process.poll() is None
    assert twins.original.supervisor_lives()
    twins.original.let_end()
    twins.original.finish(host)
    assert twins.original.effects == ["begun", "end"]


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
@pytest.mark.parametrize("service_lives", [True, False])
def test_a_started_copy_settles_its_tasks_as_interrupted_and_ends_no_command_of_the_original(
    twins: Twins, service_lives: bool
) -> None:
    host = twins.start_task()
    if not service_lives:
        host.kill()
    copy_home(twins.original.home, twins.copy.home)
    copy = twins.copy.start(None)
    copy.wait_ready()
    assert twins.copy.column("select status from tasks") == ["interrupted"]
    assert twins.original.supervisor_lives()
    journal = RunFiles(twins.copy.home).log.read_text(encoding="utf-8")
    assert f"a copy of {twins.original.home}" in journal
    assert copy.terminate() == 0
    if service_lives:
        assert twins.original.column("select status from tasks") == ["running"]
        assert host.terminate() == 0
    twins.finish()


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
def test_a_copy_ends_no_command_of_a_call_that_was_cut_off_in_the_original(twins: Twins) -> None:
    twins.original.kill_around_the_command(Failpoint.TOOL_BEFORE_DONE)
    wait_until(lambda: twins.original.effects == ["begun"])
    copy_home(twins.original.home, twins.copy.home)
    copy = twins.copy.start(None)
    copy.wait_ready()
    assert twins.copy.column("select state from tool_calls")[:1] == ["interrupted"]
    assert twins.original.supervisor_lives()
    assert copy.terminate() == 0
    twins.original.let_end()
    wait_until(lambda: not twins.original.supervisor_lives())
    assert twins.original.effects == ["begun", "end"]


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
def test_a_copy_in_the_place_of_its_original_leaves_its_commands_alone(twins: Twins) -> None:
    twins.start_task().kill()
    home, away = twins.original.home, twins.copy.home
    home.rename(away)
    copy_home(away, home)
    copy = twins.original.start(None)
    copy.wait_ready()
    assert twins.original.column("select status from tasks") == ["interrupted"]
    assert twins.copy.supervisor_lives()
    assert copy.terminate() == 0
    shutil.rmtree(home)
    away.rename(home)
    twins.finish()


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
def test_a_command_line_on_a_copy_does_not_call_the_service_of_the_original(twins: Twins) -> None:
    host = twins.start_task()
    copy_home(twins.original.home, twins.copy.home)
    (twins.copy.home / "run" / "holon.sock").unlink()  # many ways of copying leave sockets out
    done = holon(twins.copy.home, "agent", "stop", "main")
    assert done.returncode != 0
    assert "no runtime is running for" in done.stderr
    twins.original.let_end()
    twins.original.finish(host)


@pytest.mark.requirement("home:a-moved-home-goes-on")
def test_a_moved_home_goes_on_with_the_tasks_it_had(twins: Twins) -> None:
    twins.start_task().kill()
    twins.original.home.rename(twins.copy.home)
    host = twins.copy.start(None)
    host.wait_ready()
    assert twins.copy.supervisor_lives()
    assert twins.copy.column("select status from tasks") == ["running"]
    task_id = next(iter(open_tasks(database_path(twins.copy.home))))
    assert host.post(f"/control/agents/main/tasks/{task_id}/stop").ok
    wait_until(lambda: not twins.copy.supervisor_lives())
    wait_until(lambda: not open_tasks(database_path(twins.copy.home)))
    assert host.terminate() == 0


@pytest.mark.requirement("home:a-copy-has-an-identity-of-its-own")
def test_a_started_copy_is_a_home_of_its_own(twins: Twins) -> None:
    twins.start_task().kill()
    copy_home(twins.original.home, twins.copy.home)
    for _ in range(2):
        copy = twins.copy.start(None)
        copy.wait_ready()
        assert copy.terminate() == 0
    copy = twins.copy.start(None)
    copy.wait_ready()
    assert str(copy.pid) in holon(twins.copy.home, "daemon", "status").stdout
    assert copy.kill() == -signal.SIGKILL
    ids = set[object]()
    for home in (twins.original.home, twins.copy.home):
        with open_untouched(database_path(home)) as connection:
            ids.update(connection.execute("select home_id from home_owner"))
    assert len(ids) == 2
    twins.finish()


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
@pytest.mark.requirement("home:one-owner-without-the-lock")
def test_copies_and_lost_locks_at_random_moments_touch_nothing_of_the_original(
    tmp_path: Path,
) -> None:
    report = run_copy_loop(rounds=9, seed=3, root=tmp_path / "loop")
    assert report.problems == []
    assert report.rounds == 9
