"""Deliveries to triggers over HTTP: how many there may be, and how long one takes under load.

Owns:  two measurements. As many deliveries as two servers take (bench/trigger_servers), in turns
       within one run. And a minute of them at a fixed rate against `holon serve`, some with a wrong
       secret: each is timed from the moment it was due, so that a server that falls behind is not
       spared. Whoever is woken has a turn with a model that answers at once. After a stall of the
       machine all that was due comes at once, more than the service takes in one burst: whoever is
       put off (429) comes again, as a sender would, and its clock goes on.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw

from bench.hosting import temporary_home
from bench.http_line import HttpLine
from bench.measure import Measurement, median
from bench.prompt_load import create
from bench.served import Served, process, served
from bench.wake_latency import trigger_path
from holon.adapters.sqlite.database.connection import open_reader
from holon.adapters.sqlite.database.home_lock import database_path

CALLERS_COUNT: Final = 64
SLICES_COUNT: Final = 8  # of each; the first one warms up
SLICE_S: Final = 2.0
SHARE_MIN: Final = 60
AGENTS_COUNT: Final = 400
PER_SECOND_COUNT: Final = 400
LINES_COUNT: Final = 200
BAD_EVERY: Final = 20
LOAD_S: Final = 60
TOO_MANY: Final = 429
COMES_AGAIN_S: Final = 1.0
COMES_AGAIN_COUNT_MAX: Final = 10
P99_MS_MAX: Final = 250
QUIET_LOOKS_COUNT_MAX: Final = 240
BODY: Final = {"what": "something changed", "where": "a place outside", "number": 42}
_LEFT: Final = """
select
    (select count(*) from wake_hints),
    (select count(*) from messages where state in ('queued', 'claimed')),
    (select sum(delivery_count) from external_triggers)
"""


async def run() -> list[Measurement]:
    """Measure the most, then a fixed rate."""
    return [await _share(), *await _at_a_rate()]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Server:
    service: Served
    paths: list[str]

    async def deliver(self) -> tuple[float, float]:
        """Deliver for a while; returns how many a second, and what each cost the server."""
        until, counts = time.perf_counter() + SLICE_S, Counter[int]()

        async def call(caller: int) -> None:
            async with HttpLine(self.service.port) as line:
                path = self.paths[caller % len(self.paths)]
                while time.perf_counter() < until:
                    counts[(await line.post(path, BODY)).status] += 1

        began, cpu_s = time.perf_counter(), self.service.cpu_s()
        await asyncio.gather(*(call(caller) for caller in range(CALLERS_COUNT)))
        took = time.perf_counter() - began
        assert set(counts) == {200}, counts
        return counts[200] / took, 1_000 * (self.service.cpu_s() - cpu_s) / counts[200]


async def _share() -> Measurement:
    with temporary_home() as ours, temporary_home() as theirs:
        program = [sys.executable, "-m", "bench.trigger_servers"]
        with (
            process([*program, "holon", str(ours)]) as holon,
            process([*program, "bare", str(theirs)]) as bare,
        ):
            both = _server(*holon, home=ours), _server(*bare, home=theirs)
            slices = [[await each.deliver() for each in both] for _ in range(SLICES_COUNT)][1:]
    shares = [100 * by_holon[0] / by_bare[0] for by_holon, by_bare in slices]
    return Measurement(
        name=f"deliveries to triggers, {CALLERS_COUNT} callers, share of a bare Starlette endpoint",
        measured=median(shares),
        target=SHARE_MIN,
        at_least=True,
        unit=" %",
        detail=" beside ".join(
            f"{median([each[which][0] for each in slices]):,.0f}/s at"
            f" {median([each[which][1] for each in slices]):.2f} ms of processor time"
            for which in (0, 1)
        ),
    )


def _server(pid: int, said: str, *, home: Path) -> _Server:
    told = json.loads(said)
    service = Served(pid=pid, port=told["port"], token="", home=home)
    return _Server(service=service, paths=told["paths"])


@dataclass(kw_only=True, slots=True)
class _Minute:
    """What came of deliveries at a fixed rate."""

    free: asyncio.LifoQueue[HttpLine]
    waits_ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    put_off_count: int = 0

    async def deliver(self, path: str, due: float) -> None:
        """Deliver on a connection nobody uses, and note how long after its moment it was over."""
        line = await self.free.get()
        answer = await line.post(path, BODY)
        for _ in range(COMES_AGAIN_COUNT_MAX):
            if answer.status != TOO_MANY:
                break
            self.put_off_count += 1
            await asyncio.sleep(COMES_AGAIN_S)
            answer = await line.post(path, BODY)
        self.waits_ms.append(1_000 * (time.perf_counter() - due))
        self.statuses[answer.status] += 1
        self.free.put_nowait(line)


async def _at_a_rate() -> list[Measurement]:
    with temporary_home() as home, served(home) as service:
        await create(service, range(AGENTS_COUNT))
        async with service.line() as line:
            paths = [await trigger_path(line, f"agent-{n}") for n in range(AGENTS_COUNT)]
        async with AsyncExitStack() as lines:
            free = asyncio.LifoQueue[HttpLine]()
            for _ in range(LINES_COUNT):
                line = await lines.enter_async_context(HttpLine(service.port))
                await line.get("/")  # whoever stays silent is let go for others
                free.put_nowait(line)
            minute = _Minute(free=free)
            cpu_s = service.cpu_s()
            await _deliver_all(minute, paths)
            cpu_s = service.cpu_s() - cpu_s
        lost = await _lost(home, accepted=minute.statuses[200])
    return _told(minute, lost, cpu_s=cpu_s)


async def _deliver_all(minute: _Minute, paths: Sequence[str]) -> None:
    began = time.perf_counter()
    async with asyncio.TaskGroup() as calls:
        for number in range(PER_SECOND_COUNT * LOAD_S):
            due = began + number / PER_SECOND_COUNT
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            path = paths[number % len(paths)]
            is_bad = number % BAD_EVERY == number // len(paths) % BAD_EVERY
            calls.create_task(minute.deliver(f"{path}x" if is_bad else path, due))


async def _lost(home: Path, *, accepted: int) -> int:
    """Return how many deliveries led to nothing, once all has come to rest."""
    reader = open_reader(database_path(home))
    try:
        for _ in range(QUIET_LOOKS_COUNT_MAX):
            hints, messages, delivered = _left(reader)
            if not hints and not messages:
                break
            await asyncio.sleep(0.5)
        return hints + messages + abs(accepted - delivered)
    finally:
        reader.close()


def _left(reader: apsw.Connection) -> tuple[int, int, int]:
    ((hints, messages, delivered),) = reader.execute(_LEFT).fetchall()
    return int(str(hints)), int(str(messages)), int(str(delivered))


def _told(minute: _Minute, lost: int, *, cpu_s: float) -> list[Measurement]:
    waits_ms = sorted(minute.waits_ms)
    bad, count = minute.statuses[404], len(waits_ms)
    assert minute.statuses[200] + bad == count, minute.statuses
    return [
        Measurement(
            name=f"{PER_SECOND_COUNT} deliveries a second for {LOAD_S} s, the slowest but 1 %",
            measured=waits_ms[99 * count // 100],
            target=P99_MS_MAX,
            unit=" ms",
            detail=f"median {median(waits_ms):.1f} ms, {100 * bad / count:.0f} % with a wrong"
            f" secret, {minute.put_off_count} put off, {cpu_s / LOAD_S:.2f} processors in use",
        ),
        Measurement(name="wakes lost among them", measured=lost, target=0, unit=""),
    ]
