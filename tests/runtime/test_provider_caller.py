"""The seed's rules of retry, fail-fast and fallback, each with its timeline, field by field."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec
import pytest

from holon.decide.providers.routes import backoff_ms, jitter_of
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    AuthRejectedError,
    ContextTooLongError,
    Disposition,
    ExchangeStage,
    FailureFlags,
    ModelUnavailableError,
    ProviderAttempt,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    RequestRejectedError,
    TokenUsage,
    TransportDiagnostics,
    TransportUnsupportedError,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.providers.models import parse_model_ref
from holon.model.turns.conversation import TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.turns.turn import AnswerProgress, ModelAnswer, StopReason, TextGrew
from holon.model.values import AgentId, CallId
from tests.runtime.stage import ADA, LATENCY_MS, USAGE, Line, Stage, play, said
from tests.support.manual_clock import DAWN

ONE, TWO = "lab/one", "mill/two"

RETRYABLE: list[ProviderError] = [
    ProviderTimeoutError("no answer in time"),
    ProviderUnreachableError("the connection was refused"),
    RateLimitedError("429: slow down"),
    ProviderOverloadedError("503: busy"),
]
FAIL_FAST: list[ProviderError] = [
    AuthRejectedError("401: bad key"),
    RequestRejectedError("400: bad field"),
    UnreadableResponseError("HTML where JSON should be"),
    TransportUnsupportedError("this transport is not spoken"),
    UsageLimitedError("the month is used up"),
    ModelUnavailableError("no such file"),
]


def code_of(error: ProviderError) -> str:
    return error.code


class Expected:
    """Writes down the timeline a round must have, attempt by attempt, on the stage's clock."""

    def __init__(self, requested: str) -> None:
        self._requested = requested
        self._now = DAWN
        self.attempts: list[ProviderAttempt] = []

    def asked(
        self,
        ref: str,
        number: int,
        error: ProviderError | None = None,
        *,
        outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED,
        advanced: bool = False,
    ) -> "Expected":
        """The model was asked, and so it ended."""
        model = parse_model_ref(ref)
        began, ended = self._now, self._now + timedelta(milliseconds=LATENCY_MS)
        wait_ms: int | None = None
        if outcome is AttemptOutcome.RETRYING:
            wait_ms = backoff_ms(
                number,
                jitter=jitter_of(ADA, model, began),
                retry_after_ms=None if error is None else error.retry_after_ms,
            )
        self.attempts.append(
            ProviderAttempt(
                provider=model.provider,
                model_ref=ref,
                attempt=number,
                max_attempts=3,
                started_at=began,
                completed_at=ended,
                duration_ms=LATENCY_MS,
                outcome=outcome,
                failure_kind=None if error is None else error.code,
                disposition=None if error is None else error.disposition,
                advanced_to_fallback=advanced,
                backoff_ms=wait_ms,
                token_usage=USAGE if error is None else None,
            )
        )
        self._now = ended + timedelta(milliseconds=wait_ms or 0)
        return self

    def spent(self, ref: str, error: ProviderError, *, advanced: bool) -> "Expected":
        """The model was asked three times in vain."""
        self.asked(ref, 1, error, outcome=AttemptOutcome.RETRYING)
        self.asked(ref, 2, error, outcome=AttemptOutcome.RETRYING)
        return self.asked(
            ref, 3, error, outcome=AttemptOutcome.RETRIES_EXHAUSTED, advanced=advanced
        )

    def timeline(self, *, active: str, winner: str | None = None) -> AttemptTimeline:
        """All of it."""
        return AttemptTimeline(
            attempts=tuple(self.attempts),
            requested_model_ref=self._requested,
            active_model_ref=active,
            winning_model_ref=winner,
            aggregated_token_usage=None if winner is None else USAGE,
        )


def answered(parts: Mapping[str, Sequence[Line]], expected: AttemptTimeline) -> Stage:
    """A round that is answered with exactly this timeline."""

    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed()
        assert spoke.timeline == expected
        assert spoke.blocks == (TextBlock(text="hi"),)
        assert spoke.usage == USAGE

    return play(scene, parts)


def failing(parts: Mapping[str, Sequence[Line]], expected: AttemptTimeline, kind: str) -> Stage:
    """A round that fails with exactly this timeline."""

    async def scene(stage: Stage) -> None:
        failed = await stage.fail()
        assert failed.timeline == expected
        assert failed.failure.kind == kind
        assert failed.failure.model_ref == expected.active_model_ref
        assert failed.failure.metadata["attempt_count"] == str(len(expected.attempts))

    return play(scene, parts)


