"""Half an hour of mixed work on a real `holon serve`, and whether anything of it keeps growing.

Owns:  the load (prompts, webhooks, trigger deliveries, timers, work items, tasks, readers of state
       and a follower of all events), the samples (memory, open files, threads, database, log) and
       the verdict.

    python -m tests.drills.soak --minutes 30

Rule 1: growth is judged over the second half of the run, when caches and the database are full: the
        median of the slopes between all pairs of samples (Theil-Sen) has to be 0 within what the
        samples scatter.
Rule 2: the rate of requests is bounded, so that the machine keeps up and the queue stays short: a
        queue that grows is work left over and not a leak. Its length is a figure as well.
"""

import argparse
import contextlib
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Final

import apsw

from holon.adapters.sqlite.database.home_lock import database_path
from holon.model.limits import MIB
from holon.model.values import JsonValue
from holon.wire.server_sent_events import SseParser
from tests.crash.kill_loop import environ_of
from tests.support.mixed_model import mixed_model
from tests.support.served_host import HostGoneError, ServedHost
from tests.support.wire_server.server_thread import wire_server_thread

CALLERS_COUNT: Final = 4
REQUESTS_PER_S: Final = 5.0  # of each caller
SAMPLE_S: Final = 5.0
# What a run may grow by in a minute and still count as flat: less than a day adds to its start.
RSS_KB_PER_MINUTE_MAX: Final = 60.0
OF_CAP_MAX: Final = 1.10
LOG_MIB_MAX: Final = 72.0
TABLES_SHOWN_COUNT: Final = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """The service at one moment."""

    minute: float
    rss_kb: float
    files: float
    threads: float
    database_kb: float
    log_kb: float


def main(arguments: list[str]) -> int:
    """Run it; 0 when nothing grew."""
    parser = argparse.ArgumentParser(prog="tests.drills.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--agents", type=int, default=60, help="how many agents share the work")
    parser.add_argument("--cap-mib", type=int, default=64, help="how large the database may grow")
    parser.add_argument("--seed", type=int, default=1, help="for load and model")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="holon-soak-") as folder:
        home = Path(folder) / "home"
        with wire_server_thread(mixed_model(chosen.seed)) as model_url:
            environ = {
                **environ_of(home, model_url),
                "HOLON_RETENTION_BYTES_MAX": str(chosen.cap_mib * MIB),
            }
            host = ServedHost(home, environ=environ, stderr=Path(folder) / "stderr")
            try:
                host.wait_ready()
                load = Load(host, agents_count=chosen.agents, seed=chosen.seed)
                samples = list(load.run(minutes=chosen.minutes))
                code = host.terminate()
            finally:
                host.kill()
        print(f"{load.requests_count} requests, {load.refused_count} refused; ended with {code}")
        for line in largest_tables(home):
            print(f"  {line}")
        problems = judged(samples, cap_kb=chosen.cap_mib * MIB / 1_000)
    problems += [] if code == 0 else [f"the service ended with code {code}"]
    print(*problems, "flat" if not problems else "GREW", sep="\n")
    return int(bool(problems))


class Load:
    """Callers that never stop asking, at a bounded rate, until the time is over."""

    def __init__(self, host: ServedHost, *, agents_count: int, seed: int) -> None:
        self._host = host
        self._agents = [f"agent-{number}" for number in range(agents_count)]
        self._seed = seed
        self._is_over = threading.Event()
        self.requests_count = 0
        self.refused_count = 0

    def run(self, *, minutes: float) -> Iterator[Sample]:
        """Work, and give a sample every few seconds."""
        for agent in self._agents:
            self._host.post(f"/control/agents/{agent}/create")
        threads = [
            *(threading.Thread(target=self._call, args=(n,)) for n in range(CALLERS_COUNT)),
            threading.Thread(target=self._follow),
        ]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        try:
            for number in itertools.count(1):
                time.sleep(max(0.0, began + number * SAMPLE_S - time.monotonic()))
                sample = sampled(self._host, minute=(time.monotonic() - began) / 60)
                if number % 12 == 0:
                    print(told(sample), file=sys.stderr, flush=True)
                yield sample
                if sample.minute >= minutes:
                    break
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()

    def _call(self, number: int) -> None:
        chance = Random(f"{self._seed}:{number}")
        for count in itertools.count():
            if self._is_over.wait(chance.expovariate(REQUESTS_PER_S)):
                return
            self.requests_count += 1
            self._ask_for_something(chance, f"{number}-{count}")

    def _ask_for_something(self, chance: Random, name: str) -> None:
        agent = f"/control/agents/{chance.choice(self._agents)}"
        dice = chance.random()
        if dice < 0.40:
            self._post(f"{agent}/prompt", {"text": f"prompt {name} " + "and more " * 40})
        elif dice < 0.60:
            plain = agent.removeprefix("/control/agents/")
            self._post(f"/webhooks/generic/{plain}", {"event": name})
        elif dice < 0.68:
            self._post(f"{agent}/wake", {"reason": "changed", "source": "ci"})
        elif dice < 0.74:
            self._post(f"{agent}/timers", {"duration_ms": chance.randrange(1, 900), "summary": "t"})
        elif dice < 0.80:
            cmd = f"echo {name}; sleep {chance.choice((0, 0.2, 1))}"
            self._post(f"{agent}/tasks", {"summary": name, "cmd": cmd})
        elif dice < 0.86:
            made = self._host.post(f"{agent}/work-items", {"objective": f"work {name}"})
            if made.ok:
                self._post(f"{agent}/work-items/{made.at('work_item', 'id')}/complete", None)
        else:
            look = chance.choice(("status", "state", "transcript", "tasks", "briefs"))
            path = agent.replace("/control", "")
            self._host.get(f"{path}/{look}")

    def _post(self, path: str, body: JsonValue) -> None:
        self.refused_count += not self._host.post(path, body).ok

    def _follow(self) -> None:
        last_id = 0
        while not self._is_over.is_set():
            with (
                contextlib.suppress(HostGoneError, TimeoutError),
                self._host.stream("/events/stream", last_id=last_id, wait_s=30) as answer,
            ):
                parser = SseParser(bare_ids=True)
                for piece in answer:
                    for event in parser.feed(piece):
                        last_id = int(event.id) if event.id else last_id
                    if self._is_over.is_set():
                        break


