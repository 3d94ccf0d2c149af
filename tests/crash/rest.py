"""Seeing a host come to rest, with everything its agents started.

Owns:  what counts as rest: nothing runs, nothing would begin by itself, no task is left running,
       and all of that is so twice in a row. It is read from the rows, as anybody could, and from
       the figures the host shows.
"""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.reads import SqliteReads
from holon.adapters.system.clock import SystemClock
from tests.crash.hands_aftermath import open_tasks
from tests.support.served_host import ServedHost

IDLE_S_MAX: Final = 25.0  # sooner than the backstop looks, so a lost wake-up shows
QUIET_HORIZON_MS: Final = 600_000
_POLL_S: Final = 0.03
_FIGURE: Final = re.compile(rb"^(holon_\w+) ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class HostState:
    """Whether anything is left to do."""

    overdue: tuple[str, ...]
    next_due_in_ms: int | None
    restless: tuple[str, ...]
    open_turns: tuple[str, ...]
    running_count: int
    rescue_count: int
    log_seq: int

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, waits to run, or comes due before long."""
        busy = self.overdue or self.restless or self.open_turns or self.running_count
        due = self.next_due_in_ms is not None and self.next_due_in_ms <= QUIET_HORIZON_MS
        return not busy and not due


def state_of(host: ServedHost) -> HostState:
    """Look at a host. What may start something is read before what it would start."""
    figures = dict(_FIGURE.findall(host.get("/metrics").body))
    return asyncio.run(_state(host.home, figures))


async def _state(home: Path, figures: dict[bytes, bytes]) -> HostState:
    with open_untouched(database_path(home)) as connection:
        reads, now = SqliteReads(connection), SystemClock().now()
        due_at = await reads.wake.next_due_at(after=now)
        return HostState(
            overdue=(
                *(due.timer.id for due in await reads.wake.due_timers(now, limit=1)),
                *(wait.id for wait in await reads.wake.due_waits(now, limit=1)),
            ),
            next_due_in_ms=None if due_at is None else int((due_at - now).total_seconds() * 1_000),
            restless=tuple(await reads.agents.restless(now=now)),
            open_turns=tuple(await reads.turns.agents_with_open_turns()),
            running_count=int(float(figures[b"holon_lanes_running"])),
            rescue_count=int(float(figures[b"holon_rescues_total"])),
            log_seq=await reads.events.last_log_seq(),
        )


def come_to_rest(
    host: ServedHost, *, is_calm: Callable[[], bool] = lambda: True, wait_s: float = IDLE_S_MAX
) -> HostState:
    """Look until the host is at rest, or nothing has moved for too long; return the last look."""
    deadline, log_seq = 0.0, -1
    while True:
        has_calmed = is_calm()
        # Before and after: a run may begin, and its end become news, between two looks.
        has_runs = _has_runs(host.home)
        state = state_of(host)
        has_runs = _has_runs(host.home) or has_runs
        has_moved = state.log_seq != log_seq
        if has_moved:  # a slow machine is no lost wake-up
            deadline, log_seq = time.monotonic() + wait_s, state.log_seq
        is_done = has_calmed and not has_runs and not has_moved
        if time.monotonic() > deadline or (is_done and state.is_idle):
            return state
        time.sleep(_POLL_S)


def _has_runs(home: Path) -> bool:
    return any(run_id is not None for run_id in open_tasks(database_path(home)).values())
