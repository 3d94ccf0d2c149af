"""Killing a real `holon serve` again and again, under a mixed load.

Owns:  the loop: start, let it work, kill it at a random moment or at a named failpoint, or ask it
       to end; judge what is left, start again; and at the end of each home, let it finish and judge
       that. Callers and readers of the event streams stay through all its lives.

    python -m tests.crash.kill_loop --kills 2000 --seed 1 --jobs 2
    python -m tests.crash.kill_loop --kills 200 --terms        SIGTERM alone, while tasks start
    python -m tests.crash.kill_loop --kills 200 --clock        the wall clock is set all the while

Rule 1: every failpoint is the place of death at least once, as long as there are kills enough. A
        life without a failpoint is the command `holon serve` itself.
Rule 2: a host that ends otherwise than it was made to, or that says anything unforeseen on stderr,
        is a problem. A home with problems is kept; a clean one is removed.
Rule 3: after a restart every task of an earlier life has ended or has a living process, within a
        bounded time; no process of an interrupted call goes on.
Rule 4: when a home is done, no process that it started is left; one that is counts as a problem.
Rule 5: with --clock the wall clock of the hosts is set forwards and backwards at random moments, by
        seconds to months; the true time is back before a home is judged at its end. The first life
        has the true time: what was written before that under a clock in the past would rightly be
        taken for old once the clock is set ahead twice within a day (docs/decisions/0028).
Rule 6: a home serves a bounded number of kills, because judging it takes longer as it grows.
"""

import argparse
import contextlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.model.limits import COMMAND_STOP_GRACE_MS, SECOND_MS
from holon.ports.failpoint import Failpoint
from tests.crash.aftermath import problems_after_kill, problems_at_rest
from tests.crash.caller import AGENTS
from tests.crash.dead_copy import dead_copy
from tests.crash.followers import Follower
from tests.crash.hands_aftermath import (
    end_stragglers,
    interrupted_calls,
    open_tasks,
    order_problems,
    runaways,
    unowned,
)
from tests.crash.kill_report import KillReport
from tests.crash.load import Operator, Orderer, Sender, calm_down
from tests.crash.rest import IDLE_S_MAX, come_to_rest
from tests.crash.stage import Ledger, Stage
from tests.hostile.system_library import build_system_library, environ_with, set_wall_clock
from tests.support.mixed_model import mixed_model
from tests.support.serve_process import PRUNE_OFTEN
from tests.support.served_host import HostGoneError, ServedHost
from tests.support.wire_server.server_thread import wire_server_thread

KILLS_PER_HOME_MAX: Final = 40
DEATH_S_MAX: Final = 3.0  # an armed host that lives longer missed its failpoint
RARE_DEATH_S_MAX: Final = 15.0  # at a failpoint that was missed before: some are seldom reached
OWNED_S_MAX: Final = 5.0  # once a host is up, for every task to have an owner or an end
ENDED_S_MAX: Final = COMMAND_STOP_GRACE_MS / SECOND_MS + 3.0  # for what is being ended
LOOK_AGAIN_S: Final = 0.01
LIFE_S_MEAN: Final = 0.15
LIFE_S_MAX: Final = 0.6
STARTING_S_MAX: Final = 0.7
STARTING_SHARE: Final = 0.25
ARMED_SHARE: Final = 0.6
EXTRA_KILLS_MAX: Final = 20
PROBLEMS_SHOWN_COUNT_MAX: Final = 20
# What a host may say on stderr: that it ends, how its model failed it, and that it could not serve
# some requests, as on a slow machine. An answer of 500 would be a fault of its own.
MAY_BE_SAID: Final = re.compile(
    r"holon: ended; accepted work is durable"
    r"|\S+ WARNING (repeated: \d+ more of )?provider_failed: .*"
    r"|\S+ WARNING requests_refused: (?!.* with 500).*"
)


