"""A service that is killed again and again loses nothing it has acknowledged."""

import shutil
from pathlib import Path

import pytest

from tests.crash.kill_loop import ENDS, run_home, run_kill_loop

KILLS_PER_LOOP = 31  # more than there are failpoints; both loops together are over sixty


@pytest.mark.requirement("crash:acknowledged-survives-kill")
@pytest.mark.requirement("crash:settled-once")
@pytest.mark.requirement("crash:log-gapless-after-kill")
@pytest.mark.requirement("crash:command-at-most-once")
@pytest.mark.requirement("crash:no-lost-wake")
@pytest.mark.requirement("crash:streams-are-exact-across-lives")
@pytest.mark.requirement("crash:no-orphans")
@pytest.mark.parametrize("seed", [11, 12])
def test_a_killed_service_loses_nothing_and_settles_nothing_twice(
    seed: int, tmp_path: Path
) -> None:
    report = run_kill_loop(kills=KILLS_PER_LOOP, seed=seed, root=tmp_path)
    assert report.problems == []
    assert report.kills >= KILLS_PER_LOOP
    assert report.unvisited == (), "every failpoint is a place of death"
    for what in ("acknowledged", "deliveries", "timers", "orders", "commands", "tasks"):
        assert report.counts[what] > 0, what
    assert report.counts["resumed"] > 0, "some turn was cut off and taken up again"
    assert report.counts["streams"] > KILLS_PER_LOOP / 2, "readers came back after each life"


@pytest.mark.requirement("crash:good-order")
@pytest.mark.requirement("stop:an-acknowledged-task-ends-by-itself")
def test_a_service_that_ends_in_good_order_keeps_the_same_promises(tmp_path: Path) -> None:
    report = run_home(21, 4, tmp_path, ENDS)
    assert report.problems == []
    assert report.ends == 4
    assert report.counts["acknowledged"] > 0
    assert report.counts["orders"] > 0, "tasks were being started"


@pytest.mark.requirement("crash:acknowledged-survives-kill")
@pytest.mark.requirement("hostile:clock-jumps-and-timers")
def test_a_killed_service_whose_wall_clock_is_set_keeps_the_same_promises(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("this machine has no C compiler to make a clock with that can be set")
    report = run_kill_loop(kills=6, seed=41, root=tmp_path, sets_clock=True)
    assert report.problems == []
    assert report.kills >= 6
    assert report.counts["clock jumps"] > 0


def test_a_report_says_in_one_line_what_was_found(tmp_path: Path) -> None:
    report = run_kill_loop(kills=1, seed=31, root=tmp_path)
    assert "\n" not in str(report)
    assert str(report).endswith("clean")
