"""A host is killed around a command: it runs at most once, and a task of it is never lost.

The command waits for a file, so that it is the test that says when it ends.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holon.adapters.exec.process_table import (
    ProcessIdentity,
    is_living,
    kill_all,
    marked_with,
)
from holon.adapters.exec.run_folder import RunFolder
from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.ports.failpoint import Failpoint
from holon.serve.compose import COMMANDS_FOLDER
from tests.crash.aftermath import problems_at_rest
from tests.crash.conftest import StartHost
from tests.crash.hands_aftermath import end_stragglers, marker_of_home, open_tasks, runaways
from tests.crash.rest import come_to_rest
from tests.crash.stage import Ledger
from tests.support.mixed_commands import EFFECTS_FILE
from tests.support.served_host import HostGoneError, Request, ServedHost

WAIT_S_MAX = 20.0
BEGUN, ENDED = '"$HOLON_EFFECT_ID"', '"$HOLON_EFFECT_ID:end"'
COMMAND = (
    f"echo {BEGUN} >> {EFFECTS_FILE}; while [ ! -e go ]; do sleep 0.02; done;"
    f" echo {ENDED} >> {EFFECTS_FILE}"
)
PROMPT = Request(path="/control/agents/main/prompt", body={"text": "run it"}, key="k")


@dataclass(frozen=True, slots=True)
class Stage:
    """A home with a script that runs one command, and a way to start hosts on it."""

    home: Path
    start: Callable[[str | None], ServedHost]

    @property
    def effects(self) -> list[str]:
        """What the command has written, without its id."""
        file = self.home / "agents" / "main" / EFFECTS_FILE
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line.partition(":")[2] or "begun" for line in lines]

    def let_end(self) -> None:
        """Let the command come to its end."""
        workspace = self.home / "agents" / "main"
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "go").touch()

    def kill_around_the_command(self, point: Failpoint, *, visit: int = 1) -> None:
        """Have a host start the command and die at a failpoint."""
        host = self.start(f"{point}=kill@{visit}")
        host.wait_ready()
        with contextlib.suppress(HostGoneError):  # it may die before it has answered
            host.ask(PROMPT)
        assert host.join() == -signal.SIGKILL

    def finish(self, host: ServedHost) -> None:
        """See the host fall silent, and everything it leaves in good order."""
        answer = host.ask(PROMPT)
        self.rest(host, Ledger(acked={"k": str(answer.at("message_id"))}))

    def rest(self, host: ServedHost, ledger: Ledger) -> None:
        """See the host fall silent, and everything it leaves in good order."""
        wait_until(lambda: not any(open_tasks(database_path(self.home)).values()))
        assert come_to_rest(host).is_idle
        assert host.terminate() == 0
        assert problems_at_rest(self.home, ledger) == []

    def column(self, query: str) -> list[str]:
        """Read one column of the database."""
        with open_untouched(database_path(self.home)) as connection:
            return [str(value) for (value,) in connection.execute(query)]

    def supervisor_lives(self) -> bool:
        """Whether somebody looks after the command."""
        return self._living_supervisors() != []

    def kill_everything_of_the_command(self) -> None:
        """Kill its processes, the supervisor first: it would write down how its command ended."""
        for supervisor in self._living_supervisors():
            os.kill(supervisor.pid, signal.SIGKILL)
        marker = marker_of_home(self.home)
        kill_all(lambda: marked_with(marker))
        wait_until(lambda: not marked_with(marker))  # what is killed takes a moment to be gone

    def _living_supervisors(self) -> list[ProcessIdentity]:
        runs = [RunFolder(path) for path in (self.home / COMMANDS_FOLDER).iterdir()]
        found = [run.read().supervisor for run in runs]
        return [supervisor for supervisor in found if supervisor and is_living(supervisor)]


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look again and again, for a bounded time."""
    deadline = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


