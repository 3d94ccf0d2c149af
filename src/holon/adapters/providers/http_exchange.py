"""One HTTP exchange with a provider, every foreign error mapped to a ProviderError.

Owns:  what a wire asks for and what it gets. The client behind it is http_client, the only module
       that drives the HTTP library; a wire never sees it.
Rule 1: redirects are never followed: a credential goes only where it was configured to go.
Rule 2: an answer is read up to its cap and no further; a silent stream is cut by the idle timeout,
        and one that only ever shows that it is alive by the longest time a stream may take.
Rule 3: what leaves here (errors, diagnostics) carries no header and no body, only named facts.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from holon.model.limits import (
    PROVIDER_CONNECT_TIMEOUT_MS_DEFAULT,
    PROVIDER_HTTP_TIMEOUT_MS_DEFAULT,
    PROVIDER_STREAM_IDLE_MS_DEFAULT,
    PROVIDER_STREAM_MS_MAX,
)
from holon.model.provider_attempt import TransportDiagnostics
from holon.model.record import Record


class ExchangeTimeouts(Record, frozen=True, kw_only=True):
    """How long to wait for what."""

    connect_ms: int = PROVIDER_CONNECT_TIMEOUT_MS_DEFAULT
    answer_ms: int = PROVIDER_HTTP_TIMEOUT_MS_DEFAULT  # a whole answer that is not streamed
    idle_ms: int = PROVIDER_STREAM_IDLE_MS_DEFAULT  # between two pieces of a stream
    stream_ms: int = PROVIDER_STREAM_MS_MAX  # a whole stream


class HttpCall(Record, frozen=True, kw_only=True):
    """A POST with a JSON body, as a wire asks for it."""

    provider: str
    model_ref: str
    url: str
    headers: Mapping[str, str]  # with the credential; `content-type` is added
    body: bytes


class HttpReply(Protocol):
    """A 2xx answer whose body has not been read yet."""

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is `text/event-stream`."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers, names in lower case."""
        ...

    async def read(self) -> bytes:
        """Return the whole body (capped; the answer timeout applies)."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives (capped; the idle timeout applies between pieces)."""
        ...

    def diagnostics(self) -> TransportDiagnostics:
        """What is known of the exchange so far: url, status, request id, bytes."""
        ...


class HttpExchange(Protocol):
    """Sends a call; any status but 2xx has become the right ProviderError (see refusals.py)."""

    def open(self, call: HttpCall) -> AbstractAsyncContextManager[HttpReply]:
        """Send the call and hand out its reply; leaving the block ends the exchange."""
        ...
