"""Whether a process was started, however indirectly, by an agent.

Owns:  reading a process's line of parents off /proc.
Rule 1: every command of an agent lives under a supervisor, and every supervisor is a fork of a fork
        server; what an agent's command starts, and leaves to itself, stays below one of them.
Rule 2: a process that cannot be looked at any more counts as started by an agent: whoever asks
        wants to know whether it may be trusted.
"""

from pathlib import Path
from typing import Final

from holon.adapters.exec.process_table import PROC, facts_of

_MARK: Final = b"holon.adapters.exec.fork_server"
_GENERATIONS_COUNT_MAX: Final = 256
_INIT: Final = 1


def runs_for_an_agent(pid: int) -> bool:
    """Whether a fork server, of whichever runtime, is among the process's parents."""
    for _ in range(_GENERATIONS_COUNT_MAX):
        if pid <= _INIT:
            return False
        facts = facts_of(pid)
        if facts is None or _is_fork_server(PROC / str(pid) / "cmdline"):
            return True
        pid = facts.parent
    return True


def _is_fork_server(cmdline: Path) -> bool:
    try:
        return _MARK in cmdline.read_bytes()
    except OSError:
        return True
