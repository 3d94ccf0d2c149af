"""The demo tells the truth, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOLD = (
    "A host starts on an empty home",
    "brief of turn_",
    "A timer fires",
    "hint: resume the agent",
    "kill -9",
    "(resume 1)",
    "had its effect once",
    "✓ clean:",
)


def test_the_demo_runs_through_and_every_line_of_it_holds(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "demo.py")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
        timeout=120,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert [line for line in TOLD if line not in told.stdout] == []
    assert "✗" not in told.stdout
    assert list(tmp_path.iterdir()) == []
