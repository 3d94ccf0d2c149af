"""A turn that hangs the whole runtime, start after start, is given up; everything else goes on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holon.decide.turns.failures import TURN_SET_ASIDE
from tests.hostile.hanging_service import WORDS
from tests.hostile.served import PATIENCE_S, Served, World, until


@pytest.fixture
def hanging(folder: Path) -> World:
    """A world whose service keeps the processor for good once it reads certain words."""
    program = (sys.executable, "-m", "tests.hostile.hanging_service")
    root = str(Path(__file__).parents[2])
    return World(folder=folder, home=folder / "home", program=program, environ={"PYTHONPATH": root})


@contextmanager
def started(world: World) -> Iterator["subprocess.Popen[str]"]:
    """A service that may hang before it says that it is ready."""
    with (world.folder / "said").open("ab") as said:
        process = subprocess.Popen(
            world.command("--json"), env=world.variables(), stdout=said, stderr=said, text=True
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait(timeout=PATIENCE_S)


def wait_until_hung(world: World, pid: int) -> None:
    until((world.folder / f"hung.{pid}").exists)


def failures(served: Served, agent_id: str) -> list[dict[str, Any]]:
    briefs = served.get(f"/agents/{agent_id}/briefs")["briefs"]
    return [dict(each["failure"]) for each in briefs if each.get("failure")]


@pytest.mark.requirement("hostile-text:a-turn-that-ends-the-process-twice-is-set-aside")
@pytest.mark.requirement("hostile-text:only-the-turn-at-work-is-blamed")
def test_a_turn_that_hangs_two_processes_is_set_aside_by_the_third(hanging: World) -> None:
    with hanging.served() as served:
        served.post("/control/agents/other/create")
        served.post("/control/agents/other/prompt", {"text": "hold on"})
        until((hanging.folder / "here").exists)  # in the middle of a turn, and waiting
        served.post("/control/agents/main/prompt", {"text": WORDS})
        wait_until_hung(hanging, served.process.pid)
        kill(served.process)
    with started(hanging) as second:
        wait_until_hung(hanging, second.pid)
        kill(second)
    with hanging.served() as served:
        until(served.is_at_rest)
        assert [each["kind"] for each in failures(served, "main")] == [TURN_SET_ASIDE]
        until(lambda: served.get("/agents/other/briefs")["briefs"])
        assert failures(served, "other") == []
        served.prompt("what was that?")
        until(lambda: len(served.get("/agents/main/briefs")["briefs"]) == 2)
        assert len(failures(served, "main")) == 1
        assert served.end() == 0
    assert len([each for each in os.listdir(hanging.folder) if each.startswith("hung.")]) == 2


@pytest.mark.requirement("hostile-text:the-operator-is-told-once")
def test_the_operator_is_told_of_a_turn_that_was_set_aside_once(hanging: World) -> None:
    with hanging.served() as served:
        message_id = served.prompt(WORDS)
        wait_until_hung(hanging, served.process.pid)
        kill(served.process)
    with started(hanging) as second:
        wait_until_hung(hanging, second.pid)
        kill(second)
    for _ in range(2):
        with hanging.served() as served:
            until(served.is_at_rest)
            (failure,) = failures(served, "main")
            assert failure["kind"] == TURN_SET_ASIDE
            assert failure["recovery_hint"]
            (brief,) = served.get("/agents/main/briefs")["briefs"]
            assert brief["related_message_id"] == message_id
            assert served.end() == 0


@pytest.mark.requirement("hostile-text:a-stop-works-while-text-is-read")
@pytest.mark.parametrize("unit", ["< ", "<", " ", "# ", "\n", "[", "\u200b", "<!-- "])
def test_a_stop_works_at_once_with_a_megabyte_of_hostile_text_on_its_way(
    world: World, unit: str
) -> None:
    text = "<" + unit * (900_000 // len(json.dumps(unit)))
    with world.served() as served:
        served.prompt(text)
        assert served.end() == 0
    with world.served() as served:
        until(lambda: served.get("/agents/main/briefs")["briefs"])
        assert served.end() == 0
