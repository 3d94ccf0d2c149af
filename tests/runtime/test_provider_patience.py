"""Waiting for providers: named moments, rested routes, shared budgets, and being called off."""

import asyncio
from datetime import timedelta

import pytest

from holon.model.limits import (
    PROVIDER_CIRCUIT_FAILURES_COUNT_MAX,
    PROVIDER_CIRCUIT_REST_MS_MIN,
    PROVIDER_DEFERRAL_MS_MAX,
    PROVIDER_RETRY_BUDGET_COUNT_MAX,
    PROVIDER_WAIT_INLINE_MS_MAX,
)
from holon.model.providers.attempts import (
    AttemptOutcome,
    AuthRejectedError,
    ContextTooLongError,
    Disposition,
    ExchangeStage,
    LeftBecause,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitedError,
    UsageLimitedError,
)
from holon.model.providers.models import parse_model_ref
from holon.model.turns.turn import ModelAnswered, ModelFailed
from tests.runtime.stage import BOB, LATENCY_MS, Line, Stage, play, said, start
from tests.support.manual_clock import DAWN

ONE, TWO = "lab/one", "mill/two"
TIMEOUT = ProviderTimeoutError("no answer in time")
HOUR_MS = 3_600_000


def kinds_of(came: ModelAnswered | ModelFailed) -> list[tuple[str, str | None]]:
    assert came.timeline is not None
    return [(attempt.model_ref, attempt.failure_kind) for attempt in came.timeline.attempts]


@pytest.mark.requirement("provider-retry:retry-after")
@pytest.mark.parametrize("asked_ms", [0, 9_000, PROVIDER_WAIT_INLINE_MS_MAX])
def test_a_named_moment_that_is_near_is_waited_for(asked_ms: int) -> None:
    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed()
        assert spoke.timeline is not None
        first, second = spoke.timeline.attempts
        assert first.backoff_ms is not None
        assert first.backoff_ms >= asked_ms
        waited = second.started_at - first.completed_at
        assert waited == timedelta(milliseconds=first.backoff_ms)
        assert first.duration_ms == LATENCY_MS, "waiting is not part of an attempt"

    play(scene, {ONE: [RateLimitedError("later", retry_after_ms=asked_ms), said()]})


@pytest.mark.requirement("provider-retry:retry-after")
def test_a_named_moment_that_is_far_is_left_to_the_fallback() -> None:
    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed()
        assert spoke.timeline is not None
        first, second = spoke.timeline.attempts
        assert (first.outcome, first.disposition) == (
            AttemptOutcome.FAIL_FAST_ABORTED,
            Disposition.RETRYABLE,
        )
        assert (first.backoff_ms, first.advanced_to_fallback) == (None, True)
        assert second.started_at == first.completed_at

    far = RateLimitedError("tomorrow", retry_after_ms=PROVIDER_WAIT_INLINE_MS_MAX + 1)
    play(scene, {ONE: [far], TWO: [said()]})


