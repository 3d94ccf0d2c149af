"""Runs the tests that must fail under each mutant, and says which did.

python -m tests.mutants.killing              every mutant
python -m tests.mutants.killing M4 M13       these
"""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.registry import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
TESTS_FAILED = 1  # pytest's exit code when tests ran and some failed


@dataclass(frozen=True, slots=True)
class Kill:
    """What came of one mutant."""

    mutant: Mutant
    killed: bool
    first_failure: str

    def __str__(self) -> str:
        verdict = f"killed by {self.mutant.layer}" if self.killed else "SURVIVED"
        return f"{self.mutant.name:4} {verdict:26} {self.mutant.fault}  {self.first_failure}"


def is_sound(tests: tuple[str, ...]) -> bool:
    """Whether the tests pass when nothing is planted; else their failing would mean nothing."""
    return _run(tests, planted="").returncode == 0


def hunt(mutant: Mutant) -> Kill:
    """Run the mutant's tests with the fault planted; they must fail, not merely break off."""
    run = _run(mutant.tests, planted=mutant.name)
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    shown = failed[0].removeprefix("FAILED ").split(" - ")[0] if failed else run.stdout[-200:]
    return Kill(mutant, run.returncode == TESTS_FAILED, shown)


def summary(kills: list[Kill]) -> str:
    """The figure of a hunt: how many were killed, and where."""
    killed = Counter(kill.mutant.layer for kill in kills if kill.killed)
    layers = ", ".join(f"{layer} {count}" for layer, count in sorted(killed.items()))
    return f"mutants killed {killed.total()}/{len(kills)}, by layer: {layers or 'none'}"


def _run(tests: tuple[str, ...], *, planted: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", *tests],
        cwd=ROOT,
        env={**os.environ, "HOLON_MUTANT": planted},
        capture_output=True,
        text=True,
        check=False,
    )


def main(names: list[str]) -> int:
    """Hunt the named mutants, or all; 0 when none survives."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    for tests in sorted({mutant.tests for mutant in chosen}):
        if not is_sound(tests):
            print(f"{tests[0]} fails with no mutant planted")
            return 1
    kills = []
    for mutant in chosen:
        kills.append(hunt(mutant))
        print(kills[-1], flush=True)
    print(summary(kills))
    return int(not all(kill.killed for kill in kills))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
