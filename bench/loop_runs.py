"""Runs of `holon run` and of the bare loop, as processes of their own against the same server.

Owns:  the server's life, a fresh home for each run, and what is told of a run: how long it took,
       when its requests were whole, how much memory it had at most.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_CONFIG: Final = """\
[model]
default = "bench/m"
[providers.bench]
transport = "openai_chat_completions"
base_url = "http://127.0.0.1:{port}/{name}/{rounds}"
auth = {{ source = "none" }}
"""
# A process that is spawned begins with the memory peak of its parent, so the parent is a small one.
_WEIGHED: Final = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
print(used.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What is known of one run."""

    took_s: float
    rounds_s: list[float]  # from one request to the next
    peak_mb: float = 0.0


class LoopRuns:
    """Makes runs; each has a name, a folder and a count on the server of its own."""

    def __init__(self, port: int, folder: Path) -> None:
        self._port = port
        self._folder = folder
        self._count = 0
        self._body = folder / "first.json"

    def warm_up(self) -> None:
        """Run once, and keep its first request for the bare loop to send as well."""
        self.holon(rounds=1)
        self._body.write_bytes(self._told("first"))
        self.bare(rounds=1)

    def holon(self, *, rounds: int, weighed: bool = False) -> Ran:
        """Run `holon run` in a fresh home."""
        home = self._next_folder()
        settings = _CONFIG.format(port=self._port, name=self._name, rounds=rounds)
        (home / "config.toml").write_text(settings, encoding="utf-8")
        program = [sys.executable, "-m", "holon", "run", "Work.", "--home", str(home)]
        small = [sys.executable, "-S", "-c", _WEIGHED] if weighed else []
        return self._timed([*small, *program], weighed=weighed)

    def bare(self, *, rounds: int) -> Ran:
        """Run the bare loop."""
        folder = self._next_folder()
        path = f"/{self._name}/{rounds}/chat/completions"
        program = [sys.executable, str(_FOLDER / "bare_loop.py"), str(self._port), path]
        return self._timed([*program, str(self._body), str(folder)])

    @property
    def _name(self) -> str:
        return f"run{self._count}"

    def _next_folder(self) -> Path:
        self._count += 1
        folder = self._folder / self._name
        folder.mkdir(mode=0o700)
        return folder

    def _timed(self, program: list[str], *, weighed: bool = False) -> Ran:
        began_s = time.perf_counter()
        done = subprocess.run(
            program, env=quiet_environment(), capture_output=True, text=True, check=False
        )
        took_s = time.perf_counter() - began_s
        assert (done.returncode, done.stdout) == (0, "Done.\n"), (done.stdout, done.stderr)
        times_ns: list[int] = json.loads(self._told("times"))
        return Ran(
            took_s=took_s,
            rounds_s=[(after - before) / 1e9 for before, after in pairwise(times_ns)],
            peak_mb=int(done.stderr.split()[-1]) * 1024 / 1e6 if weighed else 0.0,
        )

    def _told(self, what: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        try:
            connection.request("GET", f"/{self._name}/{what}")
            return connection.getresponse().read()
        finally:
            connection.close()


def quiet_environment() -> dict[str, str]:
    """Return an environment in which no setting of whoever runs the bench counts."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@contextmanager
def loop_runs() -> Iterator[LoopRuns]:
    """Serve, warm up, and hand out what makes runs."""
    program = [sys.executable, str(_FOLDER / "loop_server.py")]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryDirectory(prefix="holon-bench-") as folder,
        subprocess.Popen(program, text=True, stdin=pipe, stdout=pipe) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            runs = LoopRuns(int(server.stdout.readline()), Path(folder))
            runs.warm_up()
            yield runs
        finally:
            server.stdin.close()  # it ends by itself then