class Manner(StrEnum):
    """How a life of a host ends."""

    KILL = "kill"
    TERMINATE = "terminate"  # SIGTERM, and time to drain
    HURRY = "hurry"  # SIGTERM, and SIGKILL before it has drained


# In seconds: beyond timers, retries, the memory of keys, and what retention keeps.
CLOCK_JUMPS_S: Final = (0, 0, 90, -90, 8 * 3_600, -8 * 3_600, 100 * 86_400, -100 * 86_400)
CLOCK_STAYS_S_MEAN: Final = 0.4

CALLERS: Final = (Operator, Operator, Sender)
ORDERING: Final = (Operator, *[Orderer] * 4, Sender)  # an end in good order meets starting tasks
ENDS: Final[Mapping[Manner, int]] = {Manner.TERMINATE: 1}
MANNERS: Final[Mapping[Manner, int]] = {Manner.KILL: 8, Manner.TERMINATE: 1, Manner.HURRY: 1}


class ClockSetter(threading.Thread):
    """Sets the wall clock of the processes that look at these switches, until it is ended."""

    def __init__(self, switches: Path, chance: Random) -> None:
        super().__init__(daemon=True)
        self._switches = switches
        self._chance = chance
        self._ended = threading.Event()
        self.jumps = 0

    def run(self) -> None:
        """Set it again and again."""
        while not self._ended.wait(self._chance.expovariate(1 / CLOCK_STAYS_S_MEAN)):
            set_wall_clock(self._switches, by_s=self._chance.choice(CLOCK_JUMPS_S))
            self.jumps += 1

    @property
    def is_started(self) -> bool:
        """Whether the clock has been set since some moment."""
        return self.ident is not None

    def end(self) -> None:
        """Stop, and leave the true time."""
        self._ended.set()
        if self.is_started:
            self.join()
        set_wall_clock(self._switches, by_s=0)


