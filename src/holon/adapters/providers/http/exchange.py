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

from holon.adapters.providers.refusals import keyless_line
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


_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
UNSENDABLE: Final = "the provider's address or a header of the request cannot be used"


class ErrorMeaning(NamedTuple):
    """What an error says of an exchange."""

    kind: type[ProviderError]
    stage: ExchangeStage
    sentence: str


class ExchangeFacts(msgspec.Struct, kw_only=True):
    """What is known of one exchange, growing as it goes."""

    provider: str
    model_ref: str
    url: str
    stage: ExchangeStage = ExchangeStage.CONNECT
    status: int | None = None
    request_id: str | None = None
    bytes_sent: int | None = None
    bytes_received: int = 0

    def received_head(self, status: int, headers: Mapping[str, str], *, bytes_sent: int) -> None:
        """Take down what the response head says."""
        self.stage = ExchangeStage.RESPONSE_BODY
        self.status = status
        self.bytes_sent = bytes_sent
        found = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
        self.request_id = None if found is None else keyless_line(found)

    def diagnostics(self) -> TransportDiagnostics:
        """Return what is known so far."""
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
    """Return an address without its user, query and fragment."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "(not a URL)"
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return keyless_line(f"{parts.scheme}://{shown}{port}{parts.path}")


def is_usable_url(url: str) -> bool:
    """Whether an address can be sent to at all. The library finds out too late, and not always."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, or brackets that do not close
        return False


def too_late(facts: ExchangeFacts) -> ProviderTimeoutError:
    """Return the error for a deadline of ours that passed."""
    is_body = facts.stage is ExchangeStage.RESPONSE_BODY
    waited_for = "the rest of the answer" if is_body else "an answer"
    flags = FailureFlags(is_timeout=True, is_body=is_body, status=facts.status)
    if not is_body:
        facts.stage = ExchangeStage.RESPONSE_HEAD
    return ProviderTimeoutError(
        f"the provider kept us waiting too long for {waited_for}",
        diagnostics=msgspec.structs.replace(facts.diagnostics(), flags=flags),
    )


def too_large(bytes_max: int, facts: ExchangeFacts) -> UnreadableResponseError:
    """Return the error for an answer beyond its cap."""
    flags = FailureFlags(is_body=True, status=facts.status)
    return UnreadableResponseError(
        f"the answer has more than {bytes_max} bytes",
        diagnostics=msgspec.structs.replace(facts.diagnostics(), flags=flags),
    )


def quotes_the_request(error: BaseException) -> bool:
    """Whether the message of an error may quote the request, which holds the credential."""
    return isinstance(error, ValueError) and not isinstance(error, OSError)


def broken_exchange(
    error: Exception,
    meaning: ErrorMeaning,
    facts: ExchangeFacts,
    *,
    is_quoting: Callable[[BaseException], bool] = quotes_the_request,
) -> ProviderError:
    """Return the ProviderError for whatever broke an exchange."""
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
    told = f"{sentence}: {chain[-1]}" if is_connect and chain else sentence
    diagnostics = msgspec.structs.replace(facts.diagnostics(), flags=flags, source_chain=chain)
    return kind(keyless_line(told), hint=_hint(kind), diagnostics=diagnostics)


def _hint(kind: type[ProviderError]) -> str | None:
    if kind is ProviderUnreachableError:
        return "check the network and the provider's base URL"
    if kind is ModelUnavailableError:
        return "check the provider's base URL, and its credential for stray characters"
    return None


def _source_chain(
    error: BaseException, is_quoting: Callable[[BaseException], bool]
) -> Iterator[str]:
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        if len(seen) == PROVIDER_SOURCE_CHAIN_COUNT_MAX:
            return
        seen.append(current)
        name = type(current).__name__
        text = "" if is_quoting(current) else str(current)
        yield keyless_line(f"{name}: {text}" if text else name)
        current = current.__cause__ or current.__context__
