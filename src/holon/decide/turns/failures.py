"""Failures in the one shape every operator surface shows.

Owns:  the mapping from errors and runtime facts to FailureArtifact, and the runtime's own kinds.
Rule 1: a summary is one bounded line a person can act on; tracebacks and payloads stay out.
Rule 2: the category says where a failure came from: the provider tree brings its own, Holon's other
        errors are `runtime`, a task's end is `task`, and anything unforeseen is `unknown`.
Rule 3: when no model answered, the artifact is that of the model asked last, and its summary names
        every candidate and how it failed.
Rule 4: secrets are redacted before a text is cut: half a secret is no longer recognized.
Rule 5: ABORTED_KINDS are ends from outside the turn: their message counts as aborted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from holon.decide.text.secrets import Redact
from holon.model.errors import HolonError
from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.limits import EVENT_TEXT_CHARS_MAX, TURN_ROUNDS_COUNT_MAX
from holon.model.providers.attempts import ProviderAttempt, ProviderError
from holon.model.providers.models import ModelRef
from holon.model.text_size import cut
from holon.model.turns.turn import TerminalKind
from holon.model.values import TaskId

ROUND_LIMIT: Final = "round_limit"
OPERATOR_ABORT: Final = "operator_abort"
POISON_TURN: Final = "poison_turn"
TURN_SET_ASIDE: Final = "turn_set_aside"
INTERRUPTED_BY_RESTART: Final = "interrupted_by_restart"
UNEXPECTED_ERROR: Final = "unexpected_error"

ABORTED_KINDS: Final = frozenset({OPERATOR_ABORT, POISON_TURN, TURN_SET_ASIDE})

_CAUSES_COUNT_MAX: Final = 8
_CANDIDATES_NAMED_COUNT_MAX: Final = 8


class FailedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model that did not answer, and its last error. `asked` is false if it was never called."""

    model_ref: ModelRef
    error: ProviderError
    asked: bool = True


def failure_of(error: Exception) -> FailureArtifact:
    """Return the artifact of an error that came up outside a round."""
    match error:
        case ProviderError():
            return _provider_failure(error, (), redact=str)
        case HolonError():
            return FailureArtifact(
                category=FailureCategory.RUNTIME,
                kind=error.code,
                summary=first_line(error.message),
                recovery_hint=error.hint,
                source_chain=_causes(error),
            )
        case _:
            return FailureArtifact(
                category=FailureCategory.UNKNOWN,
                kind=UNEXPECTED_ERROR,
                summary=_named(error),
                source_chain=_causes(error),
                metadata={"error_type": type(error).__name__},
            )


def round_failure(
    lost: Sequence[FailedCandidate],
    attempts: Sequence[ProviderAttempt],
    *,
    redact: Redact = str,
) -> FailureArtifact:
    """Return the artifact of a round that no candidate answered; `lost` is in the order tried."""
    last_asked = next((each for each in reversed(lost) if each.asked), lost[-1])
    name = str(last_asked.model_ref)
    own_attempts = [attempt for attempt in attempts if attempt.model_ref == name]
    artifact = _provider_failure(last_asked.error, own_attempts, redact=redact)
    counts = Counter(attempt.model_ref for attempt in attempts)
    tried = first_line(", ".join(str(each.model_ref) for each in lost))
    return msgspec.structs.replace(
        artifact,
        summary=_summary_of(lost, counts, redact),
        metadata=artifact.metadata | {"attempt_count": str(len(attempts)), "candidates": tried},
    )


def task_failure(
    task_id: TaskId, *, kind: str, summary: str, exit_status: int | None = None
) -> FailureArtifact:
    """Return the artifact of a background task that did not end well."""
    return FailureArtifact(
        category=FailureCategory.TASK,
        kind=kind,
        summary=first_line(summary),
        task_id=task_id,
        exit_status=exit_status,
    )


def round_limit() -> FailureArtifact:
    """A turn used up its rounds."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=ROUND_LIMIT,
        summary=f"the turn did not end within {TURN_ROUNDS_COUNT_MAX} model rounds",
        recovery_hint="split the work, or prompt the agent to go on",
    )


def over_budget(*, needed_tokens: int, share_tokens: int, subject: str) -> FailureArtifact:
    """What a prompt must hold does not fit what the model takes."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=TerminalKind.BASELINE_OVER_BUDGET.value,
        summary=first_line(
            f"the prompt does not fit the model: it needs at least about {needed_tokens} tokens"
            f" where there is room for {share_tokens}: {subject}"
        ),
        recovery_hint="use a model with a larger context window, or send less",
    )


