"""A story that is told on over the ends of several event loops.

Owns:  keeping a test's coroutine alive while the process it talks to dies around it.
Rule 1: a crash ends every task where it stands; nothing gets to clean up.
Rule 2: a story that was waiting when the process died is told so by LifeLostError in the next life.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any

from tests.support.sim_loop import SimLoop

_CRASH = object()


class LifeLostError(Exception):
    """The process the story was waiting on has ended; a new one is up."""


class Telling:
    """One story."""

    def __init__(self, story: Coroutine[Any, Any, None]) -> None:
        self._story = story
        self._is_waiting = False
        self._host_is_dead = False
        self.is_over = False
        self.error: BaseException | None = None

    async def watch(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the host, and know whether it was the host that ended."""
        self._host_is_dead = False
        try:
            await run()
        except Exception:
            self._host_is_dead = True
            raise

    @coroutine
    def go_on(self) -> Generator[Any, Any, None]:
        """Tell on until the story ends or crashes the process."""
        error: BaseException | None = LifeLostError() if self._is_waiting else None
        self._is_waiting = False
        while True:
            try:
                awaited = self._story.throw(error) if error else self._story.send(None)
            except BaseException as end:
                self.is_over = True
                if isinstance(end, StopIteration):
                    return
                self.error = end
                raise
            if awaited is _CRASH:
                loop = asyncio.get_running_loop()
                assert isinstance(loop, SimLoop)
                loop.crash_at_step = 0
                yield None
            self._is_waiting = True
            try:
                yield awaited
                error = None
            except BaseException as thrown:
                if self._host_is_dead or isinstance(thrown, GeneratorExit):
                    raise
                error = thrown
            self._is_waiting = False


@coroutine
def crash_process() -> Generator[Any, Any, None]:
    """Await this in a story to kill the process; the story goes on in the next one."""
    yield _CRASH