class HomeUnderFire:
    """One home, its clients and readers, and a killer."""

    def __init__(
        self,
        home: Path,
        *,
        seed: int,
        model_url: str,
        manners: Mapping[Manner, int] = MANNERS,
        system_library: Path | None = None,
    ) -> None:
        self._home = home
        self._manners = manners
        self._environ = environ_of(home, model_url)
        self._clock: ClockSetter | None = None
        if system_library is not None:
            switches = home.with_name(f"{home.name}.switches")
            switches.mkdir()
            self._environ = environ_with(system_library, switches)
            self._clock = ClockSetter(switches, Random(f"{seed}:clock"))
        self._chance = Random(f"{seed}:killer")
        self._stage = Stage()
        self._ledger = Ledger()
        self._report = KillReport(seed=seed)
        self._errors = home.with_name(f"{home.name}.stderr")
        self._has_been_ready = False
        self._missed: set[Failpoint] = set()
        self._left_open: tuple[str, ...] = ()  # tasks the host of the moment found
        self._inherited: set[str] = set()  # those of them that are commands, over all lives
        self._callers = [
            kind(f"c{number}", self._stage, self._ledger, Random(f"{seed}:{number}"))
            for number, kind in enumerate(CALLERS if self._has_kills() else ORDERING)
        ]
        self._followers = [
            Follower(self._stage, agent=None, over_tcp=True),
            Follower(self._stage, agent=AGENTS[0], over_tcp=False),
        ]

    def run(self, kills: int) -> KillReport:
        """Kill the host this often (more, if a failpoint was missed), then let it finish."""
        points = deque(Failpoint)
        self._chance.shuffle(points)
        for thread in (*self._callers, *self._followers):
            thread.start()
        while self._goes_on(kills, points):
            self._one_life(self._next_point(points), points)
            if self._has_been_ready:
                self._note(problems_after_kill(self._home, self._ledger))
                if self._clock is not None and not self._clock.is_started:
                    self._clock.start()
        self._finish()
        return self._report

    def _goes_on(self, kills: int, points: "deque[Failpoint]") -> bool:
        done = self._report.kills if self._has_kills() else self._report.ends
        if done < kills:
            return True
        owes_points = points and self._has_kills() and kills >= len(Failpoint) / ARMED_SHARE
        return bool(owes_points) and done < kills + EXTRA_KILLS_MAX

    def _has_kills(self) -> bool:
        return Manner.KILL in self._manners

    def _next_point(self, points: "deque[Failpoint]") -> Failpoint | None:
        """Which failpoint to arm, if any; one that cannot be reached now waits its turn."""
        is_timed = not self._has_kills() or self._chance.random() >= ARMED_SHARE
        if is_timed or not points:
            return None
        if points[0] is Failpoint.RECOVERY_BETWEEN_AGENTS and not self._has_open_turn():
            points.rotate(-1)
        return points.popleft()

    def _has_open_turn(self) -> bool:
        if not self._has_been_ready:
            return False
        with dead_copy(self._home) as database, open_untouched(database) as connection:
            found = connection.execute("select 1 from turns where state = 'open' limit 1")
            return bool(found.fetchall())

    def _start(self, failpoints: str | None = None) -> ServedHost:
        left: dict[str, str | None] = {}
        if self._has_been_ready:
            with dead_copy(self._home) as database:
                left = open_tasks(database)
        self._left_open = tuple(left)
        self._inherited.update(task for task, run_id in left.items() if run_id is not None)
        pruning = failpoints is not None and Failpoint.RETENTION_BETWEEN_BATCHES in failpoints
        return ServedHost(
            self._home,
            environ=self._environ,
            failpoints=failpoints,
            options=(PRUNE_OFTEN,) if pruning else (),
            stderr=self._errors,
        )

    def _one_life(self, armed: Failpoint | None, points: "deque[Failpoint]") -> None:
        is_rare = armed is Failpoint.RECOVERY_BETWEEN_AGENTS or armed in self._missed
        visit = 1 if is_rare else self._chance.randrange(1, 4)
        host = self._start(f"{armed}=kill@{visit}" if armed else None)
        manner = self._drawn_manner(armed)
        try:
            place = self._await_death(host, armed)
            code = self._end(host, manner)
        finally:
            self._stage.set(None)
            host.kill()
        is_end = manner is Manner.TERMINATE
        self._report.kills, self._report.ends = (
            self._report.kills + (not is_end),
            self._report.ends + is_end,
        )
        self._report.died_at[place] += 1
        if armed is not None and place != armed:
            self._missed.add(armed)
            points.append(armed)
        if code not in _expected_codes(manner, place):
            self._note([f"the host ended {place} by {manner} with code {code}"])

    def _drawn_manner(self, armed: Failpoint | None) -> Manner:
        if armed is not None:
            return Manner.KILL
        return self._chance.choices(list(self._manners), list(self._manners.values()))[0]

    def _end(self, host: ServedHost, manner: Manner) -> int:
        if manner is Manner.TERMINATE:
            return host.terminate()
        if manner is Manner.HURRY:
            host.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                host.process.wait(self._chance.expovariate(1 / 0.02))
        return host.kill()

    def _await_death(self, host: ServedHost, armed: Failpoint | None) -> str:
        """Let the host live until it dies or its time has come; say where that was."""
        if armed is None and self._chance.random() < STARTING_SHARE:
            time.sleep(self._chance.uniform(0.0, STARTING_S_MAX))
            return "starting"
        try:
            host.wait_ready()
            self._has_been_ready = True
            cut_off = interrupted_calls(self._home)
            self._note(people(host))
            self._stage.set(host)
            self._note(self._unaccounted(host, cut_off))
        except HostGoneError:
            return armed.value if armed else "nowhere"
        life_s = min(LIFE_S_MAX, self._chance.expovariate(1 / LIFE_S_MEAN))
        if armed is not None:
            life_s = RARE_DEATH_S_MAX if armed in self._missed else DEATH_S_MAX
        try:
            host.process.wait(life_s)
        except subprocess.TimeoutExpired:
            return "missed" if armed else "running"
        return armed.value if armed else "nowhere"

    def _unaccounted(self, host: ServedHost, cut_off: Collection[str]) -> list[str]:
        """What an earlier life left to this host that neither ended nor has an owner in time.

        The calls that life was cut off in are those of the moment before anybody speaks to this
        host: a call that is interrupted since then has its command asked to end politely.
        """
        ready_at = time.monotonic()
        deadline = ready_at + OWNED_S_MAX
        while left := unowned(self._home, self._left_open):
            if host.process.poll() is not None:
                return []  # it was killed meanwhile
            if time.monotonic() > deadline:
                return [f"P9 task {task} has no owner {OWNED_S_MAX} s on" for task in left]
            time.sleep(LOOK_AGAIN_S)
        took_s = time.monotonic() - ready_at
        self._report.owned_s_max = max(self._report.owned_s_max, took_s)
        return runaways(self._home, cut_off) or lasting_runaways(self._home, host)

    def _finish(self) -> None:
        """Let everybody finish, see the host fall silent, and judge what it leaves."""
        if self._clock is not None:
            self._clock.end()
            self._report.counts["clock jumps"] += self._clock.jumps
        host = self._start()
        try:
            host.wait_ready()
            cut_off = interrupted_calls(self._home)
            self._note(people(host))
            self._stage.set(host)
            self._note(self._unaccounted(host, cut_off))
            self._fall_silent(host)
            if (code := host.terminate()) != 0:
                self._note([f"SIGTERM ended the host with code {code}"])
        except HostGoneError as gone:
            self._note([f"the last host did not hold: {gone}"])
        finally:
            for follower in self._followers:
                follower.end()
            self._stage.set(None)
            host.kill()
        self._note(end_stragglers(self._home))
        self._note(problems_at_rest(self._home, self._ledger))
        may_be_lost = {*self._manners} != {Manner.TERMINATE}
        self._note(order_problems(self._home, self._ledger, may_be_lost=may_be_lost))
        self._note(self._ledger.problems)
        for follower in self._followers:
            follower.join(IDLE_S_MAX)
            self._note(follower.judged(self._home))
        said = self._errors.read_text(encoding="utf-8").splitlines()
        self._note(line for line in said if not MAY_BE_SAID.fullmatch(line))
        self._report.count(self._home, self._ledger, self._followers)
        self._report.counts["tasks across lives"] += len(self._inherited)

    def _fall_silent(self, host: ServedHost) -> None:
        self._stage.close()
        for caller in self._callers:
            caller.join(IDLE_S_MAX)
        if any(caller.is_alive() for caller in self._callers):
            self._note(["a caller was never answered"])
        state = come_to_rest(host, is_calm=lambda: not calm_down(self._stage, self._home))
        if not state.is_idle:
            self._note([f"P7 the host never came to rest: {state}"])
        if state.rescue_count:
            self._note([f"P7 {state.rescue_count} rescues"])
        for follower in self._followers:
            follower.catch_up(self._home)

    def _note(self, problems: Iterable[str]) -> None:
        self._report.problems.extend(f"{problem} [{self._home}]" for problem in problems)