@pytest.mark.requirement("provider-retry:named-moment")
@pytest.mark.parametrize(
    ("one", "two", "expected_ms"),
    [
        (UsageLimitedError("used up", retry_after_ms=HOUR_MS), None, LATENCY_MS + HOUR_MS),
        (RateLimitedError("later", retry_after_ms=HOUR_MS), None, LATENCY_MS + HOUR_MS),
        (ProviderOverloadedError("busy", retry_after_ms=HOUR_MS), None, LATENCY_MS + HOUR_MS),
        (
            UsageLimitedError("used up", retry_after_ms=99 * PROVIDER_DEFERRAL_MS_MAX),
            None,
            LATENCY_MS + PROVIDER_DEFERRAL_MS_MAX,
        ),
        (
            UsageLimitedError("used up", retry_after_ms=HOUR_MS),
            UsageLimitedError("used up", retry_after_ms=2 * HOUR_MS),
            LATENCY_MS + HOUR_MS,
        ),
        (
            UsageLimitedError("used up", retry_after_ms=2 * HOUR_MS),
            UsageLimitedError("used up", retry_after_ms=HOUR_MS),
            2 * LATENCY_MS + HOUR_MS,
        ),
        (
            UsageLimitedError("used up", retry_after_ms=HOUR_MS),
            AuthRejectedError("bad key"),
            LATENCY_MS + HOUR_MS,
        ),
        (UsageLimitedError("used up"), None, None),
        (
            UsageLimitedError("used up", retry_after_ms=PROVIDER_WAIT_INLINE_MS_MAX),
            None,
            LATENCY_MS + PROVIDER_WAIT_INLINE_MS_MAX,
        ),
        (AuthRejectedError("bad key", retry_after_ms=HOUR_MS), None, None),
        (
            UsageLimitedError("used up", retry_after_ms=HOUR_MS),
            ContextTooLongError("too long"),
            None,
        ),
    ],
)
def test_a_failure_carries_the_earliest_moment_a_provider_named(
    one: ProviderError, two: ProviderError | None, expected_ms: int | None
) -> None:
    parts: dict[str, list[Line]] = {ONE: [one]} if two is None else {ONE: [one], TWO: [two]}
    expected = None if expected_ms is None else DAWN + timedelta(milliseconds=expected_ms)

    async def willing(stage: Stage) -> None:
        assert (await stage.fail()).retry_at == expected

    async def unwilling(stage: Stage) -> None:
        assert (await stage.fail()).retry_at is None

    play(willing, parts)
    play(unwilling, parts, deferral_allowed=False)


@pytest.mark.requirement("provider-retry:circuit")
def test_a_route_that_keeps_failing_is_passed_over_and_probed_after_its_rest() -> None:
    async def scene(stage: Stage) -> None:
        await stage.succeed()
        second = await stage.succeed()
        assert kinds_of(second) == [(ONE, "timeout"), (ONE, "timeout"), (TWO, None)]
        assert second.timeline is not None
        assert second.timeline.attempts[1].outcome is AttemptOutcome.RETRIES_EXHAUSTED
        assert stage.asked[ONE] == PROVIDER_CIRCUIT_FAILURES_COUNT_MAX

        third = await stage.succeed(agent=BOB)
        assert kinds_of(third) == [(ONE, "circuit_open"), (TWO, None)]
        assert third.timeline is not None
        passed = third.timeline.attempts[0]
        assert passed.outcome is AttemptOutcome.FAIL_FAST_ABORTED
        assert passed.left_because is LeftBecause.CIRCUIT_OPEN
        assert passed.advanced_to_fallback
        assert passed.duration_ms == 0
        assert passed.transport_diagnostics is not None
        assert passed.transport_diagnostics.stage is ExchangeStage.SELECTION
        assert stage.asked[ONE] == PROVIDER_CIRCUIT_FAILURES_COUNT_MAX, "nobody asked it"

        await stage.rest(PROVIDER_CIRCUIT_REST_MS_MIN)
        probe = await stage.succeed()
        assert kinds_of(probe) == [(ONE, "timeout"), (TWO, None)], "once, without retries"
        assert probe.timeline is not None
        assert probe.timeline.attempts[0].max_attempts == 1
        await stage.rest(PROVIDER_CIRCUIT_REST_MS_MIN)
        assert kinds_of(await stage.succeed())[0] == (ONE, "circuit_open"), "the rest doubled"
        await stage.rest(PROVIDER_CIRCUIT_REST_MS_MIN)
        assert kinds_of(await stage.succeed()) == [(ONE, None)], "it is back"
        assert kinds_of(await stage.succeed()) == [(ONE, None)]

    failures = [TIMEOUT] * (PROVIDER_CIRCUIT_FAILURES_COUNT_MAX + 1)
    play(scene, {ONE: [*failures, said()], TWO: [said()]})


@pytest.mark.requirement("provider-retry:circuit")
def test_whoever_has_nobody_else_to_ask_asks_a_resting_route_once() -> None:
    async def scene(stage: Stage) -> None:
        await stage.fail()
        await stage.fail()
        asked_count = stage.asked[ONE]
        once = await stage.fail()
        assert kinds_of(once) == [(ONE, "timeout")]
        assert stage.asked[ONE] == asked_count + 1
        assert kinds_of(await stage.succeed()) == [(ONE, None)], "one answer ends the rest"

    failures = [TIMEOUT] * (PROVIDER_CIRCUIT_FAILURES_COUNT_MAX + 1)
    play(scene, {ONE: [*failures, said()]})


