"""How a broken exchange is told: the error of the HTTP library becomes a ProviderError.

Owns:  what is known of a running exchange, and the one mapping from the library's errors.
Rule 1: the stage is where the exchange stood, so connect, head and body failures stay apart.
Rule 2: an error that may quote a header or an address is named by its class alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from holon.adapters.providers.refusals import one_line
from holon.model.limits import PROVIDER_SOURCE_CHAIN_COUNT_MAX
from holon.model.provider_attempt import ExchangeStage, FailureFlags, TransportDiagnostics
from holon.model.provider_errors import (
    ModelUnavailableError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    UnreadableResponseError,
)

_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
# Their messages quote the request, which holds the credential.
_QUOTES_THE_REQUEST: Final = (httpx2.LocalProtocolError, httpx2.InvalidURL, ValueError)
# How the library words a connection that ended early, as opposed to one that spoke nonsense.
_ENDED_EARLY: Final = ("server disconnected", "peer closed connection")


@dataclass(kw_only=True, slots=True)
class ExchangeFacts:
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
        self.request_id = None if found is None else one_line(found)

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


def public_url(url: str) -> str:
    """Return an address without its user, query and fragment."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "(not a URL)"
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return one_line(f"{parts.scheme}://{shown}{port}{parts.path}")


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


def broken_exchange(error: Exception, facts: ExchangeFacts) -> ProviderError:
    """Return the ProviderError for whatever the HTTP library raised."""
    kind, stage, sentence = _meaning_of(error, facts.stage)
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
    chain = tuple(_source_chain(error))
    told = f"{sentence}: {chain[-1]}" if is_connect and chain else sentence
    diagnostics = msgspec.structs.replace(facts.diagnostics(), flags=flags, source_chain=chain)
    return kind(one_line(told), hint=_hint(kind), diagnostics=diagnostics)


def _meaning_of(
    error: Exception, stage: ExchangeStage
) -> tuple[type[ProviderError], ExchangeStage, str]:
    """Name the class, the stage and the sentence. First matching row wins."""
    in_body = stage is ExchangeStage.RESPONSE_BODY
    reading = ExchangeStage.RESPONSE_BODY if in_body else ExchangeStage.RESPONSE_HEAD
    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return ProviderTimeoutError, ExchangeStage.CONNECT, "connecting took too long"
        case httpx2.WriteTimeout():
            return ProviderTimeoutError, ExchangeStage.REQUEST, "sending took too long"
        case httpx2.TimeoutException():
            return ProviderTimeoutError, reading, "the provider kept us waiting too long"
        case httpx2.ConnectError() | httpx2.ProxyError():
            return ProviderUnreachableError, ExchangeStage.CONNECT, "could not connect"
        case httpx2.WriteError():
            return ProviderUnreachableError, ExchangeStage.REQUEST, "the connection broke"
        case httpx2.RemoteProtocolError() if not _ended_early(error):
            return UnreadableResponseError, reading, "the provider does not speak proper HTTP"
        case httpx2.DecodingError():
            return UnreadableResponseError, reading, "the answer's encoding is broken"
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return ModelUnavailableError, ExchangeStage.REQUEST, _UNSENDABLE
        case ValueError() if not isinstance(error, OSError):  # a certificate error is both
            return ModelUnavailableError, ExchangeStage.REQUEST, _UNSENDABLE
        case _:
            return ProviderUnreachableError, reading, "the connection broke"


_UNSENDABLE: Final = "the provider's address or a header of the request cannot be used"


def _ended_early(error: Exception) -> bool:
    return str(error).lower().startswith(_ENDED_EARLY)


def _hint(kind: type[ProviderError]) -> str | None:
    if kind is ProviderUnreachableError:
        return "check the network and the provider's base URL"
    if kind is ModelUnavailableError:
        return "check the provider's base URL, and its credential for stray characters"
    return None


def _source_chain(error: BaseException) -> Iterator[str]:
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        if len(seen) == PROVIDER_SOURCE_CHAIN_COUNT_MAX:
            return
        seen.append(current)
        name = type(current).__name__
        text = "" if _quotes_the_request(current) else str(current)
        yield one_line(f"{name}: {text}" if text else name)
        current = current.__cause__ or current.__context__


def _quotes_the_request(error: BaseException) -> bool:
    return isinstance(error, _QUOTES_THE_REQUEST) and not isinstance(error, OSError)
