"""Failures in the one shape every operator surface shows.

Owns:  the mapping from errors and runtime facts to FailureArtifact, and the runtime's own kinds.
Rule 1: a summary is one bounded line a person can act on; tracebacks and payloads stay out.
Rule 2: the category says where it came from: the provider tree brings its own, Holon's other errors
        are `runtime`, a task's end is `task`, and anything unforeseen is `unknown`.
Rule 3: ABORTED_KINDS are ends from outside the turn: their message counts as aborted.
"""

from collections.abc import Sequence
from typing import Final

from holon.model.brief import FailureArtifact, FailureCategory
from holon.model.errors import HolonError
from holon.model.ids import TaskId
from holon.model.limits import EVENT_TEXT_CHARS_MAX, TURN_ROUNDS_COUNT_MAX
from holon.model.provider_attempt import ProviderAttempt
from holon.model.provider_errors import ProviderError

ROUND_LIMIT: Final = "round_limit"
OPERATOR_ABORT: Final = "operator_abort"
POISON_TURN: Final = "poison_turn"
INTERRUPTED_BY_RESTART: Final = "interrupted_by_restart"
UNEXPECTED_ERROR: Final = "unexpected_error"

ABORTED_KINDS: Final = frozenset({OPERATOR_ABORT, POISON_TURN})

_CAUSES_COUNT_MAX: Final = 8


def failure_of(error: Exception, *, attempts: Sequence[ProviderAttempt] = ()) -> FailureArtifact:
    """Return the artifact of an error; `attempts` say which provider it came from."""
    match error:
        case ProviderError():
            return _provider_failure(error, attempts)
        case HolonError():
            return FailureArtifact(
                category=FailureCategory.RUNTIME,
                kind=error.code,
                summary=one_line(error.message),
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


def task_failure(
    task_id: TaskId, *, kind: str, summary: str, exit_status: int | None = None
) -> FailureArtifact:
    """Return the artifact of a background task that did not end well."""
    return FailureArtifact(
        category=FailureCategory.TASK,
        kind=kind,
        summary=one_line(summary),
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


def operator_abort(reason: str) -> FailureArtifact:
    """An operator ended the turn."""
    return FailureArtifact(
        category=FailureCategory.RUNTIME,
        kind=OPERATOR_ABORT,
        summary=one_line(f"the operator ended the turn: {reason}"),
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


def one_line(text: str) -> str:
    """Return the first line of `text`, bounded."""
    line = next(iter(text.strip().splitlines()), "")
    if len(line) <= EVENT_TEXT_CHARS_MAX:
        return line
    return line[: EVENT_TEXT_CHARS_MAX - 1] + "…"


def _provider_failure(error: ProviderError, attempts: Sequence[ProviderAttempt]) -> FailureArtifact:
    last = attempts[-1] if attempts else None
    exchange = last.transport_diagnostics if last is not None else None
    metadata = {"attempt_count": str(len(attempts))} if attempts else {}
    if exchange is not None and exchange.request_id is not None:
        metadata["request_id"] = one_line(exchange.request_id)
    if error.retry_after_ms is not None:
        metadata["retry_after_ms"] = str(error.retry_after_ms)
    return FailureArtifact(
        category=error.category,
        kind=error.code,
        summary=one_line(error.message),
        provider=last.provider if last is not None else None,
        model_ref=last.model_ref if last is not None else None,
        status=exchange.status if exchange is not None else None,
        retryable=error.retryable,
        recovery_hint=error.hint,
        source_chain=_causes(error),
        metadata=metadata,
    )


def _causes(error: BaseException) -> tuple[str, ...]:
    chain: list[str] = []
    cause = error.__cause__
    while cause is not None and len(chain) < _CAUSES_COUNT_MAX:
        chain.append(_named(cause))
        cause = cause.__cause__
    return tuple(chain)


def _named(error: BaseException) -> str:
    text = one_line(str(error))
    name = type(error).__name__
    return one_line(f"{name}: {text}") if text else name
