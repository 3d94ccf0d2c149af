"""The general HTTP client, over httpx2.

Owns:  the client with its limits and timeouts, and the mapping of its exceptions. Only this module
       imports the HTTP library.
Rule 1: every exception the library may raise has a row in the mapping; the last row is a broken
        connection.
Rule 2: redirects are not followed and certificates are verified: a credential goes only where it
        was configured to go. The operator's proxy is used, except for addresses of this machine.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx2

from holon.adapters.providers.http.exchange import (
    UNSENDABLE,
    ErrorMeaning,
    ExchangeFacts,
    ExchangeTimeouts,
    HttpCall,
    HttpReply,
    exchange_error,
    is_usable_url,
    may_quote_request,
    public_url,
)
from holon.adapters.providers.http.reply import (
    CappedReply,
    ErrorMapping,
    ReplyTimeouts,
    headers_of,
    refusal,
    run_step,
)
from holon.adapters.system.clock import SystemClock
from holon.model.limits import SECOND_MS
from holon.model.providers.attempts import (
    ExchangeStage,
    ModelUnavailableError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    UnreadableResponseError,
)
from holon.ports.clock import Clock

LIBRARY_ERRORS: Final = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    ValueError,  # a URL or header that cannot be written down at all
    OSError,
)
# How the library words a connection that ended early, as opposed to one that spoke nonsense.
_ENDED_EARLY: Final = ("server disconnected", "peer closed connection")
_THIS_MACHINE: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")


def library_error(error: Exception, facts: ExchangeFacts) -> ProviderError:
    """Return the ProviderError for whatever the HTTP library raised."""
    return exchange_error(error, _meaning_of(error, facts.stage), facts, is_quoting=_is_quoting)


def _is_quoting(error: BaseException) -> bool:
    is_librarys = isinstance(error, httpx2.LocalProtocolError | httpx2.InvalidURL)
    return is_librarys or may_quote_request(error)


def _meaning_of(error: Exception, stage: ExchangeStage) -> ErrorMeaning:
    """Name the class, the stage and the sentence. First matching row wins."""
    in_body = stage is ExchangeStage.RESPONSE_BODY
    reading = ExchangeStage.RESPONSE_BODY if in_body else ExchangeStage.RESPONSE_HEAD
    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return ErrorMeaning(
                ProviderTimeoutError, ExchangeStage.CONNECT, "connecting took too long"
            )
        case httpx2.WriteTimeout():
            return ErrorMeaning(
                ProviderTimeoutError, ExchangeStage.REQUEST, "sending took too long"
            )
        case httpx2.TimeoutException():
            return ErrorMeaning(
                ProviderTimeoutError, reading, "the provider took too long to respond"
            )
        case httpx2.ConnectError() | httpx2.ProxyError():
            return ErrorMeaning(
                ProviderUnreachableError, ExchangeStage.CONNECT, "could not connect"
            )
        case httpx2.WriteError():
            return ErrorMeaning(
                ProviderUnreachableError, ExchangeStage.REQUEST, "the connection broke"
            )
        case httpx2.RemoteProtocolError() if not _ended_early(error):
            return ErrorMeaning(
                UnreadableResponseError, reading, "the provider sent malformed HTTP"
            )
        case httpx2.DecodingError():
            return ErrorMeaning(UnreadableResponseError, reading, "the answer's encoding is broken")
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return ErrorMeaning(ModelUnavailableError, ExchangeStage.REQUEST, UNSENDABLE)
        case ValueError() if not isinstance(error, OSError):  # a certificate error is both
            return ErrorMeaning(ModelUnavailableError, ExchangeStage.REQUEST, UNSENDABLE)
        case _:
            return ErrorMeaning(ProviderUnreachableError, reading, "the connection broke")


def _ended_early(error: Exception) -> bool:
    return str(error).lower().startswith(_ENDED_EARLY)


_ERROR_MAPPING: Final = ErrorMapping(LIBRARY_ERRORS, library_error)


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
        timeouts = ReplyTimeouts.since(anyio.current_time(), self._timeouts, _ERROR_MAPPING)
        response = await self._send(call, facts, timeouts.deadline_s)
        facts.received_head(response.status_code, response.headers, bytes_sent=len(call.body))
        headers = {name.lower(): value for name, value in response.headers.items()}
        reply = CappedReply(headers, response.aiter_bytes(), facts, timeouts)
        try:
            if not 200 <= response.status_code < 300:
                wait_ms = self._timeouts.connect_ms
                raise await refusal(call, reply, facts, wait_ms=wait_ms, clock=self._clock)
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
                "POST", call.url, headers=headers_of(call), content=call.body
            )
        except LIBRARY_ERRORS as error:
            raise library_error(error, facts) from None
        return await run_step(
            lambda: client.send(request, stream=True, follow_redirects=False, auth=None),
            facts,
            deadline_s,
            _ERROR_MAPPING,
        )

    def _connected(self) -> httpx2.AsyncClient:
        # Made at first use: loading the certificates takes a while and many commands need none.
        if self._client is None:
            answer_s = self._timeouts.answer_ms / SECOND_MS
            connect_s = min(self._timeouts.connect_ms / SECOND_MS, answer_s)
            timeout = httpx2.Timeout(connect=connect_s, read=None, write=answer_s, pool=answer_s)
            self._client = _client_with(timeout)
        return self._client


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


async def _close(response: httpx2.Response) -> None:
    try:
        with anyio.move_on_after(1):
            await response.aclose()
    except LIBRARY_ERRORS:
        pass  # it is gone either way
