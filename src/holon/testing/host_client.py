"""The other end of a host process: starts it, asks it, kills it.

Owns:  one host process as a person or a drill holds it. Threads may share a client.
Rule 1: a process is ended by its own id alone; it leads a process group of its own. What it started
        is not of that group and stays: whoever drives a host looks after that.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from holon.testing.host_commands import HostStatus, Status
from holon.testing.host_lines import ANSWER_S_MAX, HostLines

QUIET_HORIZON_MS: Final = 600_000
MARKER: Final = "LC_HOLON_HOME"  # a name that passes down to commands and their supervisors
_POLL_S: Final = 0.02


class HostClient(HostLines):
    """A host process from its start to its end."""

    def __init__(
        self,
        home: Path,
        *,
        options: Sequence[str] = (),
        failpoints: str = "",
        launcher: Sequence[str] = (),
        stderr: Path | None = None,
    ) -> None:
        """Start a host on `home`; `launcher` is put in front of its command line.

        Whatever the host starts, however it leaves, carries the marker of its home (`MARKER`).
        """
        command = [*launcher, sys.executable, "-m", "holon.testing.host_process"]
        self.started_at = time.monotonic()
        with (stderr or Path(os.devnull)).open("ab") as errors:
            process = subprocess.Popen(
                [*command, "--home", str(home), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "HOLON_FAILPOINTS": failpoints, MARKER: str(home)},
                start_new_session=True,
            )
        super().__init__(process)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    def wait_ready(self, *, wait_s: float = ANSWER_S_MAX) -> None:
        """Return once the host has recovered and takes commands."""
        self.wait_note(lambda note: note.note == "ready", wait_s=wait_s)

    def status(self) -> HostStatus:
        """What the host has left to do."""
        return msgspec.convert(self.ask(Status(id=0)).result, type=HostStatus)

    def wait_idle(self, *, wait_s: float, horizon_ms: int = QUIET_HORIZON_MS) -> HostStatus:
        """Ask until the host has nothing left to do; returns the last status either way."""
        deadline = time.monotonic() + wait_s
        while True:
            status = self.status()
            if status.is_idle(horizon_ms=horizon_ms) or time.monotonic() > deadline:
                return status
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """End the process and its group at once."""
        with contextlib.suppress(ProcessLookupError):  # it was faster
            os.killpg(self.process.pid, signal.SIGKILL)
        self.join()

    def terminate(self) -> int:
        """Ask the process to end in good order; returns its exit code."""
        self.process.terminate()
        return self.join()

    def join(self, *, wait_s: float = ANSWER_S_MAX) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(timeout=wait_s)
        self.close(wait_s=wait_s)
        return code
