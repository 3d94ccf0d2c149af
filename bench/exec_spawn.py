"""What it costs to run a command so that it outlives us.

Owns:  starting `true` through the local shell and waiting for it, beside a bare spawn of the same
       shell with its output to files. Both make new files each time, in turns.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.measure import Measurement, median, ratio_of_medians
from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.system.clock import SystemClock
from holon.model.tasks import CommandSpec

ROUNDS_COUNT: Final = 200


async def run() -> list[Measurement]:
    """Run the same command both ways, in turns."""
    supervised: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory(prefix="holon-bench-") as place:
        shell = LocalShell(Path(place) / "runs", os.environ, SystemClock())
        try:
            await _supervised(shell, "warm")
            for number in range(ROUNDS_COUNT):
                supervised.append(await _supervised(shell, f"run_{number}"))
                bare.append(_bare(Path(place), number))
        finally:
            shell.close()
    took_ms = 1_000 * median(supervised)
    detail = f"{took_ms:.2f} ms beside {1_000 * median(bare):.2f} ms"
    return [
        Measurement(
            name="a supervised command to a bare spawn, both with output to files",
            measured=ratio_of_medians(supervised, bare),
            target=4,
            detail=detail,
        ),
        Measurement(name="a supervised command", measured=took_ms, target=12, unit=" ms"),
    ]


async def _supervised(shell: LocalShell, run_id: str) -> float:
    began = time.perf_counter()
    command = await shell.start(CommandSpec(run_id=run_id, cmd="true", workdir="/"))
    end = await command.wait()
    took_s = time.perf_counter() - began
    assert end.exit_status == 0
    return took_s


def _bare(place: Path, number: int) -> float:
    began = time.perf_counter()
    with open(place / f"out_{number}", "wb") as out, open(place / f"err_{number}", "wb") as err:
        subprocess.run(
            ["/bin/sh", "-c", "true"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd="/",
            start_new_session=True,
            check=True,
        )
    return time.perf_counter() - began
