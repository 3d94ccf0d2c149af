"""`holon serve` as a process of its own, and what the system says of it.

Owns:  its life in a given home, with the loop server as its model; its processor time and memory.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.http_line import HttpLine
from bench.loop_runs import quiet_environment

_FOLDER: Final = Path(__file__).parent
_CONFIG: Final = """\
[model]
default = "bench/m"
[providers.bench]
transport = "openai_chat_completions"
base_url = "http://127.0.0.1:{port}/run/0"
auth = {{ source = "none" }}
"""
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_AFTER_NAME_USER_TIME: Final = 11  # fields of /proc/PID/stat, from the one after the name


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A service that runs."""

    pid: int
    port: int
    token: str
    home: Path
    model_port: int = 0

    def line(self) -> HttpLine:
        """A connection of the operator."""
        return HttpLine(self.port, {"authorization": f"Bearer {self.token}"})

    def cpu_s(self) -> float:
        """How much processor time it has used, in and out of the kernel."""
        text = Path(f"/proc/{self.pid}/stat").read_text(encoding="latin-1")
        fields = text.rpartition(")")[2].split()
        used = fields[_AFTER_NAME_USER_TIME : _AFTER_NAME_USER_TIME + 2]
        return sum(int(ticks) for ticks in used) / _TICKS_PER_S

    def rss_kb(self) -> int:
        """How much memory it has in use, in thousands of bytes."""
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="latin-1")
        (kib,) = (line.split()[1] for line in text.splitlines() if line.startswith("VmRSS"))
        return int(kib) * 1024 // 1000


@contextmanager
def process(program: list[str]) -> Iterator[tuple[int, str]]:
    """Start a program that says one line once it is ready; it ends when its input does."""
    pipe = subprocess.PIPE
    environ = quiet_environment()
    with subprocess.Popen(program, text=True, stdin=pipe, stdout=pipe, env=environ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        try:
            yield started.pid, started.stdout.readline()
        finally:
            started.stdin.close()
            started.terminate()


@contextmanager
def served(home: Path) -> Iterator[Served]:
    """Serve a home, with a model that answers at once."""
    with process([sys.executable, str(_FOLDER / "loop_server.py")]) as (_, said):
        model_port = int(said)
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "config.toml").write_text(_CONFIG.format(port=model_port), encoding="utf-8")
        program = [sys.executable, "-m", "holon", "serve", "--home", str(home)]
        with process([*program, "--port", "0", "--json"]) as (pid, announced):
            facts = json.loads(announced)
            yield Served(
                pid=pid,
                port=int(facts["http_addr"].rpartition(":")[2]),
                token=(home / "run" / "token").read_text(encoding="ascii").strip(),
                home=home,
                model_port=model_port,
            )
