"""The HTTP exchange of a runtime: one client for this machine, one for all others.

Owns:  which client a call goes to, and that the HTTP library is loaded only for calls that need it:
       it is most of what a wire costs to import.
"""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from holon.adapters.providers.http_exchange import ExchangeTimeouts, HttpCall, HttpReply
from holon.adapters.providers.local_http import LocalHttpExchange, is_here
from holon.ports.clock import Clock

if TYPE_CHECKING:
    from holon.adapters.providers.http_client import HttpClientExchange


class Exchanges:
    """An HttpExchange for any address. Close it at the end."""

    def __init__(self, timeouts: ExchangeTimeouts, *, clock: Clock) -> None:
        self._timeouts = timeouts
        self._clock = clock
        self._here = LocalHttpExchange(timeouts, clock=clock)
        self._elsewhere: HttpClientExchange | None = None

    def open(self, call: HttpCall) -> AbstractAsyncContextManager[HttpReply]:
        """Send the call and hand out its reply; leaving the block ends the exchange."""
        if is_here(call.url):
            return self._here.open(call)
        if self._elsewhere is None:
            from holon.adapters.providers.http_client import HttpClientExchange

            self._elsewhere = HttpClientExchange(self._timeouts, clock=self._clock)
        return self._elsewhere.open(call)

    async def aclose(self) -> None:
        """Close every connection."""
        elsewhere, self._elsewhere = self._elsewhere, None
        await self._here.aclose()
        if elsewhere is not None:
            await elsewhere.aclose()
