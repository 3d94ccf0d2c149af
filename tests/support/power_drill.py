"""Simulate many power cuts, and check what survives.

Owns:  the judgement of one crash state, and the drill over many.
Rule 1: a state is opened the way a host opens its home; nothing is repaired first.
Rule 2: the database must be sound, every invariant must hold, every acknowledged commit must exist,
        and the store must accept new commits.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from os import cpu_count
from pathlib import Path
from typing import Final

import apsw

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.connection import Synchronous
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.commits import Applied
from holon.model.errors import StoreError
from tests.support.builders import a_commit, an_agent, moment
from tests.support.database_oracle import commit_names
from tests.support.power_run import PowerRun, record_run
from tests.support.power_states import CrashState, draw_states

LOST: Final = "lost"
STATES_PER_RUN: Final = 500  # then another seed makes another history


@dataclass(slots=True)
class PowerReport:
    """What came of a number of power cuts."""

    state_count: int = 0
    lossy_count: int = 0  # states in which an acknowledged commit was missing
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"; first: {self.problems[0]}" if self.problems else ""
        return (
            f"power: {self.state_count} states, {self.lossy_count} lost acknowledged commits,"
            f" {len(self.problems)} problems{found}"
        )

    def add(self, other: "PowerReport") -> None:
        """Count another part of the same drill."""
        self.state_count += other.state_count
        self.lossy_count += other.lossy_count
        self.problems.extend(other.problems)


def judge_state(state: CrashState, owed: set[str]) -> Iterator[str]:
    """Yield everything that is wrong with the home after this power cut."""
    shm = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="holon-cut-", dir=shm if shm.is_dir() else None))
    try:
        path = database_path(home)
        path.parent.mkdir()
        for name, content in state.files.items():
            path.with_name(name).write_bytes(content)
        yield from _judge_home(home, owed)
    finally:
        shutil.rmtree(home)


def _judge_home(home: Path, owed: set[str]) -> Iterator[str]:
    path = database_path(home)
    try:
        asyncio.run(_start_and_end(home))
        report = check_database(path)
    except StoreError as error:
        yield f"does not start: {error}"
        return
    yield from (str(violation) for violation in report.violations)
    if lost := owed - _commits_in(path):
        yield f"{LOST} {len(lost)} commits, {min(lost)} among them"


async def _start_and_end(home: Path) -> None:
    store = open_store(home)
    try:
        commit = a_commit("after-power-cut", an_agent("after-power-cut"), at=moment())
        outcome = await store.apply(audited(commit))
        if outcome != Applied():
            raise StoreError(f"a new commit is refused: {outcome}")
    finally:
        await store.close()


def _commits_in(path: Path) -> set[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return commit_names(connection)
    finally:
        connection.close()


def judge_run(
    run: PowerRun, numbers: range, *, seed: int, moments: range | None = None
) -> PowerReport:
    """Cut the power of one recorded run once for each number, at any of the moments."""
    report = PowerReport()
    for state in draw_states(run.log, numbers, seed=seed, moments=moments):
        problems = list(judge_state(state, run.owed(state.moment)))
        report.state_count += 1
        report.lossy_count += any(problem.startswith(LOST) for problem in problems)
        where = f"seed {seed} state {state.number} at {state.moment}"
        report.problems.extend(f"{where}: {problem}" for problem in problems)
    return report


@cache
def recorded(seed: int, synchronous: Synchronous) -> PowerRun:
    """Return the run of a seed; recorded once per process."""
    return record_run(seed, synchronous=synchronous)


def cut_power(
    seed: int, numbers: range, *, synchronous: Synchronous = Synchronous.FULL
) -> PowerReport:
    """Judge these states of the run of a seed."""
    return judge_run(recorded(seed, synchronous), numbers, seed=seed)


def run_power_drill(states: int = 20_000, seed: int = 0) -> PowerReport:
    """Cut the power of many histories, on every core there is."""
    total = PowerReport()
    parts = [
        (seed + number, range(min(STATES_PER_RUN, states - begin)))
        for number, begin in enumerate(range(0, states, STATES_PER_RUN))
    ]
    with ProcessPoolExecutor(cpu_count()) as pool:
        for report in pool.map(cut_power, *zip(*parts, strict=True)):
            total.add(report)
    return total
