"""Hundreds of seeded worlds: whatever crashes, nothing acknowledged is lost and nothing is stuck.

A failure names its seed; `python -m tests.support.sim --seed N` replays it, step for step.
"""

import subprocess
import sys

import pytest

from tests.support.sim import run_seed
from tests.support.world import Mode, World, has_commands

SEED_COUNT = 500
SEEDS_PER_TEST = 10
QUICK_SEED_COUNT = 30
FAULTS_FOUND = {
    "the backstop judged by a clock that had been set twice": 1_000_893,
    "a resume decided on a paused agent met a stopped one": 1_002_929,
    "a message that was put off was taken for a mere sign of life": 1_003_741,
    "a tick that was put off ran although its timer was cancelled": 1_010_812,
}


@pytest.mark.requirement("simulation:what-was-cut-off-goes-on")
@pytest.mark.requirement("simulation:a-wake-reason-leads-to-a-turn")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.quick] if first < QUICK_SEED_COUNT else [])
        for first in range(0, SEED_COUNT, SEEDS_PER_TEST)
    ],
)
def test_a_world_keeps_its_promises(first: int) -> None:
    verdicts = [run_seed(seed) for seed in range(first, first + SEEDS_PER_TEST)]
    assert [str(verdict) for verdict in verdicts if verdict.problems] == []
    assert sum(verdict.rescue_count for verdict in verdicts) == 0


@pytest.mark.quick
@pytest.mark.parametrize("seed", FAULTS_FOUND.values(), ids=FAULTS_FOUND.keys())
def test_a_seed_that_once_found_a_fault_is_kept(seed: int) -> None:
    assert run_seed(seed).problems == []


@pytest.mark.parametrize("seed", FAULTS_FOUND.values(), ids=FAULTS_FOUND.keys())
def test_a_seed_that_found_a_fault_before_agents_had_hands_sees_the_same_world(seed: int) -> None:
    assert not has_commands(seed)


@pytest.mark.parametrize(("seed", "mode"), [(7, Mode.SAFETY), (8, Mode.LIVENESS)])
def test_a_seed_replays_identically(seed: int, mode: Mode) -> None:
    first, again = World(seed, mode).run(), World(seed, mode).run()
    assert first.trace_hash == again.trace_hash
    assert first.crash_count == again.crash_count


def test_a_seed_replays_identically_in_another_process() -> None:
    asked = [sys.executable, "-m", "tests.support.sim", "--seed", "12"]
    first, again = (
        subprocess.run(asked, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == again


def test_the_worlds_are_eventful() -> None:
    """A simulation in which nothing happens would prove nothing."""
    verdicts = [run_seed(seed) for seed in range(16)]
    assert sum(verdict.crash_count for verdict in verdicts) > 8
    assert sum(verdict.turn_count for verdict in verdicts) > 80
    assert sum(verdict.command_count for verdict in verdicts) > 20
    assert sum(verdict.task_count for verdict in verdicts) > 12