@pytest.mark.requirement("provider-retry:timeline-with-success")
def test_an_answer_at_once_is_one_attempt() -> None:
    expected = Expected(ONE).asked(ONE, 1).timeline(active=ONE, winner=ONE)
    assert answered({ONE: [said()], TWO: [said("no")]}, expected).asked == {ONE: 1}


@pytest.mark.requirement("provider-retry:retryable-failures")
@pytest.mark.parametrize("error", RETRYABLE, ids=code_of)
def test_a_failure_that_may_pass_is_tried_again_on_the_same_model(error: ProviderError) -> None:
    expected = Expected(ONE).asked(ONE, 1, error, outcome=AttemptOutcome.RETRYING).asked(ONE, 2)
    parts: dict[str, list[Line]] = {ONE: [error, said()], TWO: [said("no")]}
    stage = answered(parts, expected.timeline(active=ONE, winner=ONE))
    assert stage.asked == {ONE: 2}


@pytest.mark.requirement("provider-retry:two-retries")
@pytest.mark.requirement("provider-retry:timeline-with-failure")
@pytest.mark.parametrize("error", RETRYABLE, ids=code_of)
def test_a_model_is_given_up_after_two_retries(error: ProviderError) -> None:
    expected = Expected(ONE).spent(ONE, error, advanced=False).timeline(active=ONE)
    assert failing({ONE: [error]}, expected, error.code).asked == {ONE: 3}


@pytest.mark.requirement("provider-retry:fallback-after-retries")
@pytest.mark.parametrize("error", RETRYABLE, ids=code_of)
def test_retries_that_run_out_lead_to_the_fallback(error: ProviderError) -> None:
    expected = Expected(ONE).spent(ONE, error, advanced=True).asked(TWO, 1)
    answered({ONE: [error], TWO: [said()]}, expected.timeline(active=TWO, winner=TWO))


@pytest.mark.requirement("provider-retry:fail-fast-failures")
@pytest.mark.requirement("provider-retry:timeline-with-failure")
@pytest.mark.parametrize("error", FAIL_FAST, ids=code_of)
def test_a_refusal_is_not_tried_again(error: ProviderError) -> None:
    fast = AttemptOutcome.FAIL_FAST_ABORTED
    expected = Expected(ONE).asked(ONE, 1, error, outcome=fast).timeline(active=ONE)
    assert failing({ONE: [error, said()]}, expected, error.code).asked == {ONE: 1}


@pytest.mark.requirement("provider-retry:fallback-after-fail-fast")
@pytest.mark.parametrize("error", FAIL_FAST, ids=code_of)
def test_a_refusal_leads_to_the_fallback(error: ProviderError) -> None:
    fast = AttemptOutcome.FAIL_FAST_ABORTED
    expected = Expected(ONE).asked(ONE, 1, error, outcome=fast, advanced=True).asked(TWO, 1)
    answered({ONE: [error], TWO: [said()]}, expected.timeline(active=TWO, winner=TWO))


@pytest.mark.requirement("provider-retry:timeline-with-failure")
@pytest.mark.requirement("provider-retry:exhaustion-is-visible")
def test_when_every_model_fails_all_attempts_are_kept_and_each_model_is_named() -> None:
    slow, refused = RETRYABLE[0], FAIL_FAST[0]
    expected = Expected(ONE).spent(ONE, slow, advanced=True)
    expected.asked(TWO, 1, refused, outcome=AttemptOutcome.FAIL_FAST_ABORTED)

    async def scene(stage: Stage) -> None:
        failed = await stage.fail()
        assert failed.timeline == expected.timeline(active=TWO)
        assert failed.failure.summary == (
            "none of 2 models answered: lab/one: timeout after 3 attempts (no answer in time);"
            " mill/two: auth_rejected (401: bad key)"
        )
        assert failed.failure.provider == "mill"
        assert failed.retry_at is None

    play(scene, {ONE: [slow], TWO: [refused]})


@pytest.mark.requirement("provider-retry:context-length-ends-the-turn")
def test_a_conversation_that_is_too_long_is_sent_to_nobody_else() -> None:
    error = ContextTooLongError("too long", retry_after_ms=10**9)
    fast = AttemptOutcome.FAIL_FAST_ABORTED
    expected = Expected(ONE).asked(ONE, 1, error, outcome=fast).timeline(active=ONE)
    stage = failing({ONE: [error], TWO: [said()]}, expected, "context_length_exceeded")
    assert stage.asked == {ONE: 1}