def lasting_runaways(home: Path, host: ServedHost) -> list[str]:
    """Processes nobody ends: a turn that was aborted just now asks its command politely."""
    deadline = time.monotonic() + ENDED_S_MAX
    while (found := runaways(home)) and host.process.poll() is None:
        if time.monotonic() > deadline:
            return found
        time.sleep(LOOK_AGAIN_S)
    return []


def people(host: ServedHost) -> Iterator[str]:
    """See that the agents are there: a host may have been killed before it had them."""
    for agent in AGENTS:
        reply = host.post(f"/control/agents/{agent}/create")
        if not reply.ok and reply.code != "agent_exists":
            yield f"{agent} cannot be made: {reply.body!r}"


def environ_of(home: Path, model_url: str) -> dict[str, str]:
    """Configure a home for a model on this machine, and return the environment of its hosts."""
    home.mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text(
        '[model]\ndefault = "beside/mixed"\n[providers.beside]\n'
        f'transport = "openai_chat_completions"\nbase_url = "{model_url}"\nauth.source = "none"\n',
        encoding="utf-8",
    )
    return {}


def _expected_codes(manner: Manner, place: str) -> tuple[int, ...]:
    # Before it listens for it, a SIGTERM simply ends a process: as good as a kill.
    early = (-signal.SIGTERM,) if place == "starting" else ()
    match manner:
        case Manner.KILL:
            return (-signal.SIGKILL,)
        case Manner.TERMINATE:
            return (0, *early)
        case Manner.HURRY:
            return (0, -signal.SIGKILL, *early)


