"""A host that is killed again and again loses nothing it has acknowledged."""

from pathlib import Path

import pytest

from tests.crash.kill_loop import HomeUnderFire, Manner, run_kill_loop

KILLS_PER_LOOP = 24  # enough for each failpoint to be a place of death once


@pytest.mark.requirement("crash:acknowledged-survives-kill")
@pytest.mark.requirement("crash:settled-once")
@pytest.mark.requirement("crash:log-gapless-after-kill")
@pytest.mark.requirement("crash:command-at-most-once")
@pytest.mark.requirement("crash:no-orphans")
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_killed_host_loses_nothing_and_settles_nothing_twice(seed: int, tmp_path: Path) -> None:
    report = run_kill_loop(kills=KILLS_PER_LOOP, seed=seed, root=tmp_path)
    assert report.problems == []
    assert report.kills >= KILLS_PER_LOOP
    assert report.unvisited == (), "every failpoint is a place of death"
    assert report.acked > 0
    assert report.resumes > 0, "some turn was cut off and taken up again"
    assert report.commands > 0
    assert report.tasks > 0, "some command went on in the background"


@pytest.mark.requirement("crash:good-order")
@pytest.mark.parametrize("manner", [Manner.TERMINATE, Manner.END_INPUT])
def test_a_host_that_ends_in_good_order_keeps_the_same_promises(
    manner: Manner, tmp_path: Path
) -> None:
    report = HomeUnderFire(tmp_path / "home", seed=21, manner=manner).run(6)
    assert report.problems == []
    assert report.acked > 0


def test_a_report_says_in_one_line_what_was_found(tmp_path: Path) -> None:
    report = run_kill_loop(kills=1, seed=31, root=tmp_path)
    assert "\n" not in str(report)
    assert str(report).endswith("clean")
