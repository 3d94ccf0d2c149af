"""Whether a long past makes looking at an agent slower, and starting on it.

Owns:  the bootstrap of a projection, `GET /agents/:id/state`, from a service whose agent has a
       million events behind it and from one with a thousand, in turns; and how long a service needs
       to be ready on the large home, which is a gigabyte.
Both homes are written by the commits that write turns, and the small one passes the checker.
"""

import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from bench.history import Past, make_history
from bench.hosting import temporary_home
from bench.http_line import HttpLine
from bench.loop_runs import quiet_environment
from bench.measure import Measurement, median
from bench.served import process, served
from holon.adapters.sqlite.database.home_lock import database_path
from tests.support.builders import MAIN

SHORT_EVENTS_COUNT: Final = 1_000
LONG_EVENTS_COUNT: Final = 1_000_000
TURN_EVENTS_COUNT: Final = 40
HOME_BYTES_MIN: Final = 1_000_000_000
PAST: Final = Past(text="What an agent was told. " * 460, rounds_told_count=34)
BLOCKS_COUNT: Final = 9
READS_COUNT: Final = 150  # of each service in a block
STARTS_COUNT: Final = 3
RATIO_MAX: Final = 1.5
READY_S_MAX: Final = 3.0


async def run() -> list[Measurement]:
    """Write both pasts, compare the reads, then start on the long one."""
    with ExitStack() as homes:
        short, long = (homes.enter_context(temporary_home()) for _ in range(2))
        make_history(short, turns_count=SHORT_EVENTS_COUNT // TURN_EVENTS_COUNT, past=PAST)
        _check(short)
        make_history(long, turns_count=LONG_EVENTS_COUNT // TURN_EVENTS_COUNT, past=PAST)
        size = database_path(long).stat().st_size
        assert size >= HOME_BYTES_MIN, f"the long past has only {size:,} bytes"
        return [await _reads(short, long), _ready(long, size)]


def _check(home: Path) -> None:
    program = [sys.executable, "-m", "holon", "debug", "check", "--home", str(home)]
    checked = subprocess.run(
        program, env=quiet_environment(), capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def _reads(short: Path, long: Path) -> Measurement:
    ratios: list[float] = []
    shorts_s: list[float] = []
    longs_s: list[float] = []
    with served(short) as young, served(long) as old:
        async with young.line() as young_line, old.line() as old_line:
            await _cursor_is(young_line, at_least=SHORT_EVENTS_COUNT)
            await _cursor_is(old_line, at_least=LONG_EVENTS_COUNT)
            for _ in range(BLOCKS_COUNT):
                near, far = [], []
                for _ in range(READS_COUNT):
                    near.append(await _read_s(young_line))
                    far.append(await _read_s(old_line))
                shorts_s.append(_p95(near))
                longs_s.append(_p95(far))
                ratios.append(_p95(far) / _p95(near))
    return Measurement(
        name=f"state of an agent, p95 with {LONG_EVENTS_COUNT:,} events to {SHORT_EVENTS_COUNT:,}",
        measured=median(ratios),
        target=RATIO_MAX,
        detail=f"{1_000 * median(longs_s):.1f} ms beside {1_000 * median(shorts_s):.1f} ms",
    )


async def _cursor_is(line: HttpLine, *, at_least: int) -> None:
    cursor = (await line.get(f"/agents/{MAIN}/state")).value["event_cursor"]
    assert cursor >= at_least, f"the past has only {cursor:,} events"


async def _read_s(line: HttpLine) -> float:
    began_s = time.perf_counter()
    answer = await line.get(f"/agents/{MAIN}/state")
    took_s = time.perf_counter() - began_s
    assert answer.status == 200, answer
    return took_s


def _p95(values: list[float]) -> float:
    return sorted(values)[len(values) * 95 // 100]


def _ready(home: Path, size: int) -> Measurement:
    with temporary_home() as empty:
        shutil.copy(home / "config.toml", empty)
        starts = [(_start(home), _start(empty)) for _ in range(STARTS_COUNT)]
    full_s, alone_s, wall_s = (
        median(each)
        for each in (
            [full.own_s for full, _ in starts],
            [alone.own_s for _, alone in starts],
            [full.wall_s for full, _ in starts],
        )
    )
    return Measurement(
        name=f"holon serve to ready on {size / 1e9:.2f} GB, less its wait for a processor",
        measured=full_s,
        target=READY_S_MAX,
        unit=" s",
        detail=f"on an empty home {alone_s:.2f} s; by the clock {wall_s:.2f} s",
    )


class Start(NamedTuple):
    """How long a start took, by the clock and without what others kept it waiting."""

    wall_s: float
    own_s: float


def _start(home: Path) -> Start:
    program = [sys.executable, "-m", "holon", "serve", "--home", str(home), "--port", "0", "--json"]
    began_s = time.perf_counter()
    with process(program) as (pid, announced):
        wall_s = time.perf_counter() - began_s
        assert '"ok"' in announced
        _, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
    return Start(wall_s, wall_s - int(waited_ns) / 1e9)
