"""A process that may open few files: whoever knocks waits or goes, and agents work on."""

import os
import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hostile.served import Served, World, until

HANDLES_COUNT = 64


def knock(served: Served) -> socket.socket:
    """Connect, and say nothing."""
    host, port = served.facts["http_addr"].rsplit(":", 1)
    knocking = socket.create_connection((host, int(port)))
    knocking.setblocking(False)
    return knocking


def was_shown_out(knocking: socket.socket) -> bool:
    """Whether the other side has closed a connection."""
    try:
        return knocking.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.requirement("hostile:few-handles-for-agents")
def test_agents_work_on_while_more_knock_than_there_are_handles(folder: Path) -> None:
    few = ("prlimit", f"--nofile={HANDLES_COUNT}:{HANDLES_COUNT}")
    world = World(folder=folder, home=folder / "home", before=few)
    with world.served() as served, ExitStack() as kept:
        allowed = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
        assert allowed == (HANDLES_COUNT, HANDLES_COUNT)
        knocks = [kept.enter_context(knock(served)) for _ in range(3 * HANDLES_COUNT)]
        until(lambda: all(was_shown_out(each) for each in knocks[:-HANDLES_COUNT]))
        served.prompt("hello")
        until(served.is_at_rest)
        assert served.ended_task(served.task("exit 0"))["status"] == "completed"
        assert served.end() == 0
        assert "Too many open files" not in world.said()
        assert "Traceback" not in world.said()


@pytest.mark.requirement("hostile:few-handles-back-off")
def test_who_knocks_when_no_handle_is_left_is_served_once_there_is(folder: Path) -> None:
    world = World(folder=folder, home=folder / "home")
    with world.served() as served:
        pid = served.process.pid
        before, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        lowest_free = 1 + max(int(number) for number in os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, hard))
        with knock(served):
            until(lambda: "accepting connections is paused: Too many open files" in world.said())
            assert served.is_alive()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (before, hard))
        served.prompt("hello")
        until(served.is_at_rest)
        assert served.end() == 0
        assert "Traceback" not in world.said()
