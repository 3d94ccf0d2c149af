"""What asking a running service for its agent's status costs.

Owns:  `holon status` against a real `holon serve`, beside an interpreter that does nothing. Real
       processes, in turns.
"""

import sys
from pathlib import Path
from typing import Final

from bench.hosting import temporary_home
from bench.measure import Measurement, median, ratio_of_medians
from bench.served import served
from bench.start_up import timed_program

CALLS_COUNT: Final = 41
STATUS_RATIO_MAX: Final = 10.0


async def run() -> list[Measurement]:
    """Ask again and again."""
    with temporary_home() as home, served(home):
        return [_status(home)]


def _status(home: Path) -> Measurement:
    asked: list[float] = []
    bare: list[float] = []
    for _ in range(CALLS_COUNT):
        asked.append(timed_program("-m", "holon", "status", "--home", str(home)))
        bare.append(timed_program("-c", "pass"))
    return Measurement(
        name="holon status of a running service, to an interpreter that does nothing",
        measured=ratio_of_medians(asked, bare),
        target=STATUS_RATIO_MAX,
        detail=f"{1_000 * median(asked):.0f} ms beside {1_000 * median(bare):.0f} ms"
        f" with Python {sys.version_info.major}.{sys.version_info.minor}",
    )
