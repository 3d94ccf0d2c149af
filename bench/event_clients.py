"""Two hundred clients of the event streams, of whom twenty do not read.

Owns:  the load of a real `holon serve` while they follow it: half of those who read follow one
       agent, the others all of them; those who do not read have asked for all, over the network
       and over the socket file. What is told: whether the numbers each reader saw are those in the
       log, when the last stalled client was cut, and how much the memory of the service grew.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from bench.hosting import TEXT, temporary_home
from bench.measure import Measurement
from bench.prompt_load import create
from bench.served import Served, served
from bench.stream_clients import ReadingClient, StalledClient
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.run_files import RunPaths

CLIENTS_COUNT: Final = 200
STALLED_COUNT: Final = 20
AGENTS_COUNT: Final = 10
SPEAKERS_COUNT: Final = 4
PROMPTS_PER_S: Final = 20  # at most, of all speakers
PROMPTS_COUNT_MIN: Final = 300
WARM_UP_COUNT: Final = 500
LOAD_S_MAX: Final = 120
CUT_S_MAX: Final = 30.0
MEMORY_RATIO_MAX: Final = 1.1
PATIENCE_S: Final = 60
_LOOK_S: Final = 0.25
_EVERYTHING: Final = "/events/stream"


class Followed(NamedTuple):
    """One who reads, and whom it follows; nobody in particular means everybody."""

    agent_id: str | None
    client: ReadingClient


class Watched(NamedTuple):
    """What was seen of the service while it was loaded."""

    cut_s: float
    rss_before_kb: int
    rss_peak_kb: int
    load_s: float


async def run() -> list[Measurement]:
    """Follow, load, and compare."""
    with temporary_home() as home, served(home) as service:
        await create(service, range(AGENTS_COUNT))
        log = Log(home)
        await log.at_rest()
        first = log.newest()
        readers = [await _reader(service, n) for n in range(CLIENTS_COUNT - STALLED_COUNT)]
        await _load(service, until=lambda number: number >= WARM_UP_COUNT)
        await log.at_rest()
        watched = await _watched_load(service)
        await log.at_rest()
        wrong = sum([await _wrong(reader, log, after=first) for reader in readers])
        seen = sum(len(reader.client.numbers) for reader in readers)
        for reader in readers:
            reader.client.close()
    return _measured(wrong, seen, watched)


class Log:
    """The log of a home, read beside the service."""

    def __init__(self, home: Path) -> None:
        self._database = apsw.Connection(str(database_path(home)), flags=apsw.SQLITE_OPEN_READONLY)
        self._database.set_busy_timeout(5_000)

    def newest(self) -> int:
        """The number of the newest event."""
        return int(self._database.execute("select max(log_seq) from events").get)

    def numbers(self, agent_id: str | None, *, after: int) -> list[int]:
        """The numbers one who follows an agent, or all, must see."""
        number = "log_seq" if agent_id is None else "event_seq"
        whose = "" if agent_id is None else "and agent_id = ?2"
        keys = (after,) if agent_id is None else (after, agent_id)
        sql = f"select {number} from events where log_seq > ?1 {whose} order by log_seq"
        return [int(row[0]) for row in self._database.execute(sql, keys)]

    async def at_rest(self) -> None:
        """Return once nobody has anything to do."""
        waiting = "select count(*) from messages where state in ('queued', 'claimed')"
        async with asyncio.timeout(PATIENCE_S):
            before = -1
            while self._database.execute(waiting).get or before != self.newest():
                before = self.newest()
                await asyncio.sleep(2 * _LOOK_S)


async def _reader(service: Served, number: int) -> Followed:
    agent_id = f"agent-{number % AGENTS_COUNT}" if number % 2 else None
    path = _EVERYTHING if agent_id is None else f"/agents/{agent_id}{_EVERYTHING}"
    return Followed(agent_id, await ReadingClient.follow(service, path))


async def _load(service: Served, *, until: Callable[[int], bool]) -> None:
    """Have several speak to all agents in turns, as fast as each is heard."""
    spoken = itertools.count()

    async def speak() -> None:
        async with service.line() as line:
            while not until(number := next(spoken)):
                path = f"/control/agents/agent-{number % AGENTS_COUNT}/prompt"
                said = await line.post(path, {"text": TEXT})
                assert said.status == 200, said
                await asyncio.sleep(SPEAKERS_COUNT / PROMPTS_PER_S)

    await asyncio.gather(*(speak() for _ in range(SPEAKERS_COUNT)))


async def _watched_load(service: Served) -> Watched:
    """Load until everybody who does not read is cut, or should long have been."""
    socket_file = RunPaths(service.home).socket
    stalled = [
        StalledClient(service, _EVERYTHING, through=socket_file if number % 2 else None)
        for number in range(STALLED_COUNT)
    ]
    began_s, rss_kb = time.perf_counter(), [service.rss_kb()]

    def is_over(number: int) -> bool:
        took_s = time.perf_counter() - began_s
        is_done = all(client.cut_after_s is not None for client in stalled)
        return number >= PROMPTS_COUNT_MIN and (is_done or took_s > LOAD_S_MAX)

    load = asyncio.create_task(_load(service, until=is_over))
    while not load.done():
        await asyncio.sleep(_LOOK_S)
        rss_kb.append(service.rss_kb())
        for client in stalled:
            client.look()
    await load
    for client in stalled:
        client.close()
    cuts_s = [float("inf") if each.cut_after_s is None else each.cut_after_s for each in stalled]
    return Watched(max(cuts_s), rss_kb[0], max(rss_kb), time.perf_counter() - began_s)


async def _wrong(reader: Followed, log: Log, *, after: int) -> int:
    """How many events a reader missed, saw twice, or saw out of order."""
    expected, seen = log.numbers(reader.agent_id, after=after), reader.client.numbers
    for _ in range(int(PATIENCE_S / _LOOK_S)):
        if len(seen) >= len(expected) or reader.client.is_cut:
            break
        await asyncio.sleep(_LOOK_S)
    if seen == expected:
        return 0
    return max(1, len(set(expected) ^ set(seen)) + len(seen) - len(set(seen)))


def _measured(wrong: int, seen: int, watched: Watched) -> list[Measurement]:
    reading = CLIENTS_COUNT - STALLED_COUNT
    return [
        Measurement(
            name=f"events that {reading} reading clients missed or saw twice",
            measured=wrong,
            target=0,
            unit="",
            detail=f"{seen:,} were seen",
        ),
        Measurement(
            name=f"until the last of {STALLED_COUNT} clients that take nothing was cut",
            measured=watched.cut_s,
            target=CUT_S_MAX,
            unit=" s",
            detail=f"from the last byte the system took for it; the load took"
            f" {watched.load_s:.0f} s",
        ),
        Measurement(
            name=f"memory of the service at most while {CLIENTS_COUNT} clients follow, to before",
            measured=watched.rss_peak_kb / watched.rss_before_kb,
            target=MEMORY_RATIO_MAX,
            detail=f"{watched.rss_before_kb / 1_000:.0f} MB before",
        ),
    ]
