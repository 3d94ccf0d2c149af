"""Copying homes and taking their locks away, again and again, while they are served or were killed.

Owns:  copying a home the way a person does it, and the loop: bring a service to a random moment,
       copy its home and act on the copy, or remove its lock or its run folder and start a second
       service; see that nothing of the original was touched; at the end let its tasks finish.

    python -m tests.crash.copies --rounds 150 --seed 1

Rule 1: every command of the original waits for a file, so that one that is gone was
        ended from outside. Service and supervisors are known by their process identities.
Rule 2: a home that is copied while a service writes to it may be copied torn. A copy that cannot be
        opened says so; what it does to its original is judged all the same.
Rule 3: each task of the original ends completed, and its command has run exactly once.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from holon.adapters.exec.process_table import ProcessIdentity, is_living
from holon.adapters.exec.run_folder import RunFolder
from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.serve.compose import COMMANDS_FOLDER
from tests.crash.hands_aftermath import end_stragglers, open_tasks
from tests.support.served_host import HostGoneError, ServedHost

TASKS_COUNT: Final = 3
WAIT_S_MAX: Final = 30.0
STARTING_S_MAX: Final = 0.6
_LOOK_AGAIN_S: Final = 0.02
_REFUSED: Final = 2  # the exit code of a start that found the home in use
_LOST: Final = 1  # and of a service whose run folder is gone
_SCRIPT: Final = (
    '{"rules": [{"when": "run it", "rounds": [{"calls": [{"name": "ExecCommand", "input":'
    ' {"cmd": "until [ -e go ]; do sleep 0.05; done", "yield_time_ms": 30000}}]},'
    ' {"text": "It ran."}]}]}'
)


def copy_home(home: Path, copy: Path) -> None:
    """Copy a home, with modes, times, sockets and pipes."""
    done = subprocess.run(["cp", "-a", str(home), str(copy)], capture_output=True, check=False)
    # A file may go while it is copied, which cp calls an error; it has copied the rest.
    assert copy.is_dir(), done.stderr


def holon(
    home: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the command line on a home."""
    own = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "HOLON_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "holon", *arguments],
        env=own | dict(environ or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def living_supervisors(home: Path) -> set[ProcessIdentity]:
    """Who looks after a command of this home now."""
    folder = home / COMMANDS_FOLDER
    found = (
        {RunFolder(path).read().supervisor for path in folder.iterdir()} if folder.is_dir() else ()
    )
    return {supervisor for supervisor in found if supervisor and is_living(supervisor)}


@dataclass(slots=True)
class CopyReport:
    """What came of a loop."""

    seed: int
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"{len(self.problems)} problems: {self.problems[0]}" if self.problems else "clean"
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        return f"seed={self.seed} {self.rounds} rounds: {told}; {found}"


class CopiedHome:
    """One home, its service if it has one, and what is done to copies of it."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self._home = folder / "home"
        self._folder = folder
        script = folder / "script.json"
        script.write_text(_SCRIPT, encoding="utf-8")
        self._environ = {"HOLON_MODEL": f"scripted/{script}"}
        self._chance = Random(f"{seed}:copies")
        self._host: ServedHost | None = None
        self._tasks: set[ProcessIdentity] = set()
        self.report = CopyReport(seed=seed)

    def run(self, rounds: int) -> CopyReport:
        """Go through this many rounds, then let everything finish."""
        try:
            self._begin()
            for number in range(rounds):
                self._one_round(number)
            self._finish()
        finally:
            if self._host is not None:
                self._host.kill()
            self._note(end_stragglers(self._home))
        return self.report

    def _begin(self) -> None:
        host = self._up()
        for number in range(TASKS_COUNT):
            wait = "until [ -e go ]; do sleep 0.05; done"
            cmd = f"echo begun-{number} >> effects; {wait}; echo ended-{number} >> effects"
            reply = host.post("/control/agents/main/tasks", {"summary": "waits", "cmd": cmd})
            assert reply.ok, reply.body
        self._tasks = living_supervisors(self._home)
        assert len(self._tasks) == TASKS_COUNT

    def _up(self) -> ServedHost:
        if self._host is None:
            self._host = ServedHost(self._home, environ=self._environ, stderr=self._errors)
            self._host.wait_ready()
        return self._host

    def _down(self) -> None:
        if self._host is not None:
            self._host.kill()
            self._host = None

    def _one_round(self, number: int) -> None:
        self.report.rounds += 1
        acts: Sequence[Callable[[int], None]] = (self._copied, self._copied, self._without_lock)
        self._chance.choice(acts)(number)
        gone = sum(not is_living(each) for each in self._tasks)
        if gone:
            self._note([f"round {number}: {gone} commands of tasks were ended"])

    def _copied(self, number: int) -> None:
        """Copy the home at some moment of a life, and act on the copy."""
        moment = self._chance.choice(("served", "killed", "killed in a turn", "starting"))
        if moment == "starting":
            self._down()
            self._host = ServedHost(self._home, environ=self._environ, stderr=self._errors)
            time.sleep(self._chance.uniform(0, STARTING_S_MAX))
        else:
            host = self._up()
            if moment == "killed in a turn":
                host.post("/control/agents/main/prompt", {"text": "run it"})
                self._wait(lambda: len(living_supervisors(self._home)) > len(self._tasks))
            if moment != "served":
                self._down()
        before = self._tasks if moment == "starting" else living_supervisors(self._home)
        copy = self._folder / f"copy-{number}"
        copy_home(self._home, copy)
        act = self._chance.choice(
            (self._copy_is_asked, self._copy_is_stopped, self._copy_is_served)
        )
        act(copy)
        self.report.counts[f"{moment}, {act.__name__.removeprefix('_copy_is_')}"] += 1
        gone = [each.pid for each in before if not is_living(each)]
        if gone:
            self._note([f"round {number}: {moment}, {act.__name__} ended the processes {gone}"])
        if self._host is not None and self._host.process.poll() is not None:
            self._note([f"round {number}: {moment}, {act.__name__} ended the service"])
            self._down()
        if moment == "starting" and self._host is not None:
            with suppress(HostGoneError):
                self._host.wait_ready()
        self._note(end_stragglers(copy))
        shutil.rmtree(copy)

    def _copy_is_asked(self, copy: Path) -> None:
        self._judge(holon(copy, "daemon", "status"))

    def _copy_is_stopped(self, copy: Path) -> None:
        self._judge(holon(copy, "daemon", "stop"))

    def _copy_is_served(self, copy: Path) -> None:
        host = ServedHost(copy, environ=self._environ, stderr=self._errors)
        try:
            host.wait_ready()
        except HostGoneError:
            self.report.counts["copies that were torn"] += 1
        else:
            if any(open_tasks(database_path(copy)).values()):
                self._note([f"{copy.name} took up tasks of the original"])
            host.terminate()
        finally:
            host.kill()

    def _without_lock(self, number: int) -> None:
        """Remove the lock, or all of the run folder, and start a second service."""
        host, lock = self._up(), self._home / "run" / "lock"
        is_whole = self._chance.random() < 1 / 3
        if is_whole:
            shutil.rmtree(lock.parent)
        else:
            lock.unlink()
        done = holon(self._home, "daemon", "start", "--port", "0", environ=self._environ)
        what = "the run folder" if is_whole else "the lock"
        self.report.counts[f"{what} removed"] += 1
        if is_whole:
            # The first one ends by itself; a second that came later than that is served.
            if host.join() != _LOST:
                self._note([f"round {number}: the service ended with {host.process.returncode}"])
            self._host = None
            if done.returncode == 0:
                self._judge(holon(self._home, "daemon", "stop"))
        elif host.process.poll() is not None:
            self._note([f"round {number}: the service is gone after its lock was removed"])
            self._host = None
        else:
            if done.returncode == 0 and str(host.pid) not in done.stdout:
                self._note([f"round {number}: a second service came up: {done.stdout}"])
            if self._chance.random() < 1 / 2:
                self._wait(lambda: lock.exists() and lock.read_text() == f"{host.pid}\n")
            else:
                self._down()

    def _finish(self) -> None:
        host = self._up()
        (self._home / "agents" / "main" / "go").touch()
        self._wait(lambda: not open_tasks(database_path(self._home)))
        if (code := host.terminate()) != 0:
            self._note([f"the last service ended with {code}"])
        self._host = None
        lines = (self._home / "agents" / "main" / "effects").read_text().splitlines()
        wanted = [f"{what}-{n}" for what in ("begun", "ended") for n in range(TASKS_COUNT)]
        if sorted(lines) != wanted:
            self._note([f"the commands of the tasks wrote {lines}"])
        with open_untouched(database_path(self._home)) as connection:
            found = connection.execute("select status from tasks where record like '%waits%'")
            states = Counter(str(status) for (status,) in found)
        if states != Counter(completed=TASKS_COUNT):
            self._note([f"the tasks ended {dict(states)}"])

    @property
    def _errors(self) -> Path:
        return self._folder / "stderr"

    def _judge(self, done: "subprocess.CompletedProcess[str]") -> None:
        if "Traceback" in done.stderr:
            self._note([done.stderr])

    def _wait(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not is_so():
            if time.monotonic() > deadline:
                self._note(["something never came to be"])
                return
            time.sleep(_LOOK_AGAIN_S)

    def _note(self, problems: Sequence[str]) -> None:
        self.report.problems.extend(f"{problem} [{self._home}]" for problem in problems)


def run_copy_loop(*, rounds: int, seed: int, root: Path | None = None) -> CopyReport:
    """Run a loop in a folder of its own, which is kept when something was found."""
    folder = root or Path(tempfile.mkdtemp(prefix="holon-copies-"))
    folder.mkdir(exist_ok=True)
    report = CopiedHome(folder, seed=seed).run(rounds)
    if not report.problems:
        shutil.rmtree(folder)
    return report


def main(arguments: list[str]) -> int:
    """Run a loop from the command line; 0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="tests.crash.copies")
    parser.add_argument("--rounds", type=int, default=20, help="how often to copy, or to unlock")
    parser.add_argument("--seed", type=int, default=1, help="for moments and acts")
    asked = parser.parse_args(arguments)
    report = run_copy_loop(rounds=asked.rounds, seed=asked.seed)
    print(report, *report.problems[1:], sep="\n  ")
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