@pytest.mark.requirement("provider-retry:fail-closed-selection")
@pytest.mark.parametrize("error", [FAIL_FAST[3], FAIL_FAST[5]], ids=code_of)
def test_a_model_that_cannot_be_used_is_refused_before_anything_is_sent(
    error: ProviderError,
) -> None:
    refused = ProviderAttempt(
        provider="lab",
        model_ref=ONE,
        attempt=1,
        max_attempts=1,
        started_at=DAWN,
        completed_at=DAWN,
        duration_ms=0,
        outcome=AttemptOutcome.FAIL_FAST_ABORTED,
        failure_kind=error.code,
        disposition=Disposition.FAIL_FAST,
        advanced_to_fallback=True,
        transport_diagnostics=TransportDiagnostics(
            stage=ExchangeStage.SELECTION,
            provider="lab",
            model_ref=ONE,
            source_chain=(f"{error.code}: {error.message}",),
        ),
    )

    async def scene(stage: Stage) -> None:
        stage.bill.missing[ONE] = error
        spoke = await stage.succeed()
        expected = Expected(ONE).asked(TWO, 1).timeline(active=TWO, winner=TWO)
        attempts = (refused, *expected.attempts)
        assert spoke.timeline == msgspec.structs.replace(expected, attempts=attempts)
        assert stage.last_failures["lab"].failure_kind == error.code
        stage.bill.missing[TWO] = error
        failed = await stage.fail()
        assert failed.timeline is not None
        assert failed.timeline.active_model_ref is None, "nobody was asked"
        assert [a.advanced_to_fallback for a in failed.timeline.attempts] == [True, False]
        assert failed.failure.kind == error.code
        assert failed.failure.model_ref == TWO
        assert stage.asked == {TWO: 1}

    play(scene, {ONE: [said("no")], TWO: [said()]})


@pytest.mark.requirement("provider-retry:diagnostics-per-attempt")
@pytest.mark.requirement("provider-retry:usage-per-attempt")
def test_each_attempt_keeps_its_own_diagnostics_and_usage() -> None:
    notes = TransportDiagnostics(
        stage=ExchangeStage.RESPONSE_BODY,
        url="https://lab.example/v1/responses",
        status=200,
        flags=FailureFlags(is_timeout=True, is_body=True),
        source_chain=("ReadTimeout: idle",),
        request_id="req-1",
    )
    spent = TokenUsage(input_tokens=5)
    error = ProviderTimeoutError("silent", diagnostics=notes, usage=spent)
    answer = msgspec.structs.replace(said(), diagnostics=TransportDiagnostics(status=200))

    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed()
        assert spoke.usage == USAGE, "the round's own usage is the answer's"
        assert spoke.timeline is not None
        first, second = spoke.timeline.attempts
        named = msgspec.structs.replace(notes, provider="lab", model_ref=ONE)
        assert (first.transport_diagnostics, first.token_usage) == (named, spent)
        assert second.transport_diagnostics == TransportDiagnostics(
            provider="lab", model_ref=ONE, status=200
        )
        assert second.token_usage == USAGE
        assert spoke.timeline.aggregated_token_usage == USAGE.plus(spent)

    play(scene, {ONE: [error, answer]})


@pytest.mark.requirement("provider-retry:missing-usage-fails-nothing")
@pytest.mark.requirement("budgets-inside-turns:usage-is-estimated")
def test_an_answer_without_usage_is_counted_by_an_estimate_that_says_so() -> None:
    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed()
        assert spoke.usage.is_estimated
        assert spoke.usage.input_tokens > 0
        assert spoke.usage.output_tokens > 0
        assert spoke.timeline is not None
        assert spoke.timeline.attempts[0].token_usage == spoke.usage
        assert spoke.timeline.aggregated_token_usage == spoke.usage

    play(scene, {ONE: [said(usage=None)]})


def test_two_calls_with_one_id_make_an_answer_unreadable() -> None:
    call = ToolUseBlock(call_id=CallId("c1"), name="Sleep", input={})
    answer = ModelAnswer(blocks=(call, call), stop_reason=StopReason.TOOL_USE, usage=USAGE)

    async def scene(stage: Stage) -> None:
        failed = await stage.fail()
        assert failed.failure.kind == "invalid_response"
        assert failed.timeline is not None
        [attempt] = failed.timeline.attempts
        assert attempt.outcome is AttemptOutcome.FAIL_FAST_ABORTED
        assert attempt.token_usage == USAGE, "it was paid for all the same"

    play(scene, {ONE: [answer]})


