"""Provider attempts: outcomes, timelines, token usage and the provider error tree.

Owns:  attempt records, their outcomes, the timeline of a round, token usage, and ProviderError.
       Adapters raise nothing else; each maps foreign errors in one place.
Rule 1: the timeline is returned with success and failure alike.
Rule 2: no field can hold a secret: diagnostics are named fields, never raw headers.
Rule 3: an attempt is timed from dispatch to the complete answer or the error; waiting before the
        next attempt is `backoff_ms` and nothing else.

ProviderError
├── retryable    ProviderTimeout · ProviderUnreachable · RateLimited · ProviderOverloaded
│                GarbledAnswer (one UnreadableResponse from a route that answered well before)
└── fail-fast    AuthRejected · RequestRejected · UnreadableResponse · TransportUnsupported
                                └── ContextTooLong   (also ends the turn)
                 UsageLimited (the account is used up until a named moment) · ModelUnavailable
                 CircuitOpen (not asked at all: the route kept failing)
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

import msgspec

from holon.model.errors import HolonError
from holon.model.events.briefs import FailureCategory
from holon.model.record import Record, no_entries
from holon.model.values import Instant


class TokenUsage(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Tokens one or more rounds used, as the provider reported them.

    Where a provider reported nothing, or nothing that can be true, the count `is_estimated`.
    `input_tokens` counts everything the model read, cached or not; the cache fields say how much of
    it was read from, or written to, the provider's cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    is_estimated: bool = False

    def __post_init__(self) -> None:
        total = self.input_tokens + self.output_tokens
        msgspec.structs.force_setattr(self, "total_tokens", total)

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        """Return the sum of two usages."""
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            is_estimated=self.is_estimated or other.is_estimated,
        )


class AttemptOutcome(StrEnum):
    """How one attempt ended. `retries_exhausted` is used only where a retry was made."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    RETRIES_EXHAUSTED = "retries_exhausted"
    FAIL_FAST_ABORTED = "fail_fast_aborted"


class LeftBecause(StrEnum):
    """Why a candidate was left although its failure may pass, or that it was not even asked."""

    CIRCUIT_OPEN = "circuit_open"  # it failed too often in a row: asked once, or passed over
    RETRY_BUDGET_USED_UP = "retry_budget_used_up"  # the account has no retry left
    MOMENT_NAMED = "moment_named"  # it will be back at a moment that is too far to sit out


class Disposition(StrEnum):
    """What a failure lets the runtime do with the same candidate."""

    RETRYABLE = "retryable"
    FAIL_FAST = "fail_fast"


class ExchangeStage(StrEnum):
    """How far an exchange had come when it ended."""

    SELECTION = "selection"  # nothing was sent: the candidate itself was refused
    CONNECT = "connect"
    REQUEST = "request"
    RESPONSE_HEAD = "response_head"
    RESPONSE_BODY = "response_body"
    DECODE = "decode"
    COMPLETE = "complete"


class FailureFlags(Record, frozen=True, kw_only=True):
    """Which part of the exchange failed."""

    is_timeout: bool = msgspec.field(default_factory=bool)
    is_connect: bool = msgspec.field(default_factory=bool)
    is_request: bool = msgspec.field(default_factory=bool)
    is_body: bool = msgspec.field(default_factory=bool)
    is_decode: bool = msgspec.field(default_factory=bool)
    is_redirect: bool = msgspec.field(default_factory=bool)
    status: int | None = None


class TransportDiagnostics(Record, frozen=True, kw_only=True):
    """What is known about the exchange itself, with no secret in it."""

    # Written also when it has this value.
    stage: ExchangeStage = msgspec.field(default_factory=lambda: ExchangeStage.COMPLETE)
    provider: str | None = None
    model_ref: str | None = None
    url: str | None = None
    status: int | None = None
    # The wire name is fixed by the specification; the flags do not depend on the HTTP library.
    flags: FailureFlags | None = msgspec.field(default=None, name="reqwest")
    source_chain: tuple[str, ...] = ()
    request_id: str | None = None
    retry_after_ms: int | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None
    continuation: str | None = None  # how the request was shortened, or why it was not
    notes: tuple[str, ...] = ()  # bounded remarks of the wire, such as how much could be cleared


class ProviderAttempt(Record, frozen=True, kw_only=True):
    """One try at one candidate."""

    provider: str
    model_ref: str
    attempt: int
    max_attempts: int
    started_at: Instant
    completed_at: Instant
    outcome: AttemptOutcome
    duration_ms: int = 0
    failure_kind: str | None = None
    disposition: Disposition | None = None
    advanced_to_fallback: bool = msgspec.field(default_factory=bool)
    left_because: LeftBecause | None = None
    backoff_ms: int | None = None
    token_usage: TokenUsage | None = None
    transport_diagnostics: TransportDiagnostics | None = None


class AttemptTimeline(Record, frozen=True, kw_only=True):
    """Every attempt of one round, in order, and which model answered in the end."""

    attempts: tuple[ProviderAttempt, ...] = msgspec.field(default_factory=no_entries)
    requested_model_ref: str = msgspec.field(default_factory=str)
    active_model_ref: str | None = None
    winning_model_ref: str | None = None
    aggregated_token_usage: TokenUsage | None = None


def usage_of(attempts: Sequence[ProviderAttempt]) -> TokenUsage | None:
    """Return what the attempts used together, or nothing when none of them reported it."""
    reported = [attempt.token_usage for attempt in attempts if attempt.token_usage is not None]
    if not reported:
        return None
    total = TokenUsage()
    for usage in reported:
        total = total.plus(usage)
    return total


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
    """The provider asked for a later retry."""

    code = "rate_limited"
    retryable = True


class ProviderOverloadedError(ProviderError):
    """The provider failed on its side."""

    code = "server_error"
    retryable = True


class UsageLimitedError(ProviderError):
    """The account has used up its allowance; `retry_after_ms` is for how long, when known."""

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
    """The configured wire is not supported."""

    code = "unsupported_transport"
    category = FailureCategory.PROTOCOL


class ModelUnavailableError(ProviderError):
    """The model cannot be used as configured: unknown provider, no credential, no such file."""

    code = "model_unavailable"
    category = FailureCategory.RUNTIME
    hint = "run `holon config doctor` to see what is missing"


class CircuitOpenError(ProviderError):
    """The circuit of the route is open: it failed so often in a row that it is skipped."""

    code = "circuit_open"
