"""What follows a failed attempt: the same candidate again, the next one, or the end.

Owns:  the retry rules and the length of a wait.
Rule 1: the same candidate is asked at most PROVIDER_RETRIES_COUNT_MAX times again, and only after a
        failure that may pass by itself.
Rule 2: leaving a candidate never leaves the round: the next one is asked. Only a conversation that
        is too long ends it, since no retry makes it shorter.
Rule 3: a provider that names a moment is not asked before it. One that is further away than
        PROVIDER_WAIT_INLINE_MS_MAX is not waited for: the candidate is left at once.
Rule 4: no dice: the spread of waits comes from a digest of who asks whom and when.
"""

import zlib
from datetime import datetime
from typing import Final, TypeAlias

from holon.model.ids import AgentId
from holon.model.instant import later, to_micros
from holon.model.limits import (
    PROVIDER_BACKOFF_MS_MAX,
    PROVIDER_BACKOFF_MS_MIN,
    PROVIDER_DEFERRAL_MS_MAX,
    PROVIDER_RETRIES_COUNT_MAX,
    PROVIDER_WAIT_INLINE_MS_MAX,
)
from holon.model.model_ref import ModelRef
from holon.model.provider_attempt import AttemptOutcome, LeftBecause
from holon.model.provider_errors import (
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    UsageLimitedError,
)
from holon.model.record import Record

ATTEMPTS_COUNT_MAX: Final = 1 + PROVIDER_RETRIES_COUNT_MAX

_DIGESTS_COUNT: Final = 2**32


class FailedAttempt(Record, frozen=True, kw_only=True):
    """What is known when an attempt has failed."""

    attempt: int
    attempts_count_max: int = ATTEMPTS_COUNT_MAX
    retryable: bool
    ends_turn: bool = False
    retry_after_ms: int | None = None
    may_retry: bool = True  # the account has a retry left
    is_circuit_open: bool = False  # the route is given a rest, or is being probed after one
    has_fallback: bool = False
    jitter: float = 0.0  # in [0, 1)


class RetryAfter(Record, tag_field="kind", tag="retry_after", frozen=True, kw_only=True):
    """Ask the same candidate again after a wait."""

    backoff_ms: int


class MoveOn(Record, tag_field="kind", tag="move_on", frozen=True, kw_only=True):
    """Ask the next candidate."""

    outcome: AttemptOutcome
    because: LeftBecause | None = None


class GiveUp(Record, tag_field="kind", tag="give_up", frozen=True, kw_only=True):
    """The round has failed."""

    outcome: AttemptOutcome
    because: LeftBecause | None = None


RetryDecision: TypeAlias = RetryAfter | MoveOn | GiveUp


def decide_retry(failed: FailedAttempt) -> RetryDecision:
    """Name what follows. First matching rule wins; read top to bottom."""
    if failed.ends_turn:
        return GiveUp(outcome=AttemptOutcome.FAIL_FAST_ABORTED)
    if names_a_far_moment(failed.retry_after_ms):
        return _leave(failed, AttemptOutcome.FAIL_FAST_ABORTED, LeftBecause.MOMENT_NAMED)
    if not failed.retryable:
        return _leave(failed, AttemptOutcome.FAIL_FAST_ABORTED)
    if failed.attempt >= ATTEMPTS_COUNT_MAX:
        return _leave(failed, AttemptOutcome.RETRIES_EXHAUSTED)
    if failed.is_circuit_open or failed.attempt >= failed.attempts_count_max:
        return _leave(failed, _unretried(failed), LeftBecause.CIRCUIT_OPEN)
    if not failed.may_retry:
        return _leave(failed, _unretried(failed), LeftBecause.RETRY_BUDGET_USED_UP)
    return RetryAfter(
        backoff_ms=backoff_ms(
            failed.attempt, jitter=failed.jitter, retry_after_ms=failed.retry_after_ms
        )
    )


def names_a_far_moment(retry_after_ms: int | None) -> bool:
    """Whether a provider asked for a wait that nobody sits out."""
    return retry_after_ms is not None and retry_after_ms > PROVIDER_WAIT_INLINE_MS_MAX


def moment_named(error: ProviderError, *, failed_at: datetime) -> datetime | None:
    """Return when a provider that is used up or overrun will be back, if nobody waited for it."""
    if not isinstance(error, RateLimitedError | UsageLimitedError | ProviderOverloadedError):
        return None
    if error.retry_after_ms is None:
        return None
    if error.retryable and not names_a_far_moment(error.retry_after_ms):
        return None  # that was waited for
    wait_ms = max(error.retry_after_ms, PROVIDER_BACKOFF_MS_MAX)  # a moment that is now is no wait
    return later(failed_at, by_ms=min(wait_ms, PROVIDER_DEFERRAL_MS_MAX))


def backoff_ms(attempt: int, *, jitter: float, retry_after_ms: int | None = None) -> int:
    """Return how long to wait after a failed attempt: twice as long each time, spread by `jitter`.

    What the provider asked for is the least; a part of the smallest wait is added to it, so that
    those who were all told the same moment do not all come back in it.
    """
    ceiling_ms = min(PROVIDER_BACKOFF_MS_MAX, PROVIDER_BACKOFF_MS_MIN << attempt)
    own_ms = max(PROVIDER_BACKOFF_MS_MIN, int(ceiling_ms * (1 + jitter) / 2))
    if retry_after_ms is None:
        return own_ms
    return max(own_ms, retry_after_ms + int(PROVIDER_BACKOFF_MS_MIN * jitter))


def jitter_of(agent_id: AgentId, model_ref: ModelRef, started_at: datetime) -> float:
    """Return the share of the spread that belongs to one attempt: stable, and in [0, 1)."""
    name = f"{agent_id}\n{model_ref}\n{to_micros(started_at)}"
    return zlib.crc32(name.encode()) / _DIGESTS_COUNT


def _unretried(failed: FailedAttempt) -> AttemptOutcome:
    """What an attempt is called that no other follows: one retry at least makes them exhausted."""
    is_retry = failed.attempt > 1
    return AttemptOutcome.RETRIES_EXHAUSTED if is_retry else AttemptOutcome.FAIL_FAST_ABORTED


def _leave(
    failed: FailedAttempt, outcome: AttemptOutcome, because: LeftBecause | None = None
) -> MoveOn | GiveUp:
    if failed.has_fallback:
        return MoveOn(outcome=outcome, because=because)
    return GiveUp(outcome=outcome, because=because)
