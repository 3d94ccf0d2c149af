"""The real `holon serve` in a world that means it ill, and what its operator asks of it.

The process is started as a person starts it. What is put in front of its command line, or into its
environment, changes the world around it and nothing of the program.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holon.client.connection import SilentRuntimeError
from holon.client.control_client import ControlClient, ControlError
from holon.client.endpoint import NoRuntimeError, UnixEndpoint

PATIENCE_S = 60
READS = (
    "/agents/list",
    "/agents/main/status",
    "/agents/main/state",
    "/agents/main/events",
    "/agents/main/transcript",
    "/control/runtime/status",
)
# `hold on` is in the middle of a turn until somebody writes to the gate.
SCRIPT: Mapping[str, Any] = {
    "rules": [
        {
            "when": "hold on",
            "rounds": [
                {"calls": [{"name": "ExecCommand", "input": {"cmd": ": > here; read x < gate"}}]},
                {"text": "Held, and gone on."},
            ],
        },
        {"rounds": [{"text": "Hello yourself."}]},
    ]
}


@dataclass(frozen=True, kw_only=True)
class World:
    """Where a service lives: `folder` is an ordinary disk, `home` wherever a test puts it."""

    folder: Path
    home: Path
    before: Sequence[str] = ()  # in front of the command line
    environ: Mapping[str, str] = field(default_factory=dict)
    program: Sequence[str] = (sys.executable, "-m", "holon")

    def variables(self) -> dict[str, str]:
        """What the process finds in its environment."""
        script = self.folder / "script.json"
        script.write_text(json.dumps(SCRIPT), encoding="utf-8")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "HOLON_HOME": str(self.home),
            "HOLON_MODEL": f"scripted/{script}",
            **self.environ,
        }

    def command(self, *arguments: str) -> list[str]:
        """The command line of a service."""
        workspace = ("--workspace-root", str(self.folder))
        return [*self.before, *self.program, "serve", "--port", "0", *workspace, *arguments]

    def refused(self) -> subprocess.CompletedProcess[str]:
        """Start a service that should not come up; return how it ended."""
        return subprocess.run(
            self.command(),
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextmanager
    def served(self) -> Iterator["Served"]:
        """A service from when it is ready; what it says beside that goes to `folder/said`."""
        with (
            (self.folder / "said").open("ab") as said,
            subprocess.Popen(
                self.command("--json"),
                env=self.variables(),
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                first = process.stdout.readline()
                assert first, self.said()
                yield Served(world=self, process=process, facts=json.loads(first))
            finally:
                if process.poll() is None:
                    process.kill()

    def said(self) -> str:
        """What its services printed as errors so far."""
        return (self.folder / "said").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Served:
    """One running service."""

    world: World
    process: "subprocess.Popen[str]"
    facts: Mapping[str, Any]

    def seen(self, path: Path) -> Path:
        """A file as the service sees it, also on a disk that only it has."""
        return Path(f"/proc/{self.process.pid}/root") / path.relative_to("/")

    @property
    def client(self) -> ControlClient:
        return ControlClient(UnixEndpoint(self.seen(self.world.home) / "run" / "holon.sock"))

    def read_everything(self) -> None:
        """Ask for what operators look at; each of it must be answered."""
        for path in READS:
            assert self.client.get_json(path)

    def get(self, path: str) -> dict[str, Any]:
        """Read something."""
        found = self.client.get_json(path)
        assert isinstance(found, dict)
        return dict(found)

    def post(self, path: str, body: object = None, *, key: str | None = None) -> dict[str, Any]:
        """Ask that something be done."""
        return dict(self.client.post(path, dict, body, idempotency_key=key))

    def prompt(self, text: str, *, key: str | None = None) -> str:
        """Say something to the agent; return the id of the message."""
        said = self.post("/control/agents/main/prompt", {"text": text}, key=key)
        return str(said["message_id"])

    def task(self, cmd: str) -> str:
        """Run a command in the background; return the id of its task."""
        asked = {"summary": "a command", "cmd": cmd}
        return str(self.post("/control/agents/main/tasks", asked)["task"]["task_id"])

    def ended_task(self, task_id: str) -> dict[str, Any]:
        """A task once it has ended."""
        path = f"/agents/main/tasks/{task_id}"
        until(lambda: self.get(path)["status"] not in ("queued", "running", "cancelling"))
        return self.get(path)

    def result_of(self, task_id: str) -> str:
        """What the agent was told about the end of a task, and what the task had written."""
        shown = self.get(f"/agents/main/tasks/{task_id}/output")["task"]
        return f"{shown['result_summary']}\n{shown['output_preview']}"

    def events(self) -> list[dict[str, Any]]:
        """Everything the agent's log says, oldest first."""
        page = self.get("/agents/main/events?order=asc&limit=512")
        return [dict(one) for one in page["events"]]

    def is_at_rest(self) -> bool:
        """Whether the agent has nothing left to do."""
        agent = self.get("/agents/main/status")["agent"]
        return agent["pending"] == 0 and agent.get("current_run_id") is None

    def open_gate(self) -> None:
        """Let the command go on that waits at the gate."""
        handle = os.open(self.world.folder / "gate", os.O_WRONLY)
        os.write(handle, b"\n")
        os.close(handle)

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> int:
        """Ask it to end, and return how it did."""
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE_S)


def until(is_so: Callable[[], object]) -> None:
    """Wait for something another process does that nobody can be told of."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(NoRuntimeError, SilentRuntimeError):
            if is_so():
                return
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def declined(act: Callable[[], object]) -> ControlError:
    """The refusal that an act meets."""
    try:
        act()
    except ControlError as error:
        return error
    raise AssertionError("it was taken")


def own_disk(disk: Path, *, first: str = "true", size: str = "8m") -> tuple[str, ...]:
    """What to put before a command so that `disk` is a small disk that only it sees.

    `first` is done on it before the command begins.
    """
    disk.mkdir()
    script = f'mount -t tmpfs -o size={size} tmpfs "$0" && ({first}) && exec "$@"'
    return ("unshare", "-Urm", "sh", "-c", script, str(disk))


def may_have_own_disk() -> bool:
    """Whether this machine lets an ordinary user mount something for itself."""
    if shutil.which("unshare") is None:
        return False
    trial = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0
