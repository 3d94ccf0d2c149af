"""Where turns get through one by one when there are many.

Owns:  the pass of the event loop between two stretches of work that keep it busy. One commit may
       let many lanes go on at once; whoever asks something from outside would wait for all of them.
Rule 1: nobody stays in it. A lane is past it when its stretch begins, so that one which then waits
        for a slow disk keeps no other waiting.
Rule 2: a few turns go through together: what they write then becomes one group for the disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

TOGETHER_COUNT_MAX: Final = 8


class Turnstile:
    """Lets the turns of one host through."""

    def __init__(self) -> None:
        self._entry = anyio.Lock(fast_acquire=True)
        self._turn_count = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Count a turn while it runs."""
        self._turn_count += 1
        try:
            yield
        finally:
            self._turn_count -= 1

    async def pass_through(self) -> None:
        """Return when this lane may go on: one of many lets go before it whatever else is ready."""
        if self._turn_count > TOGETHER_COUNT_MAX:
            async with self._entry:
                await checkpoint()
