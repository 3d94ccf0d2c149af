"""The long drills: more seeds, more kills, more power cuts, and every mutant.

    make drill                                      everything, as for a release
    python tests/drills/run.py --scale 0.01         a quick look that the drills themselves work

Each drill prints one line with its figures; the run fails when any of them found something.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Drill:
    """One long drill: a module, and how much of it at full scale."""

    name: str
    module: str
    option: str | None
    amount: int
    also: tuple[str, ...] = ()

    def command(self, scale: float) -> list[str]:
        """The command that runs it at this scale."""
        asked = [sys.executable, "-m", self.module, *self.also]
        if self.option is not None:
            asked += [self.option, str(max(1, round(self.amount * scale)))]
        return asked


DRILLS = (
    Drill("simulation", "tests.support.sim", "--seeds", 20_000, ("--first", "1000000")),
    Drill("sigkill", "tests.crash.kill_loop", "--kills", 2_000, ("--jobs", "2")),
    Drill("clock jumps", "tests.crash.kill_loop", "--kills", 200, ("--clock", "--jobs", "2")),
    Drill("copied homes", "tests.crash.copies", "--rounds", 150),
    Drill("swapped databases", "tests.crash.swap_drill", "--swaps", 200),
    Drill("sigterm", "tests.crash.kill_loop", "--kills", 200, ("--terms", "--jobs", "2")),
    Drill("power loss", "tests.power.power_drill", "--states", 20_000),
    Drill("soak", "tests.drills.soak", "--minutes", 30),
    Drill("fuzz", "tests.drills.fuzz_providers", "--runs", 100_000),
    Drill("generated clients", "tests.drills.generated_clients", None, 0),
    Drill("enlarged tests", "tests.drills.enlarged", "--factor", 20),
    Drill("mutants", "tests.mutants.killing", None, 0),
)


def main(arguments: list[str]) -> int:
    """Run the drills one after another; 0 when all are clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is the full drill")
    parser.add_argument("--only", choices=[drill.name for drill in DRILLS], help="just this one")
    asked = parser.parse_args(arguments)
    failed = []
    for drill in DRILLS:
        if asked.only in (None, drill.name):
            print(f"== {drill.name}", flush=True)
            if subprocess.run(drill.command(asked.scale), cwd=ROOT, check=False).returncode:
                failed.append(drill.name)
    print(f"drills clean: {not failed}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