@pytest.fixture
def stage(tmp_path: Path, start_host: StartHost) -> Iterator[Stage]:
    """A home that leaves no process behind."""
    home = tmp_path / "home"
    asked = {"cmd": COMMAND, "yield_time_ms": 30}
    calls = [{"name": "ExecCommand", "input": asked}, {"name": "TaskList"}]
    rules = [{"when": "run it", "rounds": [{"calls": calls}, {"text": "It runs."}]}]

    def start(failpoints: str | None) -> ServedHost:
        return start_host(home, script={"rules": rules}, failpoints=failpoints)

    yield Stage(home, start)
    assert end_stragglers(home) == []


@pytest.mark.requirement("crash:command-at-most-once")
@pytest.mark.parametrize(
    ("point", "effects"),
    [(Failpoint.ROUND_AFTER_COMMIT, []), (Failpoint.TOOL_BEFORE_DONE, ["begun"])],
)
def test_a_command_whose_call_was_cut_off_is_ended_and_not_run_again(
    point: Failpoint, effects: list[str], stage: Stage
) -> None:
    stage.kill_around_the_command(point)
    wait_until(lambda: stage.effects == effects)
    second = stage.start(None)
    second.wait_ready()
    assert runaways(stage.home) == []
    stage.let_end()
    stage.finish(second)
    assert stage.effects == effects
    assert stage.column("select state from tool_calls")[:1] == ["interrupted"]
    assert stage.column("select status from tasks") == []


@pytest.mark.requirement("crash:task-survives-kill")
def test_a_task_goes_on_while_there_is_no_host_and_the_next_one_hears_its_end(
    stage: Stage,
) -> None:
    stage.kill_around_the_command(Failpoint.TOOL_AFTER_DONE)
    assert stage.supervisor_lives()
    second = stage.start(None)
    second.wait_ready()
    assert stage.supervisor_lives()
    assert stage.column("select status from tasks") == ["running"]
    stage.let_end()
    stage.finish(second)
    assert stage.effects == ["begun", "end"]
    assert stage.column("select status from tasks") == ["completed"]


@pytest.mark.requirement("crash:task-survives-kill")
def test_a_task_that_ended_while_there_was_no_host_is_told_by_the_next_one(stage: Stage) -> None:
    stage.kill_around_the_command(Failpoint.TOOL_AFTER_DONE)
    stage.let_end()
    wait_until(lambda: not stage.supervisor_lives())
    second = stage.start(None)
    second.wait_ready()
    assert stage.column("select status from tasks") == ["completed"]
    stage.finish(second)
    assert stage.effects == ["begun", "end"]


@pytest.mark.requirement("crash:task-survives-kill")
def test_a_task_whose_processes_are_gone_is_interrupted(stage: Stage) -> None:
    stage.kill_around_the_command(Failpoint.TOOL_AFTER_DONE)
    stage.kill_everything_of_the_command()
    second = stage.start(None)
    second.wait_ready()
    assert stage.column("select status from tasks") == ["interrupted"]
    stage.finish(second)
    assert stage.effects == ["begun"]


ORDER = Request(
    path="/control/agents/main/tasks",
    body={"cmd": COMMAND.replace("$HOLON_EFFECT_ID", "order-o"), "summary": "order o"},
    key="o",
)


@pytest.mark.requirement("stop:an-acknowledged-task-ends-by-itself")
@pytest.mark.parametrize("end", ["kill", "term"])
@pytest.mark.parametrize("point", [Failpoint.TASK_BEFORE_START, Failpoint.TASK_AFTER_START])
def test_a_task_that_was_being_started_when_the_service_ended_runs_to_its_own_end(
    point: Failpoint, end: str, stage: Stage
) -> None:
    first = stage.start(f"{point}={end}")
    first.wait_ready()
    with contextlib.suppress(HostGoneError):  # it may end before it has answered
        first.ask(ORDER)
    assert first.join() == (0 if end == "term" else -signal.SIGKILL)
    second = stage.start(None)
    second.wait_ready()
    reply = second.ask(ORDER)
    assert reply.ok, reply.body
    wait_until(lambda: stage.effects == ["begun"])
    stage.let_end()
    stage.rest(second, Ledger())
    assert stage.effects == ["begun", "end"]
    assert stage.column("select status from tasks") == ["completed"]
    assert stage.column("select task_id from tasks") == [str(reply.at("task", "task_id"))]
