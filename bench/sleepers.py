"""What sleeping agents cost: memory, start-up, and the time to wake one of them.

Owns:  the comparison of a host with 100,000 sleeping agents against hosts with none and with ten.
Memory and start-up are measured in processes of their own, one after the other, in turns.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from bench.hosting import PromptModel, prompt, running_host, temporary_home
from bench.measure import Measurement, median, ratio_of_medians
from holon.adapters.sqlite.database.checkpoints import truncate_log
from holon.adapters.sqlite.database.connection import open_writer
from holon.adapters.sqlite.database.home_lock import database_path, prepare_home
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from tests.support.builders import a_commit, an_agent

AGENTS_COUNT: Final = 100_000
FEW_COUNT: Final = 10
STARTS_COUNT: Final = 5
WAKES_COUNT: Final = 60
GROUP_COUNT: Final = 5_000
RSS_GROWTH_MB_MAX: Final = 60
WAKE_RATIO_MAX: Final = 2


class Start(NamedTuple):
    """What one process saw when its host was ready."""

    seconds: float
    rss_mb: float


def make_home(home: Path, *, agents_count: int) -> None:
    """Make a home with sleeping agents, by the commits that make agents."""
    prepare_home(home)
    connection = open_writer(database_path(home))
    migrate(connection)
    writer = CommitWriter(connection)
    for begin in range(0, agents_count, GROUP_COUNT):
        numbers = range(begin, min(begin + GROUP_COUNT, agents_count))
        commits = [a_commit(f"create:{n}", an_agent(f"agent-{n}")) for n in numbers]
        writer.apply_group([audited(each) for each in commits])
        truncate_log(connection)
    connection.close()


async def run() -> list[Measurement]:
    """Compare a crowded host with an empty one, and with one of ten agents."""
    with ExitStack() as homes:
        empty, few, many = (homes.enter_context(temporary_home()) for _ in range(3))
        for home, count in ((empty, 0), (few, FEW_COUNT), (many, AGENTS_COUNT)):
            make_home(home, agents_count=count)
        return [*_starts(empty, many), await _wakes(few, many)]


def _starts(empty: Path, many: Path) -> Iterator[Measurement]:
    starts = [(_start(empty), _start(many)) for _ in range(STARTS_COUNT)]
    alone = median([one.seconds for one, _ in starts])
    crowded = median([other.seconds for _, other in starts])
    growth = median([other.rss_mb - one.rss_mb for one, other in starts])
    yield Measurement(
        name=f"memory of a host with {AGENTS_COUNT:,} sleeping agents, over an empty one",
        measured=growth,
        target=RSS_GROWTH_MB_MAX,
        unit=" MB",
    )
    yield Measurement(
        name=f"start to ready with {AGENTS_COUNT:,} sleeping agents, of 3 empty starts plus 1 s",
        measured=crowded / (3 * alone + 1),
        target=1,
        detail=f"an empty start takes {1_000 * alone:.0f} ms, this one {1_000 * crowded:.0f} ms",
    )


def _start(home: Path) -> Start:
    command = [sys.executable, "-m", "bench.sleepers", str(home)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Start(**json.loads(done.stdout))


async def _wakes(few: Path, many: Path) -> Measurement:
    """Wake one of ten and one of all, in turns."""
    few_seconds: list[float] = []
    many_seconds: list[float] = []
    model = PromptModel(uses_tool=False)
    async with running_host(few, model=model) as one, running_host(many, model=model) as other:
        for number in range(WAKES_COUNT):
            few_seconds.append(await one.settle(prompt(f"agent-{number % FEW_COUNT}")))
            step = AGENTS_COUNT // WAKES_COUNT * number
            many_seconds.append(await other.settle(prompt(f"agent-{step}")))
    return Measurement(
        name=f"waking one of {AGENTS_COUNT:,} agents, against one of {FEW_COUNT}",
        measured=ratio_of_medians(many_seconds, few_seconds),
        target=WAKE_RATIO_MAX,
        detail=f"{1_000 * median(many_seconds):.1f} ms from prompt to settled turn",
    )


async def _report_start(home: Path) -> None:
    """Start a host, and print what it took once it is ready."""
    began = time.perf_counter()
    async with running_host(home, model=PromptModel(uses_tool=False)):
        seconds = time.perf_counter() - began
        status = await anyio.Path("/proc/self/status").read_text(encoding="ascii")
        (kilobytes,) = (line.split()[1] for line in status.splitlines() if "VmRSS" in line)
        print(json.dumps({"seconds": seconds, "rss_mb": int(kilobytes) / 1024}))


if __name__ == "__main__":
    asyncio.run(_report_start(Path(sys.argv[1])))
