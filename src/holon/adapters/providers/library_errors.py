"""What the errors of the HTTP library mean.

Owns:  the one mapping from the library's errors to what is said of an exchange.
Rule 1: whatever the library may raise has a row; the last row is a connection that broke.
"""

from typing import Final

import httpx2

from holon.adapters.providers.exchange_errors import (
    UNSENDABLE,
    ExchangeFacts,
    Meaning,
    broken_exchange,
    quotes_the_request,
)
from holon.model.provider_attempt import ExchangeStage
from holon.model.provider_errors import (
    ModelUnavailableError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    UnreadableResponseError,
)

LIBRARY_ERRORS: Final = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    ValueError,  # a URL or header that cannot be written down at all
    OSError,
)
# How the library words a connection that ended early, as opposed to one that spoke nonsense.
_ENDED_EARLY: Final = ("server disconnected", "peer closed connection")


def library_error(error: Exception, facts: ExchangeFacts) -> ProviderError:
    """Return the ProviderError for whatever the HTTP library raised."""
    return broken_exchange(error, _meaning_of(error, facts.stage), facts, is_quoting=_is_quoting)


def _is_quoting(error: BaseException) -> bool:
    is_librarys = isinstance(error, httpx2.LocalProtocolError | httpx2.InvalidURL)
    return is_librarys or quotes_the_request(error)


def _meaning_of(error: Exception, stage: ExchangeStage) -> Meaning:
    """Name the class, the stage and the sentence. First matching row wins."""
    in_body = stage is ExchangeStage.RESPONSE_BODY
    reading = ExchangeStage.RESPONSE_BODY if in_body else ExchangeStage.RESPONSE_HEAD
    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return Meaning(ProviderTimeoutError, ExchangeStage.CONNECT, "connecting took too long")
        case httpx2.WriteTimeout():
            return Meaning(ProviderTimeoutError, ExchangeStage.REQUEST, "sending took too long")
        case httpx2.TimeoutException():
            return Meaning(ProviderTimeoutError, reading, "the provider kept us waiting too long")
        case httpx2.ConnectError() | httpx2.ProxyError():
            return Meaning(ProviderUnreachableError, ExchangeStage.CONNECT, "could not connect")
        case httpx2.WriteError():
            return Meaning(ProviderUnreachableError, ExchangeStage.REQUEST, "the connection broke")
        case httpx2.RemoteProtocolError() if not _ended_early(error):
            return Meaning(
                UnreadableResponseError, reading, "the provider does not speak proper HTTP"
            )
        case httpx2.DecodingError():
            return Meaning(UnreadableResponseError, reading, "the answer's encoding is broken")
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return Meaning(ModelUnavailableError, ExchangeStage.REQUEST, UNSENDABLE)
        case ValueError() if not isinstance(error, OSError):  # a certificate error is both
            return Meaning(ModelUnavailableError, ExchangeStage.REQUEST, UNSENDABLE)
        case _:
            return Meaning(ProviderUnreachableError, reading, "the connection broke")


def _ended_early(error: Exception) -> bool:
    return str(error).lower().startswith(_ENDED_EARLY)
