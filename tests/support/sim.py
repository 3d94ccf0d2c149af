"""Run seeds of the simulated world from the command line.

Owns:  `python -m tests.support.sim`: many seeds, a line for each that fails, a summary.

    python -m tests.support.sim --seeds 1000          seeds 0 … 999, safety and liveness in turn
    python -m tests.support.sim --seed 4711           one seed, both modes, with its trace hash
"""

import argparse
import gc
import logging
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count
from types import CoroutineType
from typing import TYPE_CHECKING, Final

from tests.support.world import Mode, Verdict, World

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

PROGRESS_SEEDS: Final = 1_000
LOOP_GONE: Final = "no running event loop"  # what asyncio says to whoever asks for one


def run_seed(seed: int) -> Verdict:
    """Run one seed; even seeds show safety, odd ones liveness."""
    return World(seed, Mode.LIVENESS if seed % 2 else Mode.SAFETY).run()


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; 0 when every world is clean."""
    parser = argparse.ArgumentParser(prog="tests.support.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run only this seed, in both modes")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        verdicts = [World(asked.seed, mode).run() for mode in Mode]
        for verdict in verdicts:
            print(verdict, verdict.trace_hash, *verdict.problems, sep="\n  ")
        return int(any(verdict.problems for verdict in verdicts))
    return _run_many(range(asked.first, asked.first + asked.seeds))


def _run_many(seeds: range) -> int:
    began = time.monotonic()
    failed = crashes = turns = 0
    for done, verdict in enumerate(_verdicts(seeds), start=1):
        crashes += verdict.crash_count
        turns += verdict.turn_count
        if verdict.problems:
            failed += 1
            print(verdict, flush=True)
        if done % PROGRESS_SEEDS == 0 and done < len(seeds):
            print(f"… {done} seeds, {failed} with violations so far", flush=True)
    seconds = time.monotonic() - began
    print(
        f"{len(seeds)} seeds, {failed} with violations; {crashes} crashes, {turns} turns, "
        f"{len(seeds) / seconds:.0f} seeds/s"
    )
    return int(failed > 0)


def _verdicts(seeds: range) -> Iterator[Verdict]:
    """Every seed's verdict, in order."""
    with ProcessPoolExecutor(cpu_count(), initializer=_settle_in) as pool:
        yield from pool.map(run_seed, seeds, chunksize=8)


def _settle_in() -> None:
    """Look over only what the worlds make, and keep their complaints about faults to themselves."""
    gc.freeze()
    for complaining in ("holon", "asyncio"):  # the latter, of tasks that a crash left behind
        logging.getLogger(complaining).addHandler(logging.NullHandler())
    sys.unraisablehook = tell_unless_abandoned


def tell_unless_abandoned(found: "UnraisableHookArgs") -> None:
    """Tell of what nobody can catch, but not of a coroutine that outlived its world's loop."""
    if not (isinstance(found.object, CoroutineType) and str(found.exc_value) == LOOP_GONE):
        sys.__unraisablehook__(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
