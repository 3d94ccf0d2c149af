"""Tests of the suite that draw at random, with many more draws.

Each of them reads how much it draws from a variable; the suite leaves those alone.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DRAWS: Final = {
    "HOLON_DRILL_PATCHES": ("tests/tools/patching/test_damaged_diffs.py", 60),
    "HOLON_DRILL_COMMANDS": ("tests/adapters/exec/test_hard_endings.py", 60),
    "HOLON_DRILL_PROMPTS": ("tests/prompt/test_any_history.py", 5_000),
    "HOLON_DRILL_REQUESTS": ("tests/http/test_schema_fuzz.py", 6),
    "HOLON_DRILL_COMPACTIONS": ("tests/decide/turns/test_compaction.py", 1_000),
    "HOLON_DRILL_INJECTIONS": ("tests/provenance/test_obedient_model.py", 66),
    "HOLON_DRILL_STEPS": ("tests/simulation/test_crash_points.py", 133),
    "HOLON_DRILL_PASTS": ("tests/decide/turns/test_history_window.py", 100),
}


def main(arguments: list[str]) -> int:
    """Run them; the exit code of pytest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=int, default=20, help="how many times as many draws")
    factor = parser.parse_args(arguments).factor
    drawn = {name: str(count * factor) for name, (_, count) in DRAWS.items()}
    files = [file for file, _ in DRAWS.values()]
    command = [sys.executable, "-m", "pytest", "-q", "--workers", "auto", *files]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **drawn}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
