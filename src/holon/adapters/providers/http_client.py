"""The real HTTP exchange, over httpx2.

Owns:  the client, its limits and timeouts, and the mapping of its errors. Nothing else among the
       providers imports the HTTP library.
Rule 1: redirects are not followed, certificates are verified: a credential goes only where it was
        configured to go. The operator's proxy is used, except for addresses of this machine.
Rule 2: a body is read up to its cap and no further. A whole answer has one deadline; a stream may
        last, but not fall silent. A stream's cap is wider: it says most things more than once, and
        what is kept of it has a cap of its own.
Rule 3: the credential of a call is masked in whatever the server says back before anyone reads it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeVar

import anyio
import httpx2

from holon.adapters.providers.exchange_errors import (
    ExchangeFacts,
    broken_exchange,
    is_usable_url,
    public_url,
    too_large,
    too_late,
)
from holon.adapters.providers.http_exchange import ExchangeTimeouts, HttpCall, HttpReply
from holon.adapters.providers.refusals import refused
from holon.adapters.system.clock import SystemClock
from holon.model.limits import (
    PROVIDER_ANSWER_BYTES_MAX,
    PROVIDER_ERROR_BYTES_MAX,
    PROVIDER_STREAM_BYTES_MAX,
    SECOND_MS,
)
from holon.model.provider_attempt import ExchangeStage, TransportDiagnostics
from holon.model.provider_errors import ModelUnavailableError, ProviderError
from holon.ports.clock import Clock

_Done = TypeVar("_Done")

_LIBRARY_ERRORS: Final = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    ValueError,  # a URL or header that cannot be written down at all
    OSError,
)
_CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "api-key")
_CREDENTIAL_CHARS_MIN: Final = 8  # masking something shorter would mangle ordinary words
_MASK: Final = b"[redacted]"
_THIS_MACHINE: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")


class HttpClientExchange:
    """Speaks HTTP. One for the whole runtime: connections are shared; close it at the end."""

    def __init__(
        self,
        timeouts: ExchangeTimeouts | None = None,
        *,
        client: httpx2.AsyncClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._timeouts = timeouts or ExchangeTimeouts()
        self._client = client
        self._clock = clock or SystemClock()

    async def aclose(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[HttpReply]:
        """Send the call and hand out its reply; leaving the block ends the exchange."""
        facts = ExchangeFacts(
            provider=call.provider, model_ref=call.model_ref, url=public_url(call.url)
        )
        deadline_s = anyio.current_time() + self._timeouts.answer_ms / SECOND_MS
        response = await self._send(call, facts, deadline_s)
        facts.received_head(response.status_code, response.headers, bytes_sent=len(call.body))
        reply = _Reply(response, facts, deadline_s, idle_ms=self._timeouts.idle_ms)
        try:
            if not 200 <= response.status_code < 300:
                raise await self._refusal(call, response, reply, facts)
            yield reply
        finally:
            # Also when cancelled: a connection with half an answer on it must not be used again.
            with anyio.CancelScope(shield=True):
                await _close(response)

    async def _send(
        self, call: HttpCall, facts: ExchangeFacts, deadline_s: float
    ) -> httpx2.Response:
        client = self._connected()
        try:
            if not is_usable_url(call.url):
                raise ValueError("not a URL")
            request = client.build_request(
                "POST", call.url, headers=_headers_of(call), content=call.body
            )
        except _LIBRARY_ERRORS as error:
            raise broken_exchange(error, facts) from None
        return await _in_time(
            lambda: client.send(request, stream=True, follow_redirects=False, auth=None),
            facts,
            deadline_s,
        )

    def _connected(self) -> httpx2.AsyncClient:
        # Made at first use: loading the certificates takes a while and many commands need none.
        if self._client is None:
            answer_s = self._timeouts.answer_ms / SECOND_MS
            connect_s = min(self._timeouts.connect_ms / SECOND_MS, answer_s)
            timeout = httpx2.Timeout(connect=connect_s, read=None, write=answer_s, pool=answer_s)
            self._client = _client_with(timeout)
        return self._client

    async def _refusal(
        self,
        call: HttpCall,
        response: httpx2.Response,
        reply: "_Reply",
        facts: ExchangeFacts,
    ) -> ProviderError:
        body = await reply.read_up_to(PROVIDER_ERROR_BYTES_MAX, self._timeouts.connect_ms)
        return refused(
            response.status_code,
            reply.headers,
            _masked(body, call.headers),
            diagnostics=facts.diagnostics(),
            now=self._clock.now(),
        )


def _client_with(timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """Return a client that goes through the operator's proxy, but never to this machine."""
    try:
        return httpx2.AsyncClient(
            verify=True,
            trust_env=True,  # HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE
            mounts=dict.fromkeys(_THIS_MACHINE),
            follow_redirects=False,
            timeout=timeout,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise ModelUnavailableError(
            "the proxy that the environment names cannot be used",
            hint="look at HTTPS_PROXY and ALL_PROXY; only http and https proxies are supported",
        ) from error


class _Reply:
    """A 2xx answer, read once."""

    def __init__(
        self, response: httpx2.Response, facts: ExchangeFacts, deadline_s: float, *, idle_ms: int
    ) -> None:
        self._response = response
        self._facts = facts
        self._deadline_s = deadline_s
        self._idle_s = idle_ms / SECOND_MS
        self._bytes_max = PROVIDER_ANSWER_BYTES_MAX
        self._headers = {name.lower(): value for name, value in response.headers.items()}

    @property
    def is_event_stream(self) -> bool:
        kind = self._headers.get("content-type", "").partition(";")[0]
        return kind.strip().lower() == "text/event-stream"

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    async def read(self) -> bytes:
        body = bytearray()
        pieces = self._response.aiter_bytes()
        while (piece := await self._next(pieces, self._deadline_s)) is not None:
            body += piece
        self._facts.stage = ExchangeStage.DECODE
        return bytes(body)

    async def chunks(self) -> AsyncIterator[bytes]:
        self._bytes_max = PROVIDER_STREAM_BYTES_MAX
        async with aclosing(self._response.aiter_bytes()) as pieces:
            while True:
                piece = await self._next(pieces, anyio.current_time() + self._idle_s)
                if piece is None:
                    break
                yield piece
        self._facts.stage = ExchangeStage.DECODE

    def diagnostics(self) -> TransportDiagnostics:
        return self._facts.diagnostics()

    async def read_up_to(self, bytes_max: int, wait_ms: int) -> bytes:
        """Return the beginning of a body whose loss would not matter."""
        body = bytearray()
        deadline_s = min(self._deadline_s, anyio.current_time() + wait_ms / SECOND_MS)
        pieces = self._response.aiter_bytes()
        try:
            while len(body) < bytes_max:
                piece = await self._next(pieces, deadline_s)
                if piece is None:
                    break
                body += piece
        except ProviderError:
            pass  # the status has said what matters
        return bytes(body[:bytes_max])

    async def _next(self, pieces: AsyncIterator[bytes], deadline_s: float) -> bytes | None:
        piece = await _in_time(lambda: anext(pieces, None), self._facts, deadline_s)
        if piece is not None:
            self._facts.bytes_received += len(piece)
            if self._facts.bytes_received > self._bytes_max:
                raise too_large(self._bytes_max, self._facts)
        return piece


async def _in_time(
    act: Callable[[], Awaitable[_Done]], facts: ExchangeFacts, deadline_s: float
) -> _Done:
    """Do one step of an exchange, every way it can fail mapped."""
    try:
        with anyio.fail_after(deadline_s - anyio.current_time()):
            return await act()
    except TimeoutError:
        raise too_late(facts) from None
    except _LIBRARY_ERRORS as error:
        raise broken_exchange(error, facts) from None


async def _close(response: httpx2.Response) -> None:
    try:
        with anyio.move_on_after(1):
            await response.aclose()
    except _LIBRARY_ERRORS:
        pass  # it is gone either way


def _headers_of(call: HttpCall) -> dict[str, str]:
    # Unpacked on purpose: a compressed stream arrives in lumps, and a bomb has no cap.
    return {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "holon",
        **{name.lower(): value for name, value in call.headers.items()},
    }


def _masked(body: bytes, headers: Mapping[str, str]) -> bytes:
    for name, value in headers.items():
        if name.lower() in _CREDENTIAL_HEADERS:
            secret = value.split(" ")[-1]
            if len(secret) >= _CREDENTIAL_CHARS_MIN:
                body = body.replace(secret.encode(), _MASK)
    return body
