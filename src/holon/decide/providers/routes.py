"""Provider routes: candidates, retries, retry budgets and circuits.

Owns:  the order of candidates; the retry rules and the length of a wait; the retry budget that all
       agents of one account share; the states of a circuit and every transition between them.
Rule 1: an agent's model override replaces the default, and the fallbacks follow, each model once.
        The default never answers in place of an override: where no fallback is configured and the
        override fails, the turn fails.
Rule 2: with fallback switched off only the first candidate is asked.
Rule 3: no preference is kept between rounds: a fallback that answered once gains no priority.
Rule 4: the same candidate is asked at most PROVIDER_RETRIES_COUNT_MAX times again, and only after a
        transient failure.
Rule 5: leaving a candidate never ends the round: the next one is asked. Only a conversation that is
        too long ends it, since no retry makes it shorter.
Rule 6: a provider that names a moment is not asked before it. If the moment is further away than
        PROVIDER_WAIT_INLINE_MS_MAX, the candidate is left at once.
Rule 7: backoff jitter is a digest of agent, model and start time, so no randomness is needed.
Rule 8: a retry costs one; an answer gives back a part of one. So in a long outage an account's
        retries run out, and it sends first attempts only.
Rule 9: a retry budget is counted in whole parts: sums are exact in any order.
Rule 10: PROVIDER_CIRCUIT_FAILURES_COUNT_MAX transient failures in a row open a circuit. Any other
         end of an attempt, a refusal included, shows that the provider responds and closes it.
Rule 11: a route with an open circuit is skipped as long as another candidate remains. A round with
         no other candidate asks it once, without retries, so that no agent starves.
Rule 12: after the rest, one caller probes the half-open route. A failed probe doubles the rest, up
         to PROVIDER_CIRCUIT_REST_MS_MAX; after an abandoned probe the next caller may probe.
Rule 13: moments are monotonic milliseconds: setting the wall clock opens and closes nothing.
"""

import zlib
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from holon.model.limits import (
    PROVIDER_BACKOFF_MS_MAX,
    PROVIDER_BACKOFF_MS_MIN,
    PROVIDER_CIRCUIT_FAILURES_COUNT_MAX,
    PROVIDER_CIRCUIT_REST_MS_MAX,
    PROVIDER_CIRCUIT_REST_MS_MIN,
    PROVIDER_DEFERRAL_MS_MAX,
    PROVIDER_RETRIES_COUNT_MAX,
    PROVIDER_RETRY_BUDGET_COUNT_MAX,
    PROVIDER_WAIT_INLINE_MS_MAX,
)
from holon.model.providers.attempts import (
    AttemptOutcome,
    LeftBecause,
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    UsageLimitedError,
)
from holon.model.providers.models import ModelRef
from holon.model.record import Record
from holon.model.values import AgentId, later, to_micros

ATTEMPTS_COUNT_MAX: Final = 1 + PROVIDER_RETRIES_COUNT_MAX
_DIGESTS_COUNT: Final = 2**32
PARTS_PER_RETRY: Final = 4  # an answer gives back one part
_PARTS_MAX: Final = PROVIDER_RETRY_BUDGET_COUNT_MAX * PARTS_PER_RETRY


class RouteFacts(Record, frozen=True, kw_only=True):
    """What is configured for the runtime, and what for one agent."""

    default: ModelRef
    fallbacks: tuple[ModelRef, ...] = ()
    override: ModelRef | None = None
    fallback_disabled: bool = False


def ordered_models(facts: RouteFacts) -> tuple[ModelRef, ...]:
    """Return the models to ask, first to last; always at least one."""
    chain = tuple(dict.fromkeys((facts.override or facts.default, *facts.fallbacks)))
    return chain[:1] if facts.fallback_disabled else chain


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


class NextCandidate(Record, tag_field="kind", tag="move_on", frozen=True, kw_only=True):
    """Ask the next candidate."""

    outcome: AttemptOutcome
    because: LeftBecause | None = None


class FailRound(Record, tag_field="kind", tag="give_up", frozen=True, kw_only=True):
    """The round has failed."""

    outcome: AttemptOutcome
    because: LeftBecause | None = None


RetryDecision: TypeAlias = RetryAfter | NextCandidate | FailRound


def decide_retry(failed: FailedAttempt) -> RetryDecision:
    """Name what follows. First matching rule wins; read top to bottom."""
    if failed.ends_turn:
        return FailRound(outcome=AttemptOutcome.FAIL_FAST_ABORTED)
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
    """Whether a provider asked for a wait that is too long to wait inline."""
    return retry_after_ms is not None and retry_after_ms > PROVIDER_WAIT_INLINE_MS_MAX