def sampled(host: ServedHost, *, minute: float) -> Sample:
    """Look at the process and its files."""
    process, database = Path(f"/proc/{host.pid}"), database_path(host.home)
    status = dict(
        line.split(":", 1) for line in (process / "status").read_text("latin-1").splitlines()
    )
    log = database.with_name(f"{database.name}-wal")
    return Sample(
        minute=minute,
        rss_kb=int(status["VmRSS"].split()[0]) * 1.024,
        files=len(list((process / "fd").iterdir())),
        threads=int(status["Threads"]),
        database_kb=database.stat().st_size / 1_000,
        log_kb=log.stat().st_size / 1_000 if log.exists() else 0.0,
    )


def told(sample: Sample) -> str:
    """One line about a moment."""
    return "  ".join(f"{field.name} {getattr(sample, field.name):.1f}" for field in fields(sample))


def judged(samples: Sequence[Sample], *, cap_kb: float) -> list[str]:
    """What grew, and what was too large."""
    half = samples[len(samples) // 2 :]
    problems = []
    for name, per_minute_max in (
        ("rss_kb", RSS_KB_PER_MINUTE_MAX),
        ("files", 0.1),
        ("threads", 0.1),
    ):
        slope, low, high = theil_sen([(each.minute, getattr(each, name)) for each in half])
        print(f"{name}: {slope:+.2f} a minute (between {low:+.2f} and {high:+.2f})")
        if low > per_minute_max:
            problems.append(f"{name} grew by {slope:.2f} a minute")
    largest = max(each.database_kb for each in half) / cap_kb
    log_mib = max(each.log_kb for each in half) * 1_000 / MIB
    print(f"database: {largest:.2f} of its cap at most; its log: {log_mib:.1f} MiB at most")
    if largest > OF_CAP_MAX:
        problems.append(f"the database grew to {largest:.2f} of its cap")
    if log_mib > LOG_MIB_MAX:
        problems.append(f"the log of the database grew to {log_mib:.0f} MiB")
    return problems


def theil_sen(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The median slope between all pairs of points, and where the middle 95 % of a normal
    scatter of such a median lies (Sen's interval, with Kendall's variance)."""
    slopes = sorted(
        (y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.combinations(points, 2)
    )
    count, pairs = len(points), len(slopes)
    spread = 1.96 * (count * (count - 1) * (2 * count + 5) / 18) ** 0.5
    low = slopes[max(0, round((pairs - spread) / 2))]
    high = slopes[min(pairs - 1, round((pairs + spread) / 2))]
    return statistics.median(slopes), low, high


def largest_tables(home: Path) -> list[str]:
    """Where the bytes of the database are."""
    connection = apsw.Connection(str(database_path(home)), flags=apsw.SQLITE_OPEN_READONLY)
    with contextlib.closing(connection):
        try:
            rows = connection.execute(
                "select name, sum(pgsize) s from dbstat group by name order by s desc limit ?",
                (TABLES_SHOWN_COUNT,),
            )
            return [f"{name}: {int(size) / 1_000:,.0f} kB" for name, size in rows]
        except apsw.SQLError:  # built without dbstat
            return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
