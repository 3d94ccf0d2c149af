"""The demo tells the truth, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.demo.bug_fix import TESTS, make_repository, ran_in
from scripts.demo.narrator import Narrator, StoryBrokenError

ROOT = Path(__file__).parents[2]
TOLD = (
    "A host starts on an empty home",
    "brief of turn_",
    "A timer fires",
    "hint: resume it with",
    "kill -9",
    "(resume 1)",
    "had its effect once",
    "✓ clean:",
    "│ FAILED (failures=2)",
    "✓ its patches apply, in both forms",
    "│ diff --git a/durations.py b/durations.py",
    "│ +    return sum(",
    "✓ and without the agent the tests pass, too: OK",
    "is on record: running",
    "✓ same number, same start time: process",
    "✓ its result was sent to the agent exactly once",
    "✓ the agent reports: “The soak is over",
    "✓ no process of this story is left",
)


def test_the_demo_runs_through_and_every_line_of_it_holds(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "scripts.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
        timeout=180,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert [line for line in TOLD if line not in told.stdout] == []
    assert "✗" not in told.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_bundled_repository_fails_its_tests_until_somebody_fixes_it(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    code, said = ran_in(repository, *TESTS)
    assert code == 1
    assert said.rstrip().endswith("FAILED (failures=2)")
    assert ran_in(repository, "git", "status", "--porcelain") == (0, "")


def test_the_bundled_repository_has_the_same_commit_wherever_it_is_made(tmp_path: Path) -> None:
    heads = set()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        heads.add(ran_in(make_repository(folder), "git", "rev-parse", "HEAD"))
    assert len(heads) == 1


def test_a_check_that_does_not_hold_ends_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    say = Narrator()
    with pytest.raises(StoryBrokenError, match="the sky is green"):
        say.check(False, "the sky is green")
    assert "✗ the sky is green" in capsys.readouterr().out
