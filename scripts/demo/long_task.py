"""A chapter on patience: a command outlives the runtime that started it.

Owns:  the story of a promoted command. The runtime is killed, the command is not; the next runtime
       takes it up again and its result arrives once.
Rule 1: one process is the same as another only when number, start time and boot agree.
Rule 2: the command ends when the story says so, so that nothing here depends on luck.
"""

import signal
import subprocess
from pathlib import Path
from typing import Final

from holon.adapters.exec.process_table import ProcessIdentity, is_living
from holon.adapters.exec.run_folder import RunFolder
from holon.decide.tasks.commands import run_id_of
from holon.model.events.event import MessageAdmitted, TaskCreated
from holon.model.queue import MessageKind
from holon.serve.compose import COMMANDS_FOLDER
from scripts.demo.command_line import (
    HOLON,
    RUN_S_MAX,
    check_home,
    environment,
    home_in,
    scripted,
    told_by,
    why_it_failed,
)
from scripts.demo.looking import briefs_of, events_of, processes_about, task_of, until_seen
from scripts.demo.narrator import Narrator, StoryBrokenError

AGENT: Final = "soaker"
RUNS: Final = "The soak runs in the background. I will report when it is over."
STILL_RUNS: Final = "It is still running."
OVER: Final = "The soak is over, and every duration was read right."


def tell_of_a_long_task(folder: Path, repository: Path, say: Narrator) -> None:
    """Tell the chapters; raises when a part of them does not hold."""
    story = _LongTask(folder, repository, say)
    try:
        story.becomes_a_task()
        story.outlives_the_runtime()
        story.is_taken_up_again()
        story.delivers_once()
    finally:
        story.end()
    check_home(home_in(folder), say)


class _LongTask:
    """The story of one task."""

    def __init__(self, folder: Path, repository: Path, say: Narrator) -> None:
        self._folder = folder
        self._home = home_in(folder)
        self._repository = repository
        self._say = say
        self._runtime = self._run("Soak the parser.", "--create-agent")
        self._task_id = ""
        self._record = RunFolder(folder)
        self._process = ProcessIdentity(pid=0, start_ticks=0, boot_id="")

    def becomes_a_task(self) -> None:
        """The command takes too long to wait for."""
        self._say.chapter("A long command becomes a task")
        self._say.tell("holon run “Soak the parser.”")
        created = until_seen(self._created, "the command becomes a task")
        self._task_id = created.task_id
        self._record = RunFolder(self._run_folder())
        self._process = until_seen(lambda: self._record.read().process, "the process is known")
        status = task_of(self._home, self._task_id).status
        self._say.check(status == "running", f"{self._task_id} is on record: {status}")
        self._say.check(is_living(self._process), f"it is {_named(self._process)}")
        until_seen(lambda: RUNS in self._told(), "the agent says that it waits")
        self._say.check(True, f"the agent: “{RUNS}”")

    def outlives_the_runtime(self) -> None:
        """Kill the runtime, and nothing but the runtime."""
        self._say.chapter("The runtime is killed, the command is not")
        self._say.check(self._runtime.poll() is None, f"process {self._runtime.pid} waits for it")
        self._runtime.kill()
        code = self._runtime.wait(timeout=RUN_S_MAX)
        killed = code == -signal.SIGKILL
        self._say.check(killed, f"kill -9 {self._runtime.pid}: gone without a word (exit {code})")
        self._say.check(is_living(self._process), f"{_named(self._process)} goes on")

    def is_taken_up_again(self) -> None:
        """The next runtime finds the same process."""
        self._say.chapter("The next runtime takes it up again")
        self._runtime = self._run("How is the soak doing?")
        self._say.tell("holon run “How is the soak doing?”")
        until_seen(lambda: STILL_RUNS in self._told(), "the agent has looked at its tasks")
        self._say.check(True, f"the agent has looked at its tasks: “{STILL_RUNS}”")
        status = task_of(self._home, self._task_id).status
        self._say.check(status == "running", f"{self._task_id} is {status} in {self._owner()}")
        same = self._record.read().process == self._process
        held = same and is_living(self._process)
        self._say.check(held, f"same number, same start time: {_named(self._process)}")
        self._say.check(self._results() == 0, "and no result has been sent before its time")

    def delivers_once(self) -> None:
        """The command ends, and its agent hears of it."""
        self._say.chapter("Its result arrives, once")
        (self._repository / "enough").touch()
        stdout, stderr = self._runtime.communicate(timeout=RUN_S_MAX)
        if self._runtime.returncode != 0:
            raise StoryBrokenError(why_it_failed(stdout, stderr))
        task = task_of(self._home, self._task_id)
        self._say.quote(task.result_summary or "")
        ended = (task.status.value, task.exit_status)
        self._say.check(
            ended == ("completed", 0), f"the task is {ended[0]}, exit status {ended[1]}"
        )
        spoke = (task.result_summary or "").count(f"soak: process {self._process.pid} ")
        self._say.check(spoke == 2, f"begun and ended by the one process {self._process.pid}")
        self._say.check(self._results() == 1, "its result was sent to the agent exactly once")
        final = told_by(stdout)["final_text"]
        self._say.check(final == OVER, f"the agent reports: “{final}”")
        self._say.check(self._told() == [RUNS, STILL_RUNS, OVER], "and has said nothing twice")

    def end(self) -> None:
        """Leave no runtime behind, also when the story broke."""
        if self._runtime.poll() is None:
            self._runtime.kill()
        self._runtime.communicate()

    def _run(self, text: str, *options: str) -> subprocess.Popen[str]:
        root = ("--workspace-root", str(self._repository))
        model = scripted("long-task")
        return subprocess.Popen(
            [HOLON, "run", "--json", "--agent", AGENT, *options, *root, *model, text],
            env=environment(self._folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _run_folder(self) -> Path:
        run_id = run_id_of(task_of(self._home, self._task_id))
        if run_id is None:
            raise StoryBrokenError(f"{self._task_id} does not say which command it is")
        return self._home / COMMANDS_FOLDER / run_id

    def _created(self) -> TaskCreated | None:
        events = events_of(self._home, AGENT)
        return next((event for event in events if isinstance(event, TaskCreated)), None)

    def _told(self) -> list[str]:
        return [brief.text for brief in briefs_of(self._home, AGENT)]

    def _results(self) -> int:
        return sum(
            isinstance(event, MessageAdmitted)
            and event.message_kind is MessageKind.TASK_RESULT
            and event.task_id == self._task_id
            for event in events_of(self._home, AGENT)
        )

    def _owner(self) -> str:
        return f"process {self._runtime.pid}"


def _named(process: ProcessIdentity) -> str:
    return f"process {process.pid}, started at tick {process.start_ticks}"


def nothing_is_left(folder: Path, say: Narrator) -> None:
    """See that no process of the story goes on without it."""
    say.chapter("Nothing is left behind")
    until_seen(lambda: not processes_about(folder), "the last process ends")
    say.check(processes_about(folder) == [], "no process of this story is left")
