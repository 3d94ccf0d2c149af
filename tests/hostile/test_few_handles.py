"""A process that may open few files: whoever knocks waits in line, and nobody ends the service."""

import os
import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hostile.served import World, until

HANDLES_COUNT = 64


@pytest.mark.requirement("hostile:few-handles-back-off")
def test_more_connections_than_handles_are_waited_out(folder: Path) -> None:
    few = ("prlimit", f"--nofile={HANDLES_COUNT}:{HANDLES_COUNT}")
    world = World(folder=folder, home=folder / "home", before=few)
    with world.served() as served:
        pid = served.process.pid
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (HANDLES_COUNT, HANDLES_COUNT)
        host, port = served.facts["http_addr"].rsplit(":", 1)
        with ExitStack() as knocking:
            for _ in range(3 * HANDLES_COUNT):
                knocking.enter_context(socket.create_connection((host, int(port))))
            until(lambda: len(os.listdir(f"/proc/{pid}/fd")) >= HANDLES_COUNT)
            assert served.is_alive()
        served.prompt("hello")
        until(served.is_at_rest)
        assert served.ended_task(served.task("exit 0"))["status"] == "completed"
        assert "Traceback" not in world.said()
        assert served.end() == 0
