"""Looking at real processes in tests, without waiting for luck."""

import time
from collections.abc import Callable

import anyio.to_thread

from holon.adapters.exec.process_table import facts_of
from holon.ports.tasks import RunningCommand

PATIENCE_S = 60.0


def gone(pid: int) -> bool:
    """Whether nothing lives under a number."""
    return facts_of(pid) is None


def wait_until(question: Callable[[], bool]) -> None:
    """Return once something is so; a test that waits in vain fails."""
    until = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < until
        time.sleep(0.01)


async def becomes(question: Callable[[], bool]) -> None:
    """Return once something is so, while the loop goes on."""
    await anyio.to_thread.run_sync(wait_until, question)


async def line_of(command: RunningCommand) -> bytes:
    """Return the first line a command writes, as soon as it has."""

    def written() -> bytes:
        return command.output(head_bytes=10_000, tail_bytes=0)[0].head

    await becomes(lambda: b"\n" in written())
    return written().splitlines()[0]
