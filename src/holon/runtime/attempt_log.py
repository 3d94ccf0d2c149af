"""What a round's attempts leave behind: the timeline, and who was lost on the way.

Owns:  the records of one round's attempts, in order, and the exchange notes in them.
Rule 1: each attempt is written down once, when it has ended and what follows it is decided.
Rule 2: texts that came from outside pass the redactor on their way in.
Rule 3: whatever is known of an exchange names its provider and model, whoever reported it.
"""

from datetime import datetime
from typing import Final, assert_never

import msgspec

from holon.decide.failure_artifact import LostCandidate, first_line
from holon.decide.retry import GiveUp, MoveOn, RetryAfter, RetryDecision
from holon.model.answer import ModelAnswer
from holon.model.model_ref import ModelRef
from holon.model.provider_attempt import (
    AttemptOutcome,
    AttemptTimeline,
    ExchangeStage,
    LeftBecause,
    ProviderAttempt,
    TransportDiagnostics,
    usage_of,
)
from holon.model.provider_errors import ProviderError, RouteRestingError
from holon.ports.redactor import Redactor

_NOTES_COUNT_MAX: Final = 8


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at one model, timed from dispatch to its end."""

    model_ref: ModelRef
    number: int
    count_max: int
    started_at: datetime
    completed_at: datetime
    duration_ms: int
    came: ModelAnswer | ProviderError


class AttemptLog:
    """Filled while a round goes from one candidate to the next."""

    def __init__(self, redactor: Redactor, *, requested: ModelRef) -> None:
        self._redactor = redactor
        self._requested = requested
        self._active: ModelRef | None = None
        self._winner: ModelRef | None = None
        self.attempts: list[ProviderAttempt] = []
        self.lost: list[LostCandidate] = []

    def succeeded(self, attempt: Attempt, answer: ModelAnswer) -> None:
        """A model answered."""
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
        """A model was asked in vain; `decision` is what follows."""
        self._active = attempt.model_ref
        self._append_failure(attempt, error, decision, error.diagnostics)
        if not isinstance(decision, RetryAfter):
            self.lost.append(LostCandidate(model_ref=attempt.model_ref, error=error))

    def never_asked(
        self, ref: ModelRef, error: ProviderError, *, at: datetime, has_fallback: bool
    ) -> None:
        """A candidate was refused before anything was sent."""
        outcome = AttemptOutcome.FAIL_FAST_ABORTED
        refused = Attempt(
            model_ref=ref,
            number=1,
            count_max=1,
            started_at=at,
            completed_at=at,
            duration_ms=0,
            came=error,
        )
        because = LeftBecause.CIRCUIT_OPEN if isinstance(error, RouteRestingError) else None
        leave = MoveOn if has_fallback else GiveUp
        decision = leave(outcome=outcome, because=because)
        notes = error.diagnostics or TransportDiagnostics(
            stage=ExchangeStage.SELECTION, source_chain=(f"{error.code}: {error.message}",)
        )
        self._append_failure(refused, error, decision, notes)
        self.lost.append(LostCandidate(model_ref=ref, error=error, asked=False))

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
                advanced_to_fallback=isinstance(decision, MoveOn),
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
        case MoveOn(outcome=outcome) | GiveUp(outcome=outcome):
            return outcome
        case _:
            assert_never(decision)
