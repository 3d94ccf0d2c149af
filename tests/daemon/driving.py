"""A home with real runtimes on it, driven as a person would: by the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holon.adapters.exec.process_table import is_living
from holon.adapters.system.run_files import RunFiles
from holon.client.control_client import ControlClient
from holon.client.endpoint import UnixEndpoint

PATIENCE_S = 60
SCRIPT = """
rules:
  - when: hold the line
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "echo up > here; read line < gate"}}]
      - text: Done.
  - when: fail
    rounds:
      - fail: auth_rejected
  - rounds:
      - text: Hello yourself.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A home, and what surrounds it."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "h"

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.home)

    @property
    def client(self) -> ControlClient:
        return ControlClient(UnixEndpoint(self.files.socket))

    def environ(self) -> dict[str, str]:
        script = self.folder / "script.yaml"
        script.write_text(SCRIPT, encoding="utf-8")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "HOLON_HOME": str(self.home),
            "HOLON_MODEL": f"scripted/{script}",
            **self.extra,
        }

    def holon(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "holon", *arguments],
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def told(self, *arguments: str) -> dict[str, Any]:
        """Run a command for its JSON."""
        done = self.holon(*arguments, "--json")
        assert done.stdout, done.stderr
        return dict(json.loads(done.stdout))

    @contextmanager
    def serving(self, *arguments: str, port: str | None = "0") -> Iterator[subprocess.Popen[str]]:
        """A runtime in the foreground, from when it is ready; ended hard if it still runs."""
        where = () if port is None else ("--port", port)
        with subprocess.Popen(
            [sys.executable, "-m", "holon", "serve", *where, "--json", *arguments],
            env=self.environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                assert json.loads(process.stdout.readline())["ok"]
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def end_whatever_runs(self) -> None:
        """Leave no process of the test behind."""
        record = self.files.read_record()
        identity = None if record is None else record.identity()
        if identity is not None and is_living(identity):
            os.kill(identity.pid, signal.SIGKILL)
        gate = self.folder / "gate"
        if gate.exists():  # a command may still wait for it
            os.close(os.open(gate, os.O_RDWR | os.O_NONBLOCK))


def failure(text: str, at: str = "2026-01-01T00:00:00Z", phase: str = "startup") -> bytes:
    """A failure as it is written down."""
    return json.dumps({"occurred_at": at, "summary": text, "phase": phase}).encode()


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something another process does that nobody can be told of."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
