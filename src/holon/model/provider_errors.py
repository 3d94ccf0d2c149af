"""Why a provider attempt failed.

ProviderError
├── retryable    ProviderTimeout · ProviderUnreachable · RateLimited · ProviderOverloaded
│                GarbledAnswer (an UnreadableResponse behind good answers, once)
└── fail-fast    AuthRejected · RequestRejected · UnreadableResponse · TransportUnsupported
                                └── ContextTooLong   (also ends the turn)
                 UsageLimited (the account is used up until a named moment) · ModelUnavailable
                 RouteResting (not asked at all: the route kept failing)

Owns:  the tree. Adapters raise nothing else; foreign errors are mapped in one place per adapter.
"""

from typing import ClassVar

from holon.model.brief import FailureCategory
from holon.model.errors import HolonError
from holon.model.provider_attempt import Disposition, TokenUsage, TransportDiagnostics


class ProviderError(HolonError):
    """A provider attempt failed."""

    code = "provider_error"
    retryable: ClassVar[bool] = False
    ends_turn: ClassVar[bool] = False
    category: ClassVar[FailureCategory] = FailureCategory.TRANSPORT

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retry_after_ms: int | None = None,
        diagnostics: TransportDiagnostics | None = None,
        usage: TokenUsage | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_ms = retry_after_ms
        self.diagnostics = diagnostics
        self.usage = usage

    @property
    def disposition(self) -> Disposition:
        """Whether the same candidate may be asked again."""
        return Disposition.RETRYABLE if self.retryable else Disposition.FAIL_FAST


class ProviderTimeoutError(ProviderError):
    """No answer in time."""

    code = "timeout"
    retryable = True


class ProviderUnreachableError(ProviderError):
    """The connection could not be made or broke."""

    code = "connection"
    retryable = True


class RateLimitedError(ProviderError):
    """The provider asked us to come back later."""

    code = "rate_limited"
    retryable = True


class ProviderOverloadedError(ProviderError):
    """The provider failed on its side."""

    code = "server_error"
    retryable = True


class UsageLimitedError(ProviderError):
    """The account has used up its allowance; `retry_after_ms` says for how long, when known."""

    code = "usage_limit_reached"
    hint = "wait for the reset, add credit, or configure a fallback model"


class AuthRejectedError(ProviderError):
    """The credentials were refused."""

    code = "auth_rejected"
    hint = "check the provider's credentials"


class RequestRejectedError(ProviderError):
    """The provider refused the request as malformed.

    `unsupported` is the parameter that a refusal calls unsupported, where it names one.
    """

    code = "request_rejected"
    category = FailureCategory.PROTOCOL
    unsupported: str | None = None


class ContextTooLongError(RequestRejectedError):
    """The conversation no longer fits the model."""

    code = "context_length_exceeded"
    ends_turn = True


class UnreadableResponseError(ProviderError):
    """The answer breaks the wire contract."""

    code = "invalid_response"
    category = FailureCategory.PROTOCOL


class GarbledAnswerError(UnreadableResponseError):
    """An answer without sense from a provider that made sense before: it may pass."""

    code = "garbled_response"
    retryable = True


class TransportUnsupportedError(ProviderError):
    """The configured wire is not one we speak."""

    code = "unsupported_transport"
    category = FailureCategory.PROTOCOL


class ModelUnavailableError(ProviderError):
    """The model cannot be used as configured: unknown provider, no credential, no such file."""

    code = "model_unavailable"
    category = FailureCategory.RUNTIME
    hint = "run `holon config doctor` to see what is missing"


class RouteRestingError(ProviderError):
    """The model failed so often in a row that it is passed over for a while."""

    code = "circuit_open"
