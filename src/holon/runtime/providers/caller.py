"""Provider caller: one model round, with retries and fallbacks, and a record of every attempt.

Owns:  the fallback order of one round with the waits between attempts, and the attempt timeline.
Rule 1: each attempt is recorded once, when it has ended and what follows it is decided.
Rule 2: text from outside passes the redactor before it is recorded.
Rule 3: exchange diagnostics always name their provider and model, whichever layer reported them.
Rule 4: a provider error is a value from here on; the turn decides what it means. Any other error is
        a bug and propagates as one.
Rule 5: the timeline is part of the answer and of the failure alike.
Rule 6: every round begins with the agent's first model, whichever model answered the last one: what
        agents share is in the gate, and fallbacks are not.
Rule 7: when no candidate answered, and one of them named a distant moment of recovery, the failure
        carries the earliest such moment; a conversation that is too long never does.
Rule 8: an answer is cut to the model's output limit here, before anything stores or searches it.
Rule 9: usage that a provider does not report is estimated: budgets count every answer.
Rule 10: tools withheld from a candidate are left out of its request alone, and named in its answer:
         a call of one is then refused, live and in replay.
Rule 11: a cancelled round leaves no trace in the gate: an interrupted probe is given back.
Rule 12: an undecodable answer from a route that has answered before is retried once, as after a
         broken connection: that is a proxy's glitch, not a wrong address.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeAlias, assert_never

import msgspec

from holon.decide.providers.routes import (
    ATTEMPTS_COUNT_MAX,
    CircuitPermit,
    FailedAttempt,
    FailRound,
    NextCandidate,
    RetryAfter,
    RetryDecision,
    decide_retry,
    jitter_of,
    moment_named,
)
from holon.decide.providers.token_estimate import counted_usage
from holon.decide.text.bounded import answer_bytes_max, bounded_answer
from holon.decide.turns.failures import FailedCandidate, first_line, round_failure
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    CircuitOpenError,
    ExchangeStage,
    GarbledAnswerError,
    LeftBecause,
    ProviderAttempt,
    ProviderError,
    TokenUsage,
    TransportDiagnostics,
    UnreadableResponseError,
    usage_of,
)
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import AssistantBlock, TextBlock, ThinkingBlock, tool_uses_of
from holon.model.turns.turn import AnswerProgress, ModelAnswer, ModelAnswered, ModelFailed
from holon.model.values import AgentId
from holon.ports.clock import Clock
from holon.ports.journal import Redactor
from holon.ports.providers import Candidate
from holon.runtime.providers.gate import LastFailure, ProviderGate
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.turns.conversation import TokenCalibrations

_NOTES_COUNT_MAX: Final = 8
ProgressListener: TypeAlias = Callable[[AgentId, AnswerProgress], None]
_MS_NS: Final = 1_000_000


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one model, timed from dispatch to its end."""

    model_ref: ModelRef
    number: int
    count_max: int
    started_at: datetime
    completed_at: datetime
    duration_ms: int
    outcome: ModelAnswer | ProviderError


