"""What each attempt at a provider did: the timeline nobody may lose.

Owns:  attempt records, their outcomes, and token usage.
Rule 1: the timeline is returned with success and failure alike.
Rule 2: nothing here can hold a secret: diagnostics are named fields, never raw headers.
"""

from enum import StrEnum

from holon.model.instant import Instant
from holon.model.record import Record


class TokenUsage(Record, frozen=True, kw_only=True):
    """Tokens one or more rounds used, as the provider reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        """Return the sum of two usages."""
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
        )


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    RETRIES_EXHAUSTED = "retries_exhausted"
    FAIL_FAST_ABORTED = "fail_fast_aborted"


class TransportDiagnostics(Record, frozen=True, kw_only=True):
    """What is known about the exchange itself, with no secret in it."""

    status: int | None = None
    request_id: str | None = None
    retry_after_ms: int | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None


class ProviderAttempt(Record, frozen=True, kw_only=True):
    """One try at one candidate."""

    provider: str
    model_ref: str
    attempt: int
    attempt_max: int
    started_at: Instant
    completed_at: Instant
    outcome: AttemptOutcome
    failure_kind: str | None = None
    advanced_to_fallback: bool = False
    backoff_ms: int | None = None
    token_usage: TokenUsage | None = None
    transport: TransportDiagnostics | None = None
