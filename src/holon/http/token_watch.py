"""Streams that are silent while their token changes.

Owns:  the one look at the token on behalf of every stream over TCP.
Rule 1: one look a second for however many streams there are, and none while there are none.
Rule 2: whoever is woken judges for itself whether it may go on; here is only said that there is
        reason to.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import anyio

from holon.http.access import Token
from holon.model.limits import SECOND_MS
from holon.ports.clock import Clock

TOKEN_LOOK_MS: Final = 1 * SECOND_MS


class TokenWatch:
    """Wakes the streams of one server when the token is another."""

    def __init__(self) -> None:
        self._stream_count = 0
        self._wanted = anyio.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Have the token looked at for as long as the block lasts."""
        self._stream_count += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._stream_count -= 1
            if not self._stream_count:
                self._wanted = anyio.Event()

    async def run(self, token: Token, clock: Clock, wake_all: Callable[[], None]) -> None:
        """Look until cancelled, and wake all when the token is not the one seen before."""
        while True:
            await self._wanted.wait()
            seen = token.digest()
            wake_all()  # who judged before this look judges again after it
            while self._stream_count:
                await clock.sleep_for(TOKEN_LOOK_MS)
                found = token.digest()
                if found != seen:
                    seen = found
                    wake_all()
