"""Every planted fault still finds the code it changes, and names tests that exist."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.mutants.registry import MUTANTS

ROOT: Final = Path(__file__).resolve().parents[2]
PLANT_EACH: Final = """
import os
from tests.mutants.registry import MUTANTS

for mutant in MUTANTS:  # each in a process of its own, since a planted fault stays
    child = os.fork()
    if not child:
        mutant.plant()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"{mutant.name} cannot be planted")
"""


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    return file.is_file() and (not name or f"def {name}(" in file.read_text(encoding="utf-8"))


def test_every_mutant_names_tests_that_exist() -> None:
    assert [(each.name, test) for each in MUTANTS for test in each.tests if not exists(test)] == []


def test_every_mutant_can_be_planted() -> None:
    program = [sys.executable, "-c", PLANT_EACH]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
