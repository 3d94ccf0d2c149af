"""Turns of those who have not shown who they are, one in each pass of the event loop.

Owns:  the line in which strangers wait before anything they sent is read as HTTP.
Rule 1: in each pass one goes on, and then whatever else is ready: the operator's socket, agents and
        timers never wait for a crowd of strangers, however much it sends.
Rule 2: each peer has a line of its own, and the lines take turns: a peer with many connections, or
        with many requests on one of them, keeps another peer waiting for one turn and no more.
Rule 3: who has stopped waiting leaves the line.
"""

from collections import OrderedDict

import anyio
from anyio.lowlevel import checkpoint


class FairShare:
    """Lets strangers of one server go on."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, dict[anyio.Event, None]] = OrderedDict()
        self._knock = anyio.Event()

    async def turn(self, address: str) -> None:
        """Return when it is this stranger's turn."""
        mine = anyio.Event()
        self._lines.setdefault(address, {})[mine] = None
        self._knock.set()
        try:
            await mine.wait()
        finally:
            self._leave(address, mine)

    async def run(self) -> None:
        """Give turns until cancelled."""
        while True:
            await self._knock.wait()
            while self._lines:
                self._give()
                await checkpoint()
            self._knock = anyio.Event()

    def _give(self) -> None:
        """Let the first of the next line go on."""
        address, line = next(iter(self._lines.items()))
        first = next(iter(line))
        self._lines.move_to_end(address)
        self._leave(address, first)
        first.set()

    def _leave(self, address: str, waiting: anyio.Event) -> None:
        line = self._lines.get(address)
        if line is None:
            return
        line.pop(waiting, None)
        if not line:
            del self._lines[address]
