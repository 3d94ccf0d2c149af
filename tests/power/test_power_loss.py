"""Power cuts at any moment: what was acknowledged is there, and the database is sound."""

import pytest

from holon.adapters.sqlite.database.connection import Synchronous
from tests.support.power_drill import cut_power, judge_run, recorded, run_power_drill
from tests.support.power_run import record_run
from tests.support.power_vfs import Unlink

STATES_PER_HISTORY = 100
FIRST_HISTORY = 4100
HISTORIES = range(FIRST_HISTORY, FIRST_HISTORY + 10)  # 1,000 states in all


@pytest.mark.requirement("power:acknowledged-commits-survive")
@pytest.mark.parametrize("history", HISTORIES)
def test_no_acknowledged_commit_is_lost_to_a_power_cut(history: int) -> None:
    report = cut_power(history, range(STATES_PER_HISTORY))
    assert report.problems == []
    assert report.state_count == STATES_PER_HISTORY


@pytest.mark.requirement("power:a-fresh-home-is-never-half-made")
def test_power_cuts_while_a_home_is_made_leave_one_that_starts() -> None:
    run = recorded(FIRST_HISTORY, Synchronous.FULL)
    report = judge_run(run, range(80), seed=1, moments=range(run.acks[0].moment + 1))
    assert report.problems == []


def test_power_cuts_during_retention_lose_nothing_it_kept() -> None:
    run = recorded(FIRST_HISTORY, Synchronous.FULL)
    first = run.forgotten[0].moment
    assert run.owed(len(run.log)) < {ack.commit_id for ack in run.acks}
    report = judge_run(run, range(60), seed=2, moments=range(first, first + 1_500))
    assert report.problems == []


@pytest.mark.parametrize("synchronous", [Synchronous.NORMAL, Synchronous.OFF])
def test_with_fewer_syncs_the_same_cuts_do_lose_commits(synchronous: Synchronous) -> None:
    report = cut_power(FIRST_HISTORY, range(40), synchronous=synchronous)
    assert report.lossy_count > 0


def test_a_recorded_run_goes_through_every_kind_of_disk_work() -> None:
    run = recorded(FIRST_HISTORY, Synchronous.FULL)
    kinds = {commit_id.split(":")[0] for _, commit_id in run.acks}
    assert {"admit", "claim", "settle"} <= kinds
    assert Unlink("runtime.sqlite-wal") in run.log, "an orderly end removes the log"
    assert run.forgotten, "retention ran"


def test_the_same_seed_asks_the_same_of_the_disk() -> None:
    once, again = record_run(7), record_run(7)
    assert [ack.commit_id for ack in once.acks] == [ack.commit_id for ack in again.acks]
    assert [type(done) for done in once.log] == [type(done) for done in again.log]


def test_the_drill_counts_every_state_it_judged() -> None:
    report = run_power_drill(states=6, seed=FIRST_HISTORY)
    assert (report.state_count, report.problems) == (6, [])
    assert str(report) == "power: 6 states, 0 lost acknowledged commits, 0 problems"
