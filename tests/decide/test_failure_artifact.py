"""Every failure fits one shape, bounded and with its source named."""

import msgspec
import pytest

from holon.decide.failure_artifact import (
    ABORTED_KINDS,
    failure_of,
    one_line,
    operator_abort,
    poison_turn,
    round_limit,
    task_failure,
)
from holon.model.brief import FailureArtifact, FailureCategory
from holon.model.errors import BadInputError, HolonError, StoreFullError
from holon.model.ids import TaskId
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.provider_attempt import ProviderAttempt, TransportDiagnostics
from holon.model.provider_errors import (
    AuthRejectedError,
    ContextTooLongError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    RequestRejectedError,
    TransportUnsupportedError,
    UnreadableResponseError,
)
from tests.decide.turn_rows import ATTEMPT

TRANSPORT = FailureCategory.TRANSPORT
PROTOCOL = FailureCategory.PROTOCOL
RAW = "line one\nTraceback (most recent call last):\n  secret payload"


@pytest.mark.requirement("settlement:failure-category-names-provenance")
@pytest.mark.parametrize(
    ("error", "category", "kind", "retryable"),
    [
        (ProviderTimeoutError("slow"), TRANSPORT, "timeout", True),
        (ProviderUnreachableError("gone"), TRANSPORT, "connection", True),
        (RateLimitedError("later"), TRANSPORT, "rate_limited", True),
        (ProviderOverloadedError("busy"), TRANSPORT, "server_error", True),
        (AuthRejectedError("who?"), TRANSPORT, "auth_rejected", False),
        (RequestRejectedError("bad"), PROTOCOL, "request_rejected", False),
        (ContextTooLongError("long"), PROTOCOL, "context_length_exceeded", False),
        (UnreadableResponseError("what?"), PROTOCOL, "invalid_response", False),
        (TransportUnsupportedError("no"), PROTOCOL, "unsupported_transport", False),
        (StoreFullError("full"), FailureCategory.RUNTIME, "storage_full", False),
        (BadInputError("odd"), FailureCategory.RUNTIME, "bad_input", False),
        (ValueError("odd"), FailureCategory.UNKNOWN, "unexpected_error", False),
    ],
)
def test_the_category_says_where_a_failure_came_from(
    error: Exception, category: FailureCategory, kind: str, retryable: bool
) -> None:
    found = failure_of(error)
    assert (found.category, found.kind, found.retryable) == (category, kind, retryable)
    assert found.summary


@pytest.mark.requirement("settlement:one-failure-shape")
def test_a_provider_failure_names_provider_model_status_and_attempts() -> None:
    last: ProviderAttempt = msgspec.structs.replace(
        ATTEMPT, transport=TransportDiagnostics(status=429, request_id="req-7")
    )
    error = RateLimitedError("come back later", hint="wait a minute", retry_after_ms=1500)
    found = failure_of(error, attempts=(ATTEMPT, last))
    assert found == FailureArtifact(
        category=TRANSPORT,
        kind="rate_limited",
        summary="come back later",
        provider="scripted",
        model_ref="scripted/one",
        status=429,
        retryable=True,
        recovery_hint="wait a minute",
        metadata={"attempt_count": "2", "request_id": "req-7", "retry_after_ms": "1500"},
    )


def test_a_provider_failure_without_an_exchange_names_what_is_known() -> None:
    assert failure_of(ProviderError("no")).metadata == {}
    found = failure_of(ProviderError("no"), attempts=(ATTEMPT,))
    assert (found.provider, found.status) == ("scripted", None)
    silent = msgspec.structs.replace(ATTEMPT, transport=TransportDiagnostics(status=500))
    assert failure_of(ProviderError("no"), attempts=(silent,)).metadata == {"attempt_count": "1"}


@pytest.mark.requirement("settlement:failure-detail-is-bounded")
@pytest.mark.parametrize("error", [HolonError(RAW), ValueError(RAW), ProviderError(RAW)])
def test_raw_payloads_stay_out_of_the_artifact(error: Exception) -> None:
    found = failure_of(error)
    assert "secret" not in msgspec.json.encode(found).decode()
    assert "line one" in found.summary


@pytest.mark.requirement("settlement:failure-detail-is-bounded")
@pytest.mark.parametrize("length", [0, 1, EVENT_TEXT_CHARS_MAX, EVENT_TEXT_CHARS_MAX + 1, 5_000])
def test_a_summary_is_one_bounded_line(length: int) -> None:
    line = one_line("\n\n" + "x" * length + "\nmore")
    assert len(line) == min(length, EVENT_TEXT_CHARS_MAX) if length else line == "more"
    assert (line[-1:] == "…") is (length > EVENT_TEXT_CHARS_MAX)
    assert one_line(" \n ") == ""


def chained(depth: int) -> HolonError:
    error = HolonError("top")
    tail: BaseException = error
    for number in range(depth):
        tail.__cause__ = ValueError(f"cause {number}\nnoise")
        tail = tail.__cause__
    return error


def test_the_chain_of_causes_is_kept_and_bounded() -> None:
    assert failure_of(chained(2)).source_chain == ("ValueError: cause 0", "ValueError: cause 1")
    assert len(failure_of(chained(50)).source_chain) == 8


def test_an_unforeseen_error_names_its_class() -> None:
    found = failure_of(KeyError())
    assert found.summary == "KeyError"
    assert found.metadata == {"error_type": "KeyError"}


@pytest.mark.requirement("settlement:failure-category-names-provenance")
def test_a_task_failure_names_its_task_and_exit_status() -> None:
    found = task_failure(TaskId("task_1"), kind="exit", summary="it broke\nlog", exit_status=3)
    assert found == FailureArtifact(
        category=FailureCategory.TASK,
        kind="exit",
        summary="it broke",
        task_id=TaskId("task_1"),
        exit_status=3,
    )


def test_the_runtimes_own_failures_say_what_happened() -> None:
    assert operator_abort("enough").summary == "the operator ended the turn: enough"
    assert poison_turn(8).metadata == {"resume_count": "8"}
    own = (operator_abort("x"), poison_turn(8), round_limit())
    assert {failure.category for failure in own} == {FailureCategory.RUNTIME}
    assert {f.kind for f in own} & ABORTED_KINDS == {"operator_abort", "poison_turn"}
