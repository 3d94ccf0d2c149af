"""The thread that waits for the disk, so that the event loop need not.

Owns:  one thread and the way back from it to the loop.
Rule 1: pieces of work run one after the other, in the order they were handed over.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TypeAlias

Work: TypeAlias = Callable[[], None]


class DiskThread:
    """Does what takes a while; handed work on the loop."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="holon-writer", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that is told; the first one that asks."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def do(self, work: Work) -> None:
        """Hand a piece of work over."""
        self._works.put(work)

    def end(self) -> None:
        """Let the thread end with the piece of work it does."""
        self._works.put(None)

    def join(self) -> None:
        """Wait for its end; not on the loop, which has to be told of the last piece."""
        self._thread.join()

    def tell(self, callback: Work) -> None:
        """On the thread: have the loop call something."""
        # A loop that is gone took everyone with it who could have been told.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback)

    def _serve(self) -> None:
        while (work := self._works.get()) is not None:
            work()
