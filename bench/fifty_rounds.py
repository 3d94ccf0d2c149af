"""What a round of a long run costs, beside a loop that stores nothing.

Owns:  `holon run` with a command in each of fifty rounds, all durable, beside the bare loop with
       the same requests and the same commands. Whole runs take turns; the server times the rounds.
"""

from typing import Final

from bench.loop_runs import Ran, loop_runs
from bench.measure import Measurement, median, ratio_of_medians

ROUNDS_COUNT: Final = 50
RUNS_COUNT: Final = 7
RATIO_MAX: Final = 3.0
GROWTH_MAX: Final = 1.3
PEAK_MB_MAX: Final = 100.0
_WINDOW_COUNT: Final = 6  # rounds that are looked at together, at either end
_EARLY: Final = slice(4, 4 + _WINDOW_COUNT)  # from the fifth
_LATE: Final = slice(ROUNDS_COUNT - _WINDOW_COUNT, ROUNDS_COUNT)


async def run() -> list[Measurement]:
    """Run both in turns, and compare."""
    ours: list[Ran] = []
    bare: list[Ran] = []
    with loop_runs() as runs:
        for _ in range(RUNS_COUNT):
            ours.append(runs.holon(rounds=ROUNDS_COUNT, weighed=True))
            bare.append(runs.bare(rounds=ROUNDS_COUNT))
    our_rounds = [each for ran in ours for each in ran.rounds_s]
    bare_rounds = [each for ran in bare for each in ran.rounds_s]
    early = [each for ran in ours for each in ran.rounds_s[_EARLY]]
    late = [each for ran in ours for each in ran.rounds_s[_LATE]]
    return [
        Measurement(
            name=f"a round of a run of {ROUNDS_COUNT}, to one of a bare loop that stores nothing",
            measured=ratio_of_medians(our_rounds, bare_rounds),
            target=RATIO_MAX,
            detail=f"{1_000 * median(our_rounds):.2f} ms beside {1_000 * median(bare_rounds):.2f}",
        ),
        Measurement(
            name=f"rounds up to {ROUNDS_COUNT} of a run, to those from 5 on",
            measured=ratio_of_medians(late, early),
            target=GROWTH_MAX,
            detail=f"{1_000 * median(late):.2f} ms after {1_000 * median(early):.2f} ms",
        ),
        Measurement(
            name=f"most memory in use during a run of {ROUNDS_COUNT} rounds",
            measured=max(ran.peak_mb for ran in ours),
            target=PEAK_MB_MAX,
            unit=" MB",
        ),
    ]