class AttemptLog:
    """The attempts of one round, recorded as they end."""

    def __init__(self, redactor: Redactor, *, requested: ModelRef) -> None:
        self._redactor = redactor
        self._requested = requested
        self._active: ModelRef | None = None
        self._winner: ModelRef | None = None
        self.attempts: list[ProviderAttempt] = []
        self.lost: list[FailedCandidate] = []

    def succeeded(self, attempt: Attempt, answer: ModelAnswer) -> None:
        """Record an answered attempt."""
        self._active = self._winner = attempt.model_ref
        self.attempts.append(
            ProviderAttempt(
                provider=attempt.model_ref.provider,
                model_ref=str(attempt.model_ref),
                attempt=attempt.number,
                max_attempts=attempt.count_max,
                started_at=attempt.started_at,
                completed_at=attempt.completed_at,
                duration_ms=attempt.duration_ms,
                outcome=AttemptOutcome.SUCCEEDED,
                token_usage=answer.usage,
                transport_diagnostics=self._noted(attempt.model_ref, answer.diagnostics),
            )
        )

    def failed(self, attempt: Attempt, error: ProviderError, decision: RetryDecision) -> None:
        """Record a failed attempt; `decision` is what follows it."""
        self._active = attempt.model_ref
        self._append_failure(attempt, error, decision, error.diagnostics)
        if not isinstance(decision, RetryAfter):
            self.lost.append(FailedCandidate(model_ref=attempt.model_ref, error=error))

    def never_asked(
        self, ref: ModelRef, error: ProviderError, *, at: datetime, has_fallback: bool
    ) -> None:
        """Record a candidate that was skipped before anything was sent."""
        outcome = AttemptOutcome.FAIL_FAST_ABORTED
        refused = Attempt(
            model_ref=ref,
            number=1,
            count_max=1,
            started_at=at,
            completed_at=at,
            duration_ms=0,
            outcome=error,
        )
        because = LeftBecause.CIRCUIT_OPEN if isinstance(error, CircuitOpenError) else None
        leave = NextCandidate if has_fallback else FailRound
        decision = leave(outcome=outcome, because=because)
        notes = error.diagnostics or TransportDiagnostics(
            stage=ExchangeStage.SELECTION, source_chain=(f"{error.code}: {error.message}",)
        )
        self._append_failure(refused, error, decision, notes)
        self.lost.append(FailedCandidate(model_ref=ref, error=error, asked=False))

    def timeline(self) -> AttemptTimeline:
        """Return every attempt so far, in order."""
        return AttemptTimeline(
            attempts=tuple(self.attempts),
            requested_model_ref=str(self._requested),
            active_model_ref=None if self._active is None else str(self._active),
            winning_model_ref=None if self._winner is None else str(self._winner),
            aggregated_token_usage=usage_of(self.attempts),
        )

    def _append_failure(
        self,
        attempt: Attempt,
        error: ProviderError,
        decision: RetryDecision,
        notes: TransportDiagnostics | None,
    ) -> None:
        self.attempts.append(
            ProviderAttempt(
                provider=attempt.model_ref.provider,
                model_ref=str(attempt.model_ref),
                attempt=attempt.number,
                max_attempts=attempt.count_max,
                started_at=attempt.started_at,
                completed_at=attempt.completed_at,
                duration_ms=attempt.duration_ms,
                outcome=_outcome_of(decision),
                failure_kind=error.code,
                disposition=error.disposition,
                advanced_to_fallback=isinstance(decision, NextCandidate),
                left_because=None if isinstance(decision, RetryAfter) else decision.because,
                backoff_ms=decision.backoff_ms if isinstance(decision, RetryAfter) else None,
                token_usage=error.usage,
                transport_diagnostics=self._noted(attempt.model_ref, notes),
            )
        )

    def _noted(
        self, ref: ModelRef, notes: TransportDiagnostics | None
    ) -> TransportDiagnostics | None:
        if notes is None:
            return None
        redact = self._redactor.redact
        return msgspec.structs.replace(
            notes,
            provider=notes.provider or ref.provider,
            model_ref=notes.model_ref or str(ref),
            url=None if notes.url is None else redact(notes.url),
            request_id=None if notes.request_id is None else first_line(redact(notes.request_id)),
            source_chain=tuple(
                first_line(redact(each)) for each in notes.source_chain[:_NOTES_COUNT_MAX]
            ),
            notes=tuple(first_line(redact(note)) for note in notes.notes[:_NOTES_COUNT_MAX]),
        )


def _outcome_of(decision: RetryDecision) -> AttemptOutcome:
    match decision:
        case RetryAfter():
            return AttemptOutcome.RETRYING
        case NextCandidate(outcome=outcome) | FailRound(outcome=outcome):
            return outcome
        case _:
            assert_never(decision)


class ProviderCaller:
    """Calls the models of one host."""

    def __init__(
        self,
        *,
        routing: ModelRouting,
        gate: ProviderGate,
        clock: Clock,
        redactor: Redactor,
        calibrations: TokenCalibrations,
        progress: ProgressListener,
        deferral_allowed: bool,
    ) -> None:
        """With `deferral_allowed`, a turn may wait until the time its provider named."""
        self.routing: Final = routing
        self.gate: Final = gate
        self.clock: Final = clock
        self.redactor: Final = redactor
        self.calibrations: Final = calibrations
        self.progress: Final = progress
        self.deferral_allowed: Final = deferral_allowed

    async def ask(
        self, request: ProviderRequest, *, override: ModelRef | None
    ) -> ModelAnswered | ModelFailed:
        """Return the answer of the first candidate that gives one, or the failure."""
        return await _FallbackChain(self, request, self.routing.ordered(override)).run()


