"""A wall clock that is set while a service runs: nothing is lost, nothing happens twice."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.served import Served, World, until
from tests.hostile.system_library import environ_with, set_wall_clock

HOUR_S = 3_600
HOUR_MS = 1_000 * HOUR_S


def fires_of(served: Served, timer_id: str) -> list[dict[str, Any]]:
    """Every time a timer fired, as the log has it."""
    told = [one["payload"] for one in served.events() if one["type"] == "timer_fired"]
    return [one for one in told if one["timer_id"] == timer_id]


def arm(served: Served, **asked: int) -> str:
    armed = served.post("/control/agents/main/timers", {"summary": "a timer", **asked})
    return str(armed["timer"]["id"])


@pytest.mark.requirement("hostile:clock-jumps-and-timers")
@pytest.mark.requirement("hostile:clock-jumps-and-order")
@pytest.mark.requirement("hostile:clock-jumps-and-ownership")
@pytest.mark.requirement("hostile:pauses-ignore-the-wall-clock")
def test_a_wall_clock_that_is_set_loses_no_timer_and_fires_none_twice(
    folder: Path, switches: Path, hostile_world: Path
) -> None:
    environ = environ_with(hostile_world, switches)
    world = World(folder=folder, home=folder / "home", environ=environ)
    with world.served() as served:
        once = arm(served, duration_ms=HOUR_MS)
        again = arm(served, duration_ms=2 * HOUR_MS, interval_ms=2 * HOUR_MS)
        late = arm(served, duration_ms=100 * HOUR_MS)
        served.prompt("hold on")  # a turn that lives through it all
        until((folder / "here").exists)

        set_wall_clock(switches, by_s=8 * HOUR_S)
        until(lambda: fires_of(served, once) and fires_of(served, again))
        set_wall_clock(switches, by_s=-24 * HOUR_S)
        second = world.refused()  # whose home it is does not depend on the time
        assert (second.returncode, "in use" in second.stderr) == (2, True)
        served.open_gate()
        served.prompt("hello")
        until(served.is_at_rest)
        fires = {each: len(fires_of(served, each)) for each in (once, again, late)}
        assert fires == {once: 1, again: 1, late: 0}
        moments = require_in_order(served.events())
        assert moments != sorted(moments), "the clock was really set back"

        set_wall_clock(switches, by_s=0)
        served.prompt("hello again")
        until(served.is_at_rest)
        assert {each: len(fires_of(served, each)) for each in fires} == fires
        require_in_order(served.events())
        assert "Traceback" not in world.said()
        assert served.end() == 0


def require_in_order(events: list[dict[str, Any]]) -> list[datetime]:
    """The log counts 1, 2, 3 …; return the moments it has, in its order."""
    assert [one["event_seq"] for one in events] == list(range(1, len(events) + 1))
    return [datetime.fromisoformat(one["ts"]) for one in events]
