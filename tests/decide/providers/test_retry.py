"""What follows a failed attempt, and how long it is waited for."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.providers.routes import (
    ATTEMPTS_COUNT_MAX,
    FailedAttempt,
    FailRound,
    NextCandidate,
    RetryAfter,
    RetryDecision,
    backoff_ms,
    decide_retry,
    jitter_of,
    moment_named,
)
from holon.model.limits import (
    PROVIDER_BACKOFF_MS_MAX,
    PROVIDER_BACKOFF_MS_MIN,
    PROVIDER_DEFERRAL_MS_MAX,
    PROVIDER_WAIT_INLINE_MS_MAX,
)
from holon.model.providers.attempts import (
    AttemptOutcome,
    AuthRejectedError,
    LeftBecause,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitedError,
    UsageLimitedError,
)
from holon.model.providers.models import parse_model_ref
from holon.model.values import AgentId

EXHAUSTED = AttemptOutcome.RETRIES_EXHAUSTED
FAST = AttemptOutcome.FAIL_FAST_ABORTED
CIRCUIT, NO_RETRY = LeftBecause.CIRCUIT_OPEN, LeftBecause.RETRY_BUDGET_USED_UP
NAMED = LeftBecause.MOMENT_NAMED
FAR_MS = PROVIDER_WAIT_INLINE_MS_MAX + 1
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = parse_model_ref("lab/one")


def failed(attempt: int = 1, *, retryable: bool = True, **more: object) -> FailedAttempt:
    return FailedAttempt(attempt=attempt, retryable=retryable, **more)  # type: ignore[arg-type]


@pytest.mark.requirement("provider-retry:two-retries")
@pytest.mark.requirement("model-choice:outcomes-say-what-happened")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (failed(1), RetryAfter(backoff_ms=500)),
        (failed(2), RetryAfter(backoff_ms=1_000)),
        (failed(3), FailRound(outcome=EXHAUSTED)),
        (failed(3, has_fallback=True), NextCandidate(outcome=EXHAUSTED)),
        (failed(1, attempts_count_max=1), FailRound(outcome=FAST, because=CIRCUIT)),
        (failed(1, is_circuit_open=True), FailRound(outcome=FAST, because=CIRCUIT)),
        (failed(2, is_circuit_open=True), FailRound(outcome=EXHAUSTED, because=CIRCUIT)),
        (failed(1, may_retry=False), FailRound(outcome=FAST, because=NO_RETRY)),
        (failed(2, may_retry=False), FailRound(outcome=EXHAUSTED, because=NO_RETRY)),
        (
            failed(1, may_retry=False, has_fallback=True),
            NextCandidate(outcome=FAST, because=NO_RETRY),
        ),
        (failed(1, retryable=False), FailRound(outcome=FAST)),
        (failed(1, retryable=False, has_fallback=True), NextCandidate(outcome=FAST)),
        (failed(1, retryable=False, ends_turn=True, has_fallback=True), FailRound(outcome=FAST)),
        (failed(1, retry_after_ms=7_000), RetryAfter(backoff_ms=7_000)),
        (failed(1, retry_after_ms=0), RetryAfter(backoff_ms=500)),
        (failed(1, retry_after_ms=FAR_MS - 1), RetryAfter(backoff_ms=FAR_MS - 1)),
        (failed(1, retry_after_ms=FAR_MS), FailRound(outcome=FAST, because=NAMED)),
        (
            failed(1, retry_after_ms=FAR_MS, has_fallback=True),
            NextCandidate(outcome=FAST, because=NAMED),
        ),
    ],
)
def test_the_first_rule_that_fits_decides(facts: FailedAttempt, expected: RetryDecision) -> None:
    assert decide_retry(facts) == expected


@pytest.mark.requirement("provider-retry:backoff")
@given(
    attempt=st.integers(1, 12),
    jitter=st.floats(0, 1, exclude_max=True),
    asked_ms=st.none() | st.integers(0, PROVIDER_WAIT_INLINE_MS_MAX),
)
def test_a_wait_is_bounded_and_never_shorter_than_what_was_asked(
    attempt: int, jitter: float, asked_ms: int | None
) -> None:
    waited_ms = backoff_ms(attempt, jitter=jitter, retry_after_ms=asked_ms)
    ceiling_ms = max(PROVIDER_BACKOFF_MS_MAX, (asked_ms or 0) + PROVIDER_BACKOFF_MS_MIN)
    assert max(PROVIDER_BACKOFF_MS_MIN, asked_ms or 0) <= waited_ms <= ceiling_ms


@pytest.mark.requirement("provider-retry:backoff")
def test_waits_double_and_are_spread_over_half_of_their_length() -> None:
    least = [backoff_ms(attempt, jitter=0) for attempt in range(1, 9)]
    most = [backoff_ms(attempt, jitter=0.999_999) for attempt in range(1, 9)]
    assert least == [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]
    assert most == [999, 1_999, 3_999, 7_999, 15_999, 29_999, 29_999, 29_999]
    assert backoff_ms(1, jitter=0.5, retry_after_ms=9_000) == 9_250


def test_the_spread_is_stable_and_differs_between_agents_models_and_moments() -> None:
    one = jitter_of(AgentId("ada"), REF, NOW)
    assert one == jitter_of(AgentId("ada"), REF, NOW)
    others = {
        jitter_of(AgentId("bob"), REF, NOW),
        jitter_of(AgentId("ada"), parse_model_ref("lab/two"), NOW),
        jitter_of(AgentId("ada"), REF, NOW + timedelta(microseconds=1)),
    }
    assert len({one, *others}) == 4
    assert all(0 <= share < 1 for share in {one, *others})
    many = [jitter_of(AgentId(f"agent_{n}"), REF, NOW) for n in range(200)]
    assert 0.4 < sum(many) / len(many) < 0.6, "agents that fail together do not return together"


@pytest.mark.parametrize(
    ("error", "expected_ms"),
    [
        (UsageLimitedError("used up", retry_after_ms=FAR_MS), FAR_MS),
        (RateLimitedError("later", retry_after_ms=FAR_MS), FAR_MS),
        (ProviderOverloadedError("busy", retry_after_ms=FAR_MS), FAR_MS),
        (UsageLimitedError("used up", retry_after_ms=10**12), PROVIDER_DEFERRAL_MS_MAX),
        (UsageLimitedError("used up", retry_after_ms=FAR_MS - 1), FAR_MS - 1),
        (UsageLimitedError("used up", retry_after_ms=0), PROVIDER_BACKOFF_MS_MAX),
        (RateLimitedError("later", retry_after_ms=FAR_MS - 1), None),
        (UsageLimitedError("used up"), None),
        (AuthRejectedError("no", retry_after_ms=FAR_MS), None),
        (ProviderTimeoutError("slow", retry_after_ms=FAR_MS), None),
    ],
)
def test_only_a_used_up_or_overrun_provider_names_a_moment(
    error: ProviderError, expected_ms: int | None
) -> None:
    expected = None if expected_ms is None else NOW + timedelta(milliseconds=expected_ms)
    assert moment_named(error, failed_at=NOW) == expected


def test_a_candidate_has_three_attempts() -> None:
    assert ATTEMPTS_COUNT_MAX == 3
