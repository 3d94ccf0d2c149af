"""Faults that real projects shipped, planted on purpose to see whether the tests can see.

Owns:  one planting function per mutant and the layer that must kill it. Nothing in production code
       knows about them: HOLON_MUTANT=M4 makes conftest call `plant("M4")` before the tests run.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.mutants import hands_mutants, lane_mutants, store_mutants, wake_mutants


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault and the tests that must fail because of it."""

    name: str
    fault: str
    layer: str
    tests: tuple[str, ...]
    plant: Callable[[], None]


SIM = ("tests/simulation/test_worlds.py::test_a_world_keeps_its_promises",)

MUTANTS: tuple[Mutant, ...] = (
    Mutant("M1", "acknowledged before it is durable", "simulation", SIM, store_mutants.plant_m1),
    Mutant("M2", "open turns are not taken up at start", "simulation", SIM, lane_mutants.plant_m2),
    Mutant(
        "M3",
        "a tool's effect and its result are two commits",
        "simulation",
        SIM,
        lane_mutants.plant_m3,
    ),
    Mutant("M4", "the news is cleared after the look", "simulation", SIM, lane_mutants.plant_m4),
    Mutant(
        "M5",
        "a stale generation may still write",
        "store contract",
        ("tests/contract/test_store.py",),
        store_mutants.plant_m5,
    ),
    Mutant(
        "M6", "only timers of agents that ran are watched", "simulation", SIM, wake_mutants.plant_m6
    ),
    Mutant(
        "M7",
        "a wait ends before its result is queued",
        "runtime",
        ("tests/runtime/test_task_desk.py",),
        wake_mutants.plant_m7,
    ),
    Mutant(
        "M8",
        "a new wait drops one that was already triggered",
        "tools",
        ("tests/tools/test_sleep.py",),
        wake_mutants.plant_m8,
    ),
    Mutant(
        "M9",
        "a late report reopens a finished task",
        "decisions",
        ("tests/decide/test_task_lifecycle.py",),
        store_mutants.plant_m9,
    ),
    Mutant(
        "M12",
        "the count of vain offers forgets across lanes",
        "runtime",
        ("tests/runtime/test_no_progress.py",),
        wake_mutants.plant_m12,
    ),
    Mutant(
        "M13",
        "cancelling a timer leaves its queued ticks",
        "runtime",
        ("tests/runtime/test_timer_desk.py",),
        wake_mutants.plant_m13,
    ),
    Mutant(
        "M14",
        "a repeating timer drifts to when it fired",
        "decisions",
        ("tests/decide/test_timer_grid.py",),
        wake_mutants.plant_m14,
    ),
    Mutant(
        "M16",
        "an unfinished call is left without a result",
        "simulation",
        SIM,
        lane_mutants.plant_m16,
    ),
    Mutant(
        "M18",
        "a tick that was cut off is not taken up again",
        "simulation",
        SIM,
        lane_mutants.plant_m18,
    ),
    Mutant(
        "M19",
        "waiting for the operator swallows a recheck",
        "decisions",
        ("tests/decide/test_continuation.py",),
        wake_mutants.plant_m19,
    ),
    Mutant(
        "M20",
        "running commands are not attached to again",
        "simulation",
        SIM,
        hands_mutants.plant_m20,
    ),
    Mutant(
        "M21",
        "the command of a cut-off call goes on",
        "simulation",
        SIM,
        hands_mutants.plant_m21,
    ),
    Mutant(
        "M22",
        "an end that nobody saw is never told",
        "simulation",
        SIM,
        hands_mutants.plant_m22,
    ),
    Mutant(
        "M23",
        "a task's result is delivered twice",
        "simulation",
        SIM,
        hands_mutants.plant_m23,
    ),
    Mutant(
        "M24",
        "a command that no row speaks of goes on",
        "runtime",
        ("tests/runtime/test_strays.py",),
        hands_mutants.plant_m24,
    ),
)


def plant(name: str) -> None:
    """Plant the fault of this name; an unknown name is an error."""
    found = {mutant.name: mutant for mutant in MUTANTS}
    found[name].plant()