def test_a_fallback_that_cannot_be_used_is_nobody_else_to_ask() -> None:
    async def scene(stage: Stage) -> None:
        stage.bill.missing[TWO] = AuthRejectedError("no key for it")
        await stage.fail()
        await stage.fail()
        once = await stage.fail()
        assert kinds_of(once) == [(ONE, "timeout"), (TWO, "auth_rejected")]

    play(scene, {ONE: [TIMEOUT], TWO: [said()]})


def test_a_refusal_in_between_keeps_a_route_in_use() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(6):
            assert kinds_of(await stage.fail())[-1] == (ONE, "auth_rejected")
        assert stage.asked[ONE] == 18

    play(scene, {ONE: [TIMEOUT, TIMEOUT, AuthRejectedError("no")] * 6})


@pytest.mark.requirement("provider-retry:circuit")
def test_one_agent_probes_while_the_others_pass_over() -> None:
    async def scene(stage: Stage) -> None:
        await stage.succeed()
        await stage.succeed()
        await stage.rest(PROVIDER_CIRCUIT_REST_MS_MIN)
        asked_count = stage.asked[ONE]
        several = [await start(stage.succeed()) for _ in range(4)]
        came = [await each for each in several]
        assert stage.asked[ONE] == asked_count + 1
        assert sorted(kinds_of(each)[0][1] or "" for each in came) == [
            *["circuit_open"] * 3,
            "timeout",
        ]

    play(scene, {ONE: [TIMEOUT], TWO: [said()]})


@pytest.mark.requirement("provider-retry:circuit")
def test_a_probe_that_is_called_off_leaves_the_probe_to_the_next() -> None:
    async def scene(stage: Stage) -> None:
        await stage.succeed()
        await stage.succeed()
        await stage.rest(PROVIDER_CIRCUIT_REST_MS_MIN)
        probe = await start(stage.ask())
        await stage.rest(LATENCY_MS // 2)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        asked_count = stage.asked[ONE]
        assert kinds_of(await stage.succeed())[0] == (ONE, "timeout")
        assert stage.asked[ONE] == asked_count + 1

    play(scene, {ONE: [TIMEOUT], TWO: [said()]})


@pytest.mark.requirement("provider-retry:budget")
def test_two_agents_share_the_retries_of_an_account_and_not_of_another() -> None:
    refs = [f"lab/m{number}" for number in range(11)]  # many routes of one account

    async def scene(stage: Stage) -> None:
        for number, ref in enumerate(refs[:-1]):
            agent = {"agent": BOB} if number % 2 else {}
            assert len(kinds_of(await stage.fail(override=ref, **agent))) == 3
        assert sum(stage.asked.values()) == 10 + PROVIDER_RETRY_BUDGET_COUNT_MAX
        spent = await stage.fail(override=refs[-1], agent=BOB)
        assert spent.timeline is not None
        [attempt] = spent.timeline.attempts
        assert attempt.outcome is AttemptOutcome.FAIL_FAST_ABORTED, "there was no retry"
        assert attempt.left_because is LeftBecause.RETRY_BUDGET_USED_UP
        assert attempt.disposition is Disposition.RETRYABLE
        other = await stage.fail(override=TWO)
        assert len(kinds_of(other)) == 3, "another account has its own"

    parts: dict[str, list[Line]] = {ref: [TIMEOUT] for ref in (*refs, TWO)}
    play(scene, parts, fallback_disabled=True)


def test_waiting_for_the_next_attempt_can_be_called_off() -> None:
    async def scene(stage: Stage) -> None:
        asking = await start(stage.ask())
        await stage.rest(LATENCY_MS + 100)  # the first attempt has failed, the wait goes on
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await stage.rest(HOUR_MS)
        assert stage.asked == {ONE: 1}
        assert stage.last_failures["lab"].failure_kind == "timeout"
        assert not stage.host.gate.is_resting(parse_model_ref(ONE))

    play(scene, {ONE: [TIMEOUT], TWO: [said()]})
