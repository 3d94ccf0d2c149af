"""What starting Holon costs.

Owns:  `holon --version` beside an interpreter that does nothing, and `holon run` of one exchange in
       a fresh home beside the bare loop's. Real processes, in turns.
"""

import subprocess
import sys
import time
from typing import Final

from bench.loop_runs import loop_runs, quiet_environment
from bench.measure import Measurement, median, ratio_of_medians

STARTS_COUNT: Final = 25
RUNS_COUNT: Final = 15
VERSION_RATIO_MAX: Final = 6.0
EXCHANGE_RATIO_MAX: Final = 5.0


async def run() -> list[Measurement]:
    """Time both pairs."""
    return [_version(), _exchange()]


def _version() -> Measurement:
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(STARTS_COUNT):
        ours.append(timed_program("-m", "holon", "--version"))
        bare.append(timed_program("-c", "pass"))
    return Measurement(
        name="holon --version, to an interpreter that does nothing",
        measured=ratio_of_medians(ours, bare),
        target=VERSION_RATIO_MAX,
        detail=f"{1_000 * median(ours):.0f} ms beside {1_000 * median(bare):.0f} ms",
    )


def _exchange() -> Measurement:
    ours: list[float] = []
    bare: list[float] = []
    with loop_runs() as runs:
        for _ in range(RUNS_COUNT):
            ours.append(runs.holon(rounds=0).took_s)
            bare.append(runs.bare(rounds=0).took_s)
    return Measurement(
        name="holon run of one exchange in a new home, to the bare loop's",
        measured=ratio_of_medians(ours, bare),
        target=EXCHANGE_RATIO_MAX,
        detail=f"{1_000 * median(ours):.0f} ms beside {1_000 * median(bare):.0f} ms",
    )


def timed_program(*arguments: str) -> float:
    """Return how long an interpreter with these arguments took."""
    program = [sys.executable, *arguments]
    began_s = time.perf_counter()
    subprocess.run(program, env=quiet_environment(), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began_s
