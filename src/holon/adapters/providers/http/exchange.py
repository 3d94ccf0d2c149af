"""The HTTP exchange between a provider protocol and an HTTP client.

Owns:  the call and the reply as a protocol sees them, the facts recorded about a running exchange,
       and the ProviderError made of a failure. The clients (local_client, remote_client) map their
       own exceptions.
Rule 1: redirects are never followed: a credential goes only where it was configured to go.
Rule 2: a body is read up to its cap; a silent stream is ended by the idle timeout, and one that
        only sends keep-alives by the maximum stream duration.
Rule 3: errors and diagnostics carry no header and no body, only named facts.
Rule 4: the stage tells connect, head and body failures apart.
Rule 5: an exception that may quote a header or an address is named by its class only.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from holon.adapters.providers.refusals import redacted_line
from holon.model.limits import (
    PROVIDER_CONNECT_TIMEOUT_MS_DEFAULT,
    PROVIDER_HTTP_TIMEOUT_MS_DEFAULT,
    PROVIDER_SOURCE_CHAIN_COUNT_MAX,
    PROVIDER_STREAM_IDLE_MS_DEFAULT,
    PROVIDER_STREAM_MS_MAX,
)
from holon.model.providers.attempts import (
    ExchangeStage,
    FailureFlags,
    ModelUnavailableError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    TransportDiagnostics,
    UnreadableResponseError,
)
from holon.model.record import Record

_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
UNSENDABLE: Final = "the provider's address or a header of the request cannot be used"


class ExchangeTimeouts(Record, frozen=True, kw_only=True):
    """The timeouts of an exchange."""

    connect_ms: int = PROVIDER_CONNECT_TIMEOUT_MS_DEFAULT
    answer_ms: int = PROVIDER_HTTP_TIMEOUT_MS_DEFAULT  # a whole answer that is not streamed
    idle_ms: int = PROVIDER_STREAM_IDLE_MS_DEFAULT  # between two pieces of a stream
    stream_ms: int = PROVIDER_STREAM_MS_MAX  # a whole stream


class HttpCall(Record, frozen=True, kw_only=True):
    """A POST request with a JSON body."""

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
        """The facts of the exchange so far: url, status, request id, bytes."""
        ...


class HttpExchange(Protocol):
    """Sends a call; any status but 2xx raises a ProviderError (see refusals.py)."""

    def open(self, call: HttpCall) -> AbstractAsyncContextManager[HttpReply]:
        """Send the call and yield its reply; leaving the block ends the exchange."""
        ...


class ErrorMeaning(NamedTuple):
    """How an exception is reported: error class, stage and message."""

    kind: type[ProviderError]
    stage: ExchangeStage
    sentence: str


class ExchangeFacts(msgspec.Struct, kw_only=True):
    """The facts of one exchange, updated while it runs."""

    provider: str
    model_ref: str
    url: str
    stage: ExchangeStage = ExchangeStage.CONNECT
    status: int | None = None
    request_id: str | None = None
    bytes_sent: int | None = None
    bytes_received: int = 0

    def received_head(self, status: int, headers: Mapping[str, str], *, bytes_sent: int) -> None:
        """Record the response head."""
        self.stage = ExchangeStage.RESPONSE_BODY
        self.status = status
        self.bytes_sent = bytes_sent
        request_id = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
        self.request_id = None if request_id is None else redacted_line(request_id)

    def diagnostics(self) -> TransportDiagnostics:
        """Return the facts so far."""
        return TransportDiagnostics(
            stage=self.stage,
            provider=self.provider,
            model_ref=self.model_ref,
            url=self.url,
            status=self.status,
            request_id=self.request_id,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
        )


@lru_cache(maxsize=64)
def public_url(url: str) -> str:
    """Return a URL without user, query and fragment."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "(not a URL)"
    host = parts.hostname or ""
    bracketed = f"[{host}]" if ":" in host else host
    return redacted_line(f"{parts.scheme}://{bracketed}{port}{parts.path}")


def is_usable_url(url: str) -> bool:
    """Whether requests to a URL are possible. The library checks this late and incompletely."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, or brackets that do not close
        return False


def timeout_error(facts: ExchangeFacts) -> ProviderTimeoutError:
    """Return the error for a passed deadline."""
    is_body = facts.stage is ExchangeStage.RESPONSE_BODY
    waited_for = "the rest of the answer" if is_body else "an answer"
    flags = FailureFlags(is_timeout=True, is_body=is_body, status=facts.status)
    if not is_body:
        facts.stage = ExchangeStage.RESPONSE_HEAD
    return ProviderTimeoutError(
        f"the provider took too long to send {waited_for}",
        diagnostics=msgspec.structs.replace(facts.diagnostics(), flags=flags),
    )


def size_error(bytes_max: int, facts: ExchangeFacts) -> UnreadableResponseError:
    """Return the error for a body beyond its cap."""
    flags = FailureFlags(is_body=True, status=facts.status)
    return UnreadableResponseError(
        f"the answer has more than {bytes_max} bytes",
        diagnostics=msgspec.structs.replace(facts.diagnostics(), flags=flags),
    )


def may_quote_request(error: BaseException) -> bool:
    """Whether the message of an error may quote the request, which holds the credential."""
    return isinstance(error, ValueError) and not isinstance(error, OSError)


def exchange_error(
    error: Exception,
    meaning: ErrorMeaning,
    facts: ExchangeFacts,
    *,
    is_quoting: Callable[[BaseException], bool] = may_quote_request,
) -> ProviderError:
    """Return the ProviderError for an exception of an exchange."""
    kind, stage, sentence = meaning
    facts.stage = stage
    is_connect = stage is ExchangeStage.CONNECT
    flags = FailureFlags(
        is_timeout=kind is ProviderTimeoutError,
        is_connect=is_connect,
        is_request=stage is ExchangeStage.REQUEST,
        is_body=stage is ExchangeStage.RESPONSE_BODY,
        is_decode=kind is UnreadableResponseError,
        status=facts.status,
    )
    chain = tuple(_source_chain(error, is_quoting))
    message = f"{sentence}: {chain[-1]}" if is_connect and chain else sentence
    diagnostics = msgspec.structs.replace(facts.diagnostics(), flags=flags, source_chain=chain)
    return kind(redacted_line(message), hint=_hint(kind), diagnostics=diagnostics)


def _hint(kind: type[ProviderError]) -> str | None:
    if kind is ProviderUnreachableError:
        return "check the network and the provider's base URL"
    if kind is ModelUnavailableError:
        return "check the provider's base URL, and its credential for stray characters"
    return None


def _source_chain(
    error: BaseException, is_quoting: Callable[[BaseException], bool]
) -> Iterator[str]:
    visited: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in visited:
        if len(visited) == PROVIDER_SOURCE_CHAIN_COUNT_MAX:
            return
        visited.append(current)
        name = type(current).__name__
        text = "" if is_quoting(current) else str(current)
        yield redacted_line(f"{name}: {text}" if text else name)
        current = current.__cause__ or current.__context__
