"""Failpoints fail where they are armed, and a misspelt one is an error."""

import signal
import subprocess
import sys

import pytest

from holon.model.errors import BadInputError
from holon.ports.failpoint import Failpoint, NoFailpoints
from tests.support.armed_failpoints import (
    Armed,
    ArmedFailpoints,
    FailAction,
    FailpointError,
    parse_failpoints,
)


def test_the_setting_names_points_actions_and_visits() -> None:
    assert parse_failpoints("round.after_commit=kill@3; admit.before_commit=raise ;") == {
        Failpoint.ROUND_AFTER_COMMIT: Armed(FailAction.KILL, 3),
        Failpoint.ADMIT_BEFORE_COMMIT: Armed(FailAction.RAISE, 1),
    }
    assert parse_failpoints("") == {}


@pytest.mark.parametrize(
    "text",
    ["nowhere=kill", "admit.before_commit", "admit.before_commit=faint", "tool.before_done=kill@x"],
)
def test_a_misspelt_setting_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadInputError, match="is not a failpoint"):
        parse_failpoints(text)


async def test_a_point_fails_at_its_visit_and_only_then() -> None:
    armed = ArmedFailpoints({Failpoint.TOOL_BEFORE_DONE: Armed(FailAction.RAISE, 2)})
    await armed.reach(Failpoint.TOOL_BEFORE_DONE)
    await armed.reach(Failpoint.TOOL_AFTER_DONE)
    with pytest.raises(FailpointError, match=r"tool\.before_done"):
        await armed.reach(Failpoint.TOOL_BEFORE_DONE)
    await armed.reach(Failpoint.TOOL_BEFORE_DONE)
    assert armed.visits[Failpoint.TOOL_BEFORE_DONE] == 3
    assert armed.visits[Failpoint.TOOL_AFTER_DONE] == 1


async def test_production_points_do_nothing() -> None:
    for point in Failpoint:
        await NoFailpoints().reach(point)


def test_kill_leaves_no_chance_to_clean_up() -> None:
    program = (
        "import asyncio, atexit\n"
        "from tests.support.armed_failpoints import ArmedFailpoints, parse_failpoints\n"
        "from holon.ports.failpoint import Failpoint\n"
        "atexit.register(print, 'cleaned up')\n"
        "points = ArmedFailpoints(parse_failpoints('admit.before_commit=kill'))\n"
        "asyncio.run(points.reach(Failpoint.ADMIT_BEFORE_COMMIT))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ran.returncode == -signal.SIGKILL
    assert ran.stdout == b""


def test_term_asks_the_process_to_end_and_stays_until_it_is_cut_off() -> None:
    program = (
        "import asyncio, signal\n"
        "from tests.support.armed_failpoints import ArmedFailpoints, parse_failpoints\n"
        "from holon.ports.failpoint import Failpoint\n"
        "points = ArmedFailpoints(parse_failpoints('task.after_start=term'))\n"
        "async def main():\n"
        "    there = asyncio.ensure_future(points.reach(Failpoint.TASK_AFTER_START))\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, there.cancel)\n"
        "    try:\n"
        "        await there\n"
        "    except asyncio.CancelledError:\n"
        "        print('cut off')\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout == b"cut off\n"
