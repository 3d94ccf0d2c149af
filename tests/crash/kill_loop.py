"""Killing a real host again and again, under a mixed load.

Owns:  the loop: start, let it work, kill it at a random moment or at a named failpoint, judge what
       is left, start again; and at the end of each home, let it finish and judge that.

    python -m tests.crash.kill_loop --kills 2000 --seed 1 --jobs 2

Rule 1: every failpoint is the place of death at least once, as long as there are kills enough.
Rule 2: a host that ends otherwise than by being killed, or that says anything on stderr, is a
        problem. A home with problems is kept; a clean one is removed.
Rule 3: after a restart every task of an earlier life has ended or has a living process, within a
        bounded time; no process of an interrupted call goes on.
Rule 4: when a home is done, no process that it started is left; one that is counts as a problem.
Rule 5: a home serves a bounded number of kills, because judging it takes longer as it grows.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.home_lock import database_path
from holon.ports.failpoint import Failpoint
from holon.testing.host_client import QUIET_HORIZON_MS, HostClient
from holon.testing.host_lines import HostGoneError
from tests.crash.aftermath import problems_after_kill, problems_at_rest
from tests.crash.hands_aftermath import end_stragglers, open_tasks, runaways, unowned
from tests.crash.load import AGENTS, Client, Ledger, Stage, calm_down
from tests.crash.rest import IDLE_S_MAX, come_to_rest

KILLS_PER_HOME_MAX: Final = 40
CLIENTS_COUNT: Final = 3
DEATH_S_MAX: Final = 3.0  # an armed host that lives longer missed its failpoint
OWNED_S_MAX: Final = 5.0  # once a host is up, for every task to have an owner or an end
LOOK_AGAIN_S: Final = 0.01
LIFE_S_MEAN: Final = 0.08
LIFE_S_MAX: Final = 0.5
STARTING_SHARE: Final = 0.25
ARMED_SHARE: Final = 0.6
EXTRA_KILLS_MAX: Final = 20
PROBLEMS_SHOWN_COUNT_MAX: Final = 20


class Manner(StrEnum):
    """How the lives of a host end."""

    KILL = "kill"
    TERMINATE = "terminate"  # SIGTERM
    END_INPUT = "end_input"  # whoever drove the host is gone


@dataclass(slots=True)
class KillReport:
    """What came of a loop."""

    seed: int
    kills: int = 0
    killed_at: Counter[str] = field(default_factory=Counter)
    homes: int = 0
    acked: int = 0
    duplicates: int = 0
    refused: int = 0
    turns: int = 0
    resumes: int = 0
    commands: int = 0
    interrupted: int = 0
    tasks: int = 0
    tasks_across_lives: int = 0
    owned_s_max: float = 0.0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def unvisited(self) -> tuple[str, ...]:
        """Failpoints at which no host died."""
        return tuple(point.value for point in Failpoint if not self.killed_at[point.value])

    def __str__(self) -> str:
        found = f"{len(self.problems)} problems: {self.problems[0]}" if self.problems else "clean"
        at_points = sum(self.killed_at[point.value] for point in Failpoint)
        return (
            f"seed={self.seed} {self.kills} kills ({at_points} at failpoints) of {self.homes} homes"
            f" in {self.seconds:.0f} s: {self.acked} acknowledged, {self.duplicates} repeats,"
            f" {self.refused} refused, {self.turns} turns, {self.resumes} resumed,"
            f" {self.commands} commands ({self.interrupted} calls cut off), {self.tasks} tasks"
            f" ({self.tasks_across_lives} across lives, owned within {self.owned_s_max:.1f} s);"
            f" {found}"
        )

    def absorb(self, other: "KillReport") -> None:
        """Add the figures of another report to these."""
        self.kills += other.kills
        self.killed_at.update(other.killed_at)
        self.homes += other.homes
        self.acked += other.acked
        self.duplicates += other.duplicates
        self.refused += other.refused
        self.turns += other.turns
        self.resumes += other.resumes
        self.commands += other.commands
        self.interrupted += other.interrupted
        self.tasks += other.tasks
        self.tasks_across_lives += other.tasks_across_lives
        self.owned_s_max = max(self.owned_s_max, other.owned_s_max)
        self.problems.extend(other.problems)


class HomeUnderFire:
    """One home, its clients, and a killer."""

    def __init__(self, home: Path, *, seed: int, manner: Manner = Manner.KILL) -> None:
        self._home = home
        self._manner = manner
        self._seed = seed
        self._chance = Random(f"{seed}:killer")
        self._stage = Stage()
        self._ledger = Ledger()
        self._report = KillReport(seed=seed, homes=1)
        self._errors = home.with_name(f"{home.name}.stderr")
        self._has_been_ready = False
        self._left_open: tuple[str, ...] = ()  # tasks the host of the moment found
        self._inherited: set[str] = set()  # those of them that are commands, over all lives
        self._clients = [
            Client(f"c{number}", self._stage, self._ledger, Random(f"{seed}:{number}"))
            for number in range(CLIENTS_COUNT)
        ]

    def run(self, kills: int) -> KillReport:
        """Kill the host this often (more, if a failpoint was missed), then let it finish."""
        points = deque(Failpoint)
        self._chance.shuffle(points)
        for client in self._clients:
            client.start()
        while self._goes_on(kills, points):
            armed = self._next_point(points)
            self._one_life(armed, points)
            if self._has_been_ready:
                self._note(problems_after_kill(self._home, self._ledger))
        self._finish()
        return self._report

    def _goes_on(self, kills: int, points: "deque[Failpoint]") -> bool:
        if self._report.kills < kills:
            return True
        owes_points = (
            points and self._manner is Manner.KILL and kills >= len(Failpoint) / ARMED_SHARE
        )
        return bool(owes_points) and self._report.kills < kills + EXTRA_KILLS_MAX

    def _next_point(self, points: "deque[Failpoint]") -> Failpoint | None:
        """Which failpoint to arm, if any; one that cannot be reached now waits its turn."""
        is_timed = self._manner is not Manner.KILL or self._chance.random() >= ARMED_SHARE
        if is_timed or not points:
            return None
        if points[0] is Failpoint.RECOVERY_BETWEEN_AGENTS and not self._has_open_turn():
            points.rotate(-1)
        return points.popleft()

    def _has_open_turn(self) -> bool:
        if not self._has_been_ready:
            return False
        with open_untouched(database_path(self._home)) as connection:
            found = connection.execute("select 1 from turns where state = 'open' limit 1")
            return bool(found.fetchall())

    def _start(self, failpoints: str = "") -> HostClient:
        left = open_tasks(self._home) if self._has_been_ready else {}
        self._left_open = tuple(left)
        self._inherited.update(task for task, run_id in left.items() if run_id is not None)
        options = ("--agents", ",".join(AGENTS), "--seed", str(self._seed))
        return HostClient(self._home, options=options, failpoints=failpoints, stderr=self._errors)

    def _one_life(self, armed: Failpoint | None, points: "deque[Failpoint]") -> None:
        visit = 1 if armed is Failpoint.RECOVERY_BETWEEN_AGENTS else self._chance.randrange(1, 4)
        host = self._start(f"{armed}=kill@{visit}" if armed else "")
        try:
            place = self._await_death(host, armed)
            self._stage.set(None)
            code = self._end(host)
        finally:
            self._stage.set(None)
            host.kill()
        self._report.kills += 1
        self._report.killed_at[place] += 1
        if armed is not None and place != armed:
            points.append(armed)
        if code not in self._expected_codes(place):
            self._note([f"the host ended {place} with code {code}"])

    def _end(self, host: HostClient) -> int:
        match self._manner:
            case Manner.KILL:
                host.kill()
            case Manner.TERMINATE:
                host.terminate()
            case Manner.END_INPUT:
                host.end_input()
        return host.join()

    def _expected_codes(self, place: str) -> tuple[int, ...]:
        if self._manner is Manner.KILL:
            return (-signal.SIGKILL,)
        # Before it listens for it, a SIGTERM simply ends a process: as good as a kill.
        return (0, -signal.SIGTERM) if place == "starting" else (0,)

    def _await_death(self, host: HostClient, armed: Failpoint | None) -> str:
        """Let the host live until it dies or its time has come; say where that was."""
        if armed is None and self._chance.random() < STARTING_SHARE:
            time.sleep(self._chance.uniform(0.0, 0.6))
            return "starting"
        try:
            host.wait_ready()
            self._has_been_ready = True
            self._note(self._unaccounted(host))
            self._stage.set(host)
        except HostGoneError:
            return armed.value if armed else "nowhere"
        life_s = min(LIFE_S_MAX, self._chance.expovariate(1 / LIFE_S_MEAN))
        try:
            host.process.wait(DEATH_S_MAX if armed else life_s)
        except subprocess.TimeoutExpired:
            return "missed" if armed else "running"
        return armed.value if armed else "nowhere"

    def _unaccounted(self, host: HostClient) -> list[str]:
        """What an earlier life left to this host that neither ended nor has an owner in time."""
        deadline = time.monotonic() + OWNED_S_MAX
        while left := unowned(self._home, self._left_open):
            if host.process.poll() is not None:
                return []  # it was killed meanwhile
            if time.monotonic() > deadline:
                return [f"P9 task {task} has no owner {OWNED_S_MAX} s on" for task in left]
            time.sleep(LOOK_AGAIN_S)
        took_s = time.monotonic() - host.started_at
        self._report.owned_s_max = max(self._report.owned_s_max, took_s)
        return runaways(self._home)

    def _finish(self) -> None:
        """Let everybody finish, see the host fall silent, and judge what it leaves."""
        host = self._start()
        try:
            host.wait_ready()
            self._note(self._unaccounted(host))
            self._stage.set(host)
            self._stage.close()
            for client in self._clients:
                client.join(IDLE_S_MAX)
            if any(client.is_alive() for client in self._clients):
                self._note(["a client was never answered"])
            status = come_to_rest(
                host, self._home, is_calm=lambda: not calm_down(self._stage, self._home)
            )
            if not status.is_idle(horizon_ms=QUIET_HORIZON_MS):
                self._note([f"P7 the host never came to rest: {status}"])
            if status.rescue_count:
                self._note([f"P7 {status.rescue_count} rescues"])
            if (code := host.terminate()) != 0:
                self._note([f"SIGTERM ended the host with code {code}"])
        except HostGoneError as gone:
            self._note([f"the last host did not hold: {gone}"])
        finally:
            host.kill()
        self._note(end_stragglers(self._home))
        self._note(problems_at_rest(self._home, self._ledger))
        self._note(self._ledger.problems)
        self._note(self._errors.read_text(encoding="utf-8").splitlines())
        self._count()

    def _count(self) -> None:
        self._report.acked = len(self._ledger.acked)
        self._report.duplicates = self._ledger.duplicate_count
        self._report.refused = self._ledger.refusals.total()
        with open_untouched(database_path(self._home)) as connection:
            resumes = [int(str(n)) for (n,) in connection.execute("select resume_count from turns")]
            calls = connection.execute(
                "select state = 'interrupted', count(*) from tool_calls"
                " where name like 'ExecCommand%' group by 1"
            )
            by_state = {bool(cut_off): int(str(count)) for cut_off, count in calls}
            (tasks,) = connection.execute(
                "select count(*) from tasks where record ->> '$.detail.run_id' is not null"
            ).fetchall()[0]
        self._report.turns, self._report.resumes = len(resumes), sum(resumes)
        self._report.commands, self._report.interrupted = (
            sum(by_state.values()),
            by_state.get(True, 0),
        )
        self._report.tasks, self._report.tasks_across_lives = int(str(tasks)), len(self._inherited)

    def _note(self, problems: Iterable[str]) -> None:
        self._report.problems.extend(f"{problem} [{self._home}]" for problem in problems)


def run_home(seed: int, kills: int, root: Path) -> KillReport:
    """Run one home of a loop in a folder of its own."""
    home = root / f"home-{seed}"
    report = HomeUnderFire(home, seed=seed).run(kills)
    if not report.problems:
        shutil.rmtree(home)
        home.with_name(f"{home.name}.stderr").unlink(missing_ok=True)
    return report


def run_kill_loop(*, kills: int, seed: int, root: Path | None = None, jobs: int = 1) -> KillReport:
    """Kill hosts this often, spread over as many homes as that takes."""
    began = time.monotonic()
    folder = root or Path(tempfile.mkdtemp(prefix="holon-kills-"))
    home_count = -(-kills // KILLS_PER_HOME_MAX)
    shares = [kills // home_count + (n < kills % home_count) for n in range(home_count)]
    seeds = [seed * 10_000 + number for number in range(home_count)]
    whole = KillReport(seed=seed)
    roots = [folder] * home_count
    if jobs == 1:
        reports = list(map(run_home, seeds, shares, roots))
    else:
        with ProcessPoolExecutor(jobs) as pool:
            reports = list(pool.map(run_home, seeds, shares, roots))
    for report in reports:
        whole.absorb(report)
    whole.seconds = time.monotonic() - began
    if root is None and not whole.problems:
        shutil.rmtree(folder)
    return whole


def main(arguments: list[str]) -> int:
    """Run a loop from the command line; 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="tests.crash.kill_loop")
    parser.add_argument("--kills", type=int, default=100, help="how often to kill a host")
    parser.add_argument("--seed", type=int, default=1, help="for load, model and killer")
    parser.add_argument("--jobs", type=int, default=1, help="homes at the same time")
    asked = parser.parse_args(arguments)
    report = run_kill_loop(kills=asked.kills, seed=asked.seed, jobs=asked.jobs)
    print(report, *report.problems[1:PROBLEMS_SHOWN_COUNT_MAX], sep="\n  ")
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