def moment_named(error: ProviderError, *, failed_at: datetime) -> datetime | None:
    """Return when a limited or overloaded provider will be back, unless that was waited for."""
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

    The provider's own wait is the minimum; a share of the smallest wait is added to it, so that
    callers that were given the same moment do not all come back in it.
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
) -> NextCandidate | FailRound:
    if failed.has_fallback:
        return NextCandidate(outcome=outcome, because=because)
    return FailRound(outcome=outcome, because=because)


class RetryBudget(Record, frozen=True, kw_only=True):
    """What an account has left."""

    parts: int = _PARTS_MAX

    @property
    def is_spent(self) -> bool:
        """Whether no retry is left."""
        return self.parts < PARTS_PER_RETRY


FULL_BUDGET: Final = RetryBudget()


def after_retry(budget: RetryBudget) -> RetryBudget:
    """Return the budget once a retry has been sent."""
    return RetryBudget(parts=max(0, budget.parts - PARTS_PER_RETRY))


def after_success(budget: RetryBudget) -> RetryBudget:
    """Return the budget once an attempt has been answered."""
    return RetryBudget(parts=min(_PARTS_MAX, budget.parts + 1))


class CircuitClosed(Record, tag_field="kind", tag="closed", frozen=True, kw_only=True):
    """The route is in use; so many failures in a row were seen last."""

    failures_count: int = 0


class CircuitOpen(Record, tag_field="kind", tag="resting", frozen=True, kw_only=True):
    """The route is left alone until a moment."""

    until_ms: int
    rest_ms: int


class CircuitHalfOpen(Record, tag_field="kind", tag="probing", frozen=True, kw_only=True):
    """One asker is finding out whether the route is back."""

    rest_ms: int


Circuit: TypeAlias = CircuitClosed | CircuitOpen | CircuitHalfOpen

CLOSED: Final = CircuitClosed()


class CircuitPermit(StrEnum):
    """How a route may be asked now."""

    FREE = "free"
    PROBE = "probe"  # once, on behalf of all callers
    ONCE = "once"  # no other candidate remains
    PASSED_OVER = "passed_over"


def circuit_permit(
    circuit: Circuit, *, now_ms: int, has_fallback: bool
) -> tuple[Circuit, CircuitPermit]:
    """Return how the route may be asked, and the circuit after such a request."""
    match circuit:
        case CircuitClosed():
            return circuit, CircuitPermit.FREE
        case CircuitOpen(until_ms=until_ms, rest_ms=rest_ms) if now_ms >= until_ms:
            return CircuitHalfOpen(rest_ms=rest_ms), CircuitPermit.PROBE
        case CircuitOpen() | CircuitHalfOpen():
            return circuit, CircuitPermit.PASSED_OVER if has_fallback else CircuitPermit.ONCE
        case _:
            assert_never(circuit)


def after_answer() -> Circuit:
    """Return the circuit of a route that answered, a refusal included."""
    return CLOSED


def after_failure(circuit: Circuit, *, now_ms: int) -> Circuit:
    """Return the circuit after a failure that may pass by itself."""
    match circuit:
        case CircuitClosed(failures_count=count) if count + 1 < PROVIDER_CIRCUIT_FAILURES_COUNT_MAX:
            return CircuitClosed(failures_count=count + 1)
        case CircuitClosed():
            return _rested(PROVIDER_CIRCUIT_REST_MS_MIN, now_ms)
        case CircuitHalfOpen(rest_ms=rest_ms):
            return _rested(min(2 * rest_ms, PROVIDER_CIRCUIT_REST_MS_MAX), now_ms)
        case CircuitOpen():
            return circuit  # asked for lack of another candidate: that must not postpone the probe
        case _:
            assert_never(circuit)


def after_abandoned_probe(circuit: Circuit, *, now_ms: int) -> Circuit:
    """Return the circuit when the asker that probed it went away without an outcome."""
    match circuit:
        case CircuitHalfOpen(rest_ms=rest_ms):
            return CircuitOpen(until_ms=now_ms, rest_ms=rest_ms)
        case CircuitClosed() | CircuitOpen():
            return circuit
        case _:
            assert_never(circuit)


def _rested(rest_ms: int, now_ms: int) -> CircuitOpen:
    return CircuitOpen(until_ms=now_ms + rest_ms, rest_ms=rest_ms)