def run_home(
    seed: int,
    kills: int,
    root: Path,
    manners: Mapping[Manner, int] = MANNERS,
    system_library: Path | None = None,
) -> KillReport:
    """Run one home of a loop in a folder of its own."""
    home = root / f"home-{seed}"
    with wire_server_thread(mixed_model(seed)) as model_url:
        report = HomeUnderFire(
            home, seed=seed, model_url=model_url, manners=manners, system_library=system_library
        ).run(kills)
    if not report.problems:
        shutil.rmtree(home)
        home.with_name(f"{home.name}.stderr").unlink(missing_ok=True)
        shutil.rmtree(home.with_name(f"{home.name}.switches"), ignore_errors=True)
    return report


def run_kill_loop(
    *,
    kills: int,
    seed: int,
    root: Path | None = None,
    jobs: int = 1,
    manners: Mapping[Manner, int] = MANNERS,
    sets_clock: bool = False,
    tell: Callable[[str], object] = lambda _: None,
) -> KillReport:
    """Kill hosts this often, spread over as many homes as that takes, and tell how far it is."""
    began = time.monotonic()
    folder = root or Path(tempfile.mkdtemp(prefix="holon-kills-"))
    home_count = -(-kills // KILLS_PER_HOME_MAX)
    shares = [kills // home_count + (n < kills % home_count) for n in range(home_count)]
    seeds = [seed * 10_000 + number for number in range(home_count)]
    whole = KillReport(seed=seed)
    library = build_system_library(folder) if sets_clock else None
    if sets_clock and library is None:
        whole.problems.append("no C compiler: the wall clock of a process cannot be set")
        return whole
    same = [folder] * home_count, [manners] * home_count, [library] * home_count
    with ProcessPoolExecutor(jobs) if jobs > 1 else contextlib.nullcontext() as pool:
        each = map if pool is None else pool.map
        for count, report in enumerate(each(run_home, seeds, shares, *same), start=1):
            whole.absorb(report)
            tell(f"{count} of {home_count} homes, {len(whole.problems)} problems so far")
            for problem in report.problems[:PROBLEMS_SHOWN_COUNT_MAX]:
                tell(f"  {problem}")
    whole.seconds = time.monotonic() - began
    if root is None and not whole.problems:
        shutil.rmtree(folder)
    return whole


def _tell(how_far: str) -> None:
    print(how_far, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Run a loop from the command line; 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="tests.crash.kill_loop")
    parser.add_argument("--kills", type=int, default=100, help="how often to kill a host")
    parser.add_argument("--seed", type=int, default=1, help="for load, model and killer")
    parser.add_argument("--jobs", type=int, default=1, help="homes at the same time")
    parser.add_argument(
        "--terms", action="store_true", help="end hosts by SIGTERM alone, while tasks start"
    )
    parser.add_argument(
        "--clock", action="store_true", help="set the wall clock of the hosts all the while"
    )
    asked = parser.parse_args(arguments)
    report = run_kill_loop(
        kills=asked.kills,
        seed=asked.seed,
        jobs=asked.jobs,
        manners=ENDS if asked.terms else MANNERS,
        sets_clock=asked.clock,
        tell=_tell,
    )
    print(report, *report.problems[1:PROBLEMS_SHOWN_COUNT_MAX], sep="\n  ")
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
