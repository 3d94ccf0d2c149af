"""Seeing a host come to rest, with everything its agents started.

Owns:  what counts as rest: nothing runs, nothing would begin by itself, no task is left running,
       and all of that is so twice in a row.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holon.testing.host_client import QUIET_HORIZON_MS, HostClient
from holon.testing.host_commands import HostStatus
from tests.crash.hands_aftermath import open_tasks

IDLE_S_MAX: Final = 25.0  # sooner than the backstop looks, so a lost wake-up shows


def come_to_rest(
    host: HostClient, home: Path, *, is_calm: Callable[[], bool] = lambda: True
) -> HostStatus:
    """Ask until the host is at rest, or nothing has moved for too long; return the last status."""
    deadline, visits = 0.0, dict[str, int]()
    while True:
        has_calmed = is_calm()
        # Before and after: a run may begin, and its end become news, between two looks.
        has_runs = _has_runs(home)
        status = host.wait_idle(wait_s=0.2)
        has_runs = _has_runs(home) or has_runs
        has_moved = status.visits != visits
        if has_moved:  # a slow machine is no lost wake-up
            deadline, visits = time.monotonic() + IDLE_S_MAX, status.visits
        is_done = has_calmed and not has_runs and not has_moved
        if time.monotonic() > deadline or (is_done and status.is_idle(horizon_ms=QUIET_HORIZON_MS)):
            return status


def _has_runs(home: Path) -> bool:
    return any(run_id is not None for run_id in open_tasks(home).values())