@pytest.mark.requirement("provider-retry:fallback-belongs-to-its-round")
def test_a_fallback_that_answered_leads_nothing_afterwards() -> None:
    async def scene(stage: Stage) -> None:
        first = await stage.succeed()
        second = await stage.succeed()
        assert first.timeline is not None
        assert second.timeline is not None
        assert first.timeline.winning_model_ref == TWO
        assert second.timeline.requested_model_ref == ONE
        assert second.timeline.winning_model_ref == ONE
        assert len(second.timeline.attempts) == 1

    play(scene, {ONE: [AuthRejectedError("not now"), said()], TWO: [said("stand-in")]})


@pytest.mark.requirement("provider-retry:ordered-candidates")
def test_an_agents_own_model_is_asked_first_and_by_that_agent_alone() -> None:
    own = "forge/own"

    async def scene(stage: Stage) -> None:
        mine = await stage.succeed(override=own)
        others = await stage.succeed(agent=AgentId("bob"))
        assert mine.timeline is not None
        assert others.timeline is not None
        assert [a.model_ref for a in mine.timeline.attempts] == [own, TWO]
        assert mine.timeline.requested_model_ref == own
        assert [a.model_ref for a in others.timeline.attempts] == [ONE]

    play(scene, {ONE: [said()], TWO: [said("no")]})


def test_with_fallback_switched_off_only_the_first_model_is_asked() -> None:
    async def scene(stage: Stage) -> None:
        failed = await stage.fail()
        assert failed.timeline is not None
        assert [a.model_ref for a in failed.timeline.attempts] == [ONE]
        assert not failed.timeline.attempts[0].advanced_to_fallback

    play(scene, {ONE: [FAIL_FAST[0]], TWO: [said()]}, fallback_disabled=True)


def test_secrets_are_taken_out_of_whatever_is_written_down() -> None:
    class Mask:
        def redact(self, text: str) -> str:
            return text.replace("sk-1", "[key]")

    notes = TransportDiagnostics(
        url="https://lab.example/?key=sk-1", source_chain=("sk-1",), notes=("sk-1",)
    )
    error = AuthRejectedError("sk-1 is not a key", diagnostics=notes)

    async def scene(stage: Stage) -> None:
        failed = await stage.fail()
        assert "sk-1" not in msgspec.json.encode(failed).decode()
        assert failed.failure.summary == "[key] is not a key"
        assert stage.last_failures["lab"].summary == "[key] is not a key"

    play(scene, {ONE: [error]}, redactor=Mask())


@pytest.mark.requirement("default-trigger:written-down-nowhere")
@pytest.mark.parametrize("seal", [None, "", "<think>", "reasoning_content", "reasoning"])
def test_secrets_are_taken_out_of_reasoning_that_nothing_seals(seal: str | None) -> None:
    plain = ThinkingBlock(text="they call http://h/sk-1", signature=seal, origin="o")
    sealed = ThinkingBlock(text="sk-1", signature="c2ln", origin="o")
    answer = msgspec.structs.replace(said("hi"), blocks=(plain, sealed, TextBlock(text="hi")))

    class Mask:
        def redact(self, text: str) -> str:
            return text.replace("sk-1", "[key]")

    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed()
        cleaned = msgspec.structs.replace(plain, text="they call http://h/[key]")
        assert spoke.blocks == (cleaned, sealed, TextBlock(text="hi"))

    play(scene, {ONE: [answer]}, redactor=Mask())


def test_whoever_watches_hears_the_answer_grow() -> None:
    heard: list[tuple[AgentId, AnswerProgress]] = []

    async def scene(stage: Stage) -> None:
        await stage.succeed()

    play(
        scene,
        {ONE: [said()]},
        progress=lambda agent_id, progress: heard.append((agent_id, progress)),
    )
    assert heard == [(ADA, TextGrew(text="…"))]


def test_an_error_that_is_no_providers_is_a_bug_and_goes_on_as_one() -> None:
    async def scene(stage: Stage) -> None:
        with pytest.raises(ZeroDivisionError):
            await stage.ask()
        assert stage.asked == {ONE: 1}

    play(scene, {ONE: [ZeroDivisionError("a bug")], TWO: [said()]})