class _FallbackChain:
    """Calls an agent's models in order until one answers."""

    def __init__(
        self, caller: ProviderCaller, request: ProviderRequest, models: Sequence[ModelRef]
    ) -> None:
        self._caller = caller
        self._clock = caller.clock
        self._gate = caller.gate
        self._request = request
        self._models = models
        self._withheld: frozenset[str] = frozenset()  # from the current candidate
        self._log = AttemptLog(caller.redactor, requested=models[0])
        self._moments: list[datetime] = []

    async def run(self) -> ModelAnswered | ModelFailed:
        """Try each candidate in turn; return the first answer, or the failure of all."""
        for index, ref in enumerate(self._models):
            answer = await self._try(ref, self._models[index + 1 :])
            if answer is not None:
                return ModelAnswered(
                    blocks=tuple(self._without_secrets(block) for block in answer.blocks),
                    stop_reason=answer.stop_reason,
                    usage=answer.usage or TokenUsage(),
                    timeline=self._log.timeline(),
                    withheld=tuple(sorted(self._withheld)),
                )
            if self._log.lost[-1].error.ends_turn:
                self._moments.clear()  # waiting does not shorten a conversation
                break
        redact = self._caller.redactor.redact
        return ModelFailed(
            failure=round_failure(self._log.lost, self._log.attempts, redact=redact),
            timeline=self._log.timeline(),
            retry_at=min(self._moments, default=None) if self._caller.deferral_allowed else None,
        )

    def _without_secrets(self, block: AssistantBlock) -> AssistantBlock:
        """Redact text before it is recorded. Calls and sealed thinking must stay verbatim."""
        match block:
            case TextBlock(text=text) | ThinkingBlock(text=text, is_sealed=False):
                return msgspec.structs.replace(block, text=self._caller.redactor.redact(text))
            case _:
                return block

    async def _try(self, ref: ModelRef, rest: Sequence[ModelRef]) -> ModelAnswer | None:
        now = self._clock.now()
        try:
            candidate = self._caller.routing.find(ref)
        except ProviderError as error:
            self._gate.note_refusal(ref, self._last_failure(ref, error, now))
            self._log.never_asked(ref, error, at=now, has_fallback=bool(rest))
            return None
        route = candidate.model_ref
        # A usable fallback matters only for an open circuit, so it is looked up only then.
        has_other = self._gate.is_resting(route) and any(map(self._caller.routing.is_usable, rest))
        way = self._gate.enter(route, now_ms=self._now_ms(), has_fallback=has_other)
        if way is CircuitPermit.PASSED_OVER:
            resting = CircuitOpenError("its circuit is open: it failed too often in a row")
            self._log.never_asked(route, resting, at=now, has_fallback=True)
            return None
        attempts_count_max = ATTEMPTS_COUNT_MAX if way is CircuitPermit.FREE else 1
        try:
            return await self._ask(candidate, attempts_count_max, has_fallback=bool(rest))
        finally:
            if way is CircuitPermit.PROBE:
                self._gate.leave(route, now_ms=self._now_ms())

    async def _ask(
        self, candidate: Candidate, attempts_count_max: int, *, has_fallback: bool
    ) -> ModelAnswer | None:
        number, may_retry_garbled = 1, self._gate.has_answered(candidate.model_ref)
        self._withheld = self._caller.routing.withheld_tools(candidate)
        while True:
            attempt = await self._attempt(candidate, number, attempts_count_max)
            if may_retry_garbled and (garbled := _garbled(attempt.outcome)) is not None:
                may_retry_garbled = False  # once: a second one indicates a lasting fault
                attempt = msgspec.structs.replace(attempt, outcome=garbled)
            if isinstance(attempt.outcome, ModelAnswer):
                self._gate.note_success(candidate.model_ref, account=candidate.account)
                self._log.succeeded(attempt, attempt.outcome)
                return attempt.outcome
            decision = self._judge(candidate, attempt, attempt.outcome, has_fallback=has_fallback)
            self._log.failed(attempt, attempt.outcome, decision)
            if not isinstance(decision, RetryAfter):
                named = moment_named(attempt.outcome, failed_at=attempt.completed_at)
                self._moments.extend(() if named is None else (named,))
                return None
            self._gate.spend_retry(candidate.account)
            await self._clock.sleep_for(decision.backoff_ms)
            number += 1

    async def _attempt(self, candidate: Candidate, number: int, count_max: int) -> Attempt:
        started_at, began_ns = self._clock.now(), self._clock.monotonic_ns()
        outcome: ModelAnswer | ProviderError
        try:
            answer = await candidate.provider.answer(self._offered(), self._report_progress)
            answer = _checked(answer, bytes_max=answer_bytes_max(candidate.output_tokens_max))
            outcome = msgspec.structs.replace(answer, usage=self._usage_of(answer, candidate))
        except ProviderError as error:
            outcome = error
        return Attempt(
            model_ref=candidate.model_ref,
            number=number,
            count_max=count_max,
            started_at=started_at,
            completed_at=self._clock.now(),
            duration_ms=(self._clock.monotonic_ns() - began_ns) // _MS_NS,
            outcome=outcome,
        )

    def _usage_of(self, answer: ModelAnswer, candidate: Candidate) -> TokenUsage:
        reported = answer.usage
        if reported is not None and reported.input_tokens > 0 and reported.output_tokens > 0:
            return reported  # avoids encoding a long request to measure it
        return counted_usage(
            reported,
            read_bytes=len(msgspec.json.encode(self._request)),
            written_bytes=sum(len(msgspec.json.encode(block)) for block in answer.blocks),
            calibration=self._caller.calibrations.of(str(candidate.model_ref)),
        )

    def _offered(self) -> ProviderRequest:
        """The request, without the tools withheld from the candidate."""
        if not self._withheld:
            return self._request
        offered = tuple(spec for spec in self._request.tools if spec.name not in self._withheld)
        return msgspec.structs.replace(self._request, tools=offered)

    def _judge(
        self, candidate: Candidate, attempt: Attempt, error: ProviderError, *, has_fallback: bool
    ) -> RetryDecision:
        ref = candidate.model_ref
        self._gate.note_failure(
            ref,
            self._last_failure(ref, error, attempt.completed_at),
            retryable=error.retryable,
            now_ms=self._now_ms(),
        )
        return decide_retry(
            FailedAttempt(
                attempt=attempt.number,
                attempts_count_max=attempt.count_max,
                retryable=error.retryable,
                ends_turn=error.ends_turn,
                retry_after_ms=error.retry_after_ms,
                may_retry=self._gate.may_retry(candidate.account),
                is_circuit_open=self._gate.is_resting(ref),
                has_fallback=has_fallback,
                jitter=jitter_of(self._request.agent_id, ref, attempt.started_at),
            )
        )

    def _last_failure(self, ref: ModelRef, error: ProviderError, at: datetime) -> LastFailure:
        return LastFailure(
            model_ref=str(ref),
            failure_kind=error.code,
            summary=first_line(self._caller.redactor.redact(error.message)),
            failed_at=at,
        )

    def _report_progress(self, progress: AnswerProgress) -> None:
        self._caller.progress(self._request.agent_id, progress)

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // _MS_NS


def _checked(answer: ModelAnswer, *, bytes_max: int) -> ModelAnswer:
    """Return the bounded answer; raises when its call ids are not unique or it is too large."""
    call_ids = [use.call_id for use in tool_uses_of(answer.blocks)]
    problem = "the answer gives the same id to two tool calls"
    if len(set(call_ids)) == len(call_ids):
        try:
            return bounded_answer(answer, bytes_max=bytes_max)
        except ValueError as too_large:
            problem = f"the answer is too large: {too_large}"
    raise UnreadableResponseError(
        problem,
        diagnostics=answer.diagnostics,
        usage=answer.usage,
    )


def _garbled(outcome: ModelAnswer | ProviderError) -> GarbledAnswerError | None:
    """Return an undecodable answer as a retryable error; None for any other outcome."""
    if not isinstance(outcome, UnreadableResponseError) or outcome.diagnostics is None:
        return None
    flags = outcome.diagnostics.flags
    if flags is None or not flags.is_decode:
        return None
    return GarbledAnswerError(
        outcome.message,
        hint=outcome.hint,
        diagnostics=outcome.diagnostics,
        usage=outcome.usage,
    )