def run_round_limit(rounds_max: int) -> FailureArtifact:
    """A one-shot run used up the rounds it was given."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=ROUND_LIMIT,
        summary=f"the run did not end within {rounds_max} model rounds",
        recovery_hint="let the agent go on with another run, or allow more with --max-rounds",
        metadata={"rounds_max": str(rounds_max)},
    )


def operator_abort(reason: str) -> FailureArtifact:
    """An operator ended the turn."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=OPERATOR_ABORT,
        summary=first_line(f"the operator ended the turn: {reason}"),
    )


def poison_turn(resume_count: int) -> FailureArtifact:
    """A turn was cut off so often that resuming it again would be reckless."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=POISON_TURN,
        summary=f"the turn was given up after it had been resumed {resume_count} times",
        recovery_hint="look at what the turn did last, then send the message again",
        metadata={"resume_count": str(resume_count)},
    )


def turn_set_aside(crash_count: int) -> FailureArtifact:
    """The process ended or hung in a turn that got no further between its starts."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=TURN_SET_ASIDE,
        summary=f"the turn was set aside: the runtime ended or hung {crash_count} times at the same"
        " place in it",
        recovery_hint="what the turn read and did is left out of later prompts; look at it in the"
        " transcript, and send what matters again in other words",
        metadata={"crash_count": str(crash_count)},
    )


def first_line(text: str, *, chars_max: int = EVENT_TEXT_CHARS_MAX) -> str:
    """Return the first line of `text`, bounded."""
    return cut(next(iter(text.strip().splitlines()), ""), chars_max=chars_max)


def _provider_failure(
    error: ProviderError, attempts: Sequence[ProviderAttempt], *, redact: Redact
) -> FailureArtifact:
    last = attempts[-1] if attempts else None
    exchange = last.transport_diagnostics if last is not None else None
    metadata = {"attempt_count": str(len(attempts))} if attempts else {}
    if exchange is not None and exchange.request_id is not None:
        metadata["request_id"] = first_line(redact(exchange.request_id))
    if error.retry_after_ms is not None:
        metadata["retry_after_ms"] = str(error.retry_after_ms)
    return FailureArtifact(
        category=error.category,
        kind=error.code,
        summary=first_line(redact(error.message)),
        provider=last.provider if last is not None else None,
        model_ref=last.model_ref if last is not None else None,
        status=exchange.status if exchange is not None else None,
        retryable=error.retryable,
        recovery_hint=None if error.hint is None else first_line(redact(error.hint)),
        source_chain=_causes(error, redact),
        metadata=metadata,
    )


def _summary_of(lost: Sequence[FailedCandidate], counts: Mapping[str, int], redact: Redact) -> str:
    """Return one line that names every candidate and how it failed."""
    if len(lost) == 1:
        count = counts.get(str(lost[0].model_ref), 0)
        ending = f" (gave up after {count} attempts)" if count > 1 else ""
        message = redact(lost[0].error.message)
        return first_line(message, chars_max=EVENT_TEXT_CHARS_MAX - len(ending)) + ending
    opening = f"none of {len(lost)} models answered: "
    named, more = lost[:_CANDIDATES_NAMED_COUNT_MAX], len(lost) - _CANDIDATES_NAMED_COUNT_MAX
    ending = f"; and {more} more" if more > 0 else ""
    chars_left = (EVENT_TEXT_CHARS_MAX - len(opening) - len(ending)) // len(named) - len("; ")
    parts = (cut(_candidate_ending(each, counts, redact), chars_max=chars_left) for each in named)
    return opening + "; ".join(parts) + ending


def _candidate_ending(lost: FailedCandidate, counts: Mapping[str, int], redact: Redact) -> str:
    count = counts.get(str(lost.model_ref), 0)
    often = f" after {count} attempts" if count > 1 else ""
    message = first_line(redact(lost.error.message))
    return f"{lost.model_ref}: {lost.error.code}{often} ({message})"


def _causes(error: BaseException, redact: Redact = str) -> tuple[str, ...]:
    chain: list[str] = []
    cause = error.__cause__
    while cause is not None and len(chain) < _CAUSES_COUNT_MAX:
        chain.append(_named(cause, redact))
        cause = cause.__cause__
    return tuple(chain)


def _named(error: BaseException, redact: Redact = str) -> str:
    text = first_line(redact(str(error)))
    name = type(error).__name__
    return first_line(f"{name}: {text}") if text else name
