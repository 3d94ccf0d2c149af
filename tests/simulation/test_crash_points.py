"""Die at any step of one eventful stretch of life: each is followed by a clean recovery.

The suite tries every sixth step, the drill every one.
"""

import os

import pytest

from tests.support.world import Mode, World
from tests.support.world_faults import WorldFaults

STEPS_PER_TEST = 40
STEPS_TRIED_COUNT = int(os.environ.get("HOLON_DRILL_STEPS", "66"))
STEPS = range(1, 400, max(1, 399 // STEPS_TRIED_COUNT))


class _DieOnce(WorldFaults):
    """No fault but one crash, at a chosen step of the first life."""

    step: int = 1

    def __init__(self, clock: object, chance: object) -> None:
        super().__init__(clock, chance)  # type: ignore[arg-type]  # the world passes its own
        self._slow_share = self._full_share = self._break_share = 0.0
        self._first_life = True

    def steps_to_crash(self) -> int | None:
        if not self._first_life:
            return None
        self._first_life = False
        return self.step


@pytest.mark.parametrize("first_step", range(1, 400, STEPS_PER_TEST))
def test_a_crash_at_any_step_is_recovered_from(
    first_step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.world.WorldFaults", _DieOnce)
    for step in set(STEPS).intersection(range(first_step, first_step + STEPS_PER_TEST)):
        monkeypatch.setattr(_DieOnce, "step", step)
        verdict = World(3, Mode.LIVENESS, action_count=6).run()
        assert verdict.problems == [], f"after a crash at step {step}"
        assert verdict.crash_count == 1
