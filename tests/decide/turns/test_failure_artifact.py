"""Every failure fits one shape, bounded and with its source named."""

import msgspec
import pytest

from holon.decide.turns.failures import (
    ABORTED_KINDS,
    FailedCandidate,
    failure_of,
    first_line,
    operator_abort,
    poison_turn,
    round_failure,
    round_limit,
    task_failure,
)
from holon.model.errors import BadInputError, HolonError, StoreFullError
from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    CircuitOpenError,
    ContextTooLongError,
    ModelUnavailableError,
    ProviderAttempt,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    RequestRejectedError,
    TransportDiagnostics,
    TransportUnsupportedError,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.providers.models import parse_model_ref
from holon.model.values import TaskId
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
        (UsageLimitedError("used up"), TRANSPORT, "usage_limit_reached", False),
        (CircuitOpenError("resting"), TRANSPORT, "circuit_open", False),
        (ModelUnavailableError("no"), FailureCategory.RUNTIME, "model_unavailable", False),
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
        ATTEMPT, transport_diagnostics=TransportDiagnostics(status=429, request_id="req-7")
    )
    error = RateLimitedError("come back later", hint="wait a minute", retry_after_ms=1500)
    found = round_failure([lost("scripted/one", error)], (ATTEMPT, last))
    assert found == FailureArtifact(
        category=TRANSPORT,
        kind="rate_limited",
        summary="come back later (gave up after 2 attempts)",
        provider="scripted",
        model_ref="scripted/one",
        status=429,
        retryable=True,
        recovery_hint="wait a minute",
        metadata={
            "attempt_count": "2",
            "candidates": "scripted/one",
            "request_id": "req-7",
            "retry_after_ms": "1500",
        },
    )


def test_a_provider_failure_without_an_exchange_names_what_is_known() -> None:
    assert failure_of(ProviderError("no")).metadata == {}
    error = lost("scripted/one", ProviderError("no"))
    found = round_failure([error], (ATTEMPT,))
    assert (found.provider, found.status) == ("scripted", None)
    silent = msgspec.structs.replace(
        ATTEMPT, transport_diagnostics=TransportDiagnostics(status=500)
    )
    assert "request_id" not in round_failure([error], (silent,)).metadata


def lost(ref: str, error: ProviderError, *, asked: bool = True) -> FailedCandidate:
    return FailedCandidate(model_ref=parse_model_ref(ref), error=error, asked=asked)


def attempts_at(ref: str, count: int) -> list[ProviderAttempt]:
    provider = ref.partition("/")[0]
    return [msgspec.structs.replace(ATTEMPT, provider=provider, model_ref=ref)] * count


@pytest.mark.requirement("provider-retry:exhaustion-is-visible")
def test_a_single_candidate_that_was_asked_in_vain_says_how_often() -> None:
    error = ProviderTimeoutError("no answer in time", hint="look at the network")
    found = round_failure([lost("lab/one", error)], attempts_at("lab/one", 3))
    assert found == FailureArtifact(
        category=TRANSPORT,
        kind="timeout",
        summary="no answer in time (gave up after 3 attempts)",
        provider="lab",
        model_ref="lab/one",
        retryable=True,
        recovery_hint="look at the network",
        metadata={"attempt_count": "3", "candidates": "lab/one"},
    )
    once = round_failure([lost("lab/one", error)], attempts_at("lab/one", 1))
    assert once.summary == "no answer in time"


@pytest.mark.requirement("provider-retry:exhaustion-is-visible")
def test_a_summary_names_every_candidate_and_the_artifact_is_of_the_one_asked_last() -> None:
    told = [
        lost("lab/one", RateLimitedError("slow down", retry_after_ms=90_000)),
        lost("mill/two", AuthRejectedError("bad key", hint="check the key")),
        lost("mill/three", ModelUnavailableError("no such model"), asked=False),
    ]
    attempts = [*attempts_at("lab/one", 3), *attempts_at("mill/two", 1)]
    found = round_failure(told, [*attempts, *attempts_at("mill/three", 1)])
    assert found.summary == (
        "none of 3 models answered: lab/one: rate_limited after 3 attempts (slow down);"
        " mill/two: auth_rejected (bad key); mill/three: model_unavailable (no such model)"
    )
    assert (found.kind, found.provider, found.model_ref) == ("auth_rejected", "mill", "mill/two")
    assert found.recovery_hint == "check the key"
    assert found.metadata == {
        "attempt_count": "5",
        "candidates": "lab/one, mill/two, mill/three",
    }
    unasked = [each for each in told if not each.asked]
    assert round_failure(unasked, []).kind == "model_unavailable"


@pytest.mark.requirement("settlement:failure-detail-is-bounded")
@pytest.mark.parametrize("count", [1, 2, 5, 8, 9, 60])
def test_a_summary_of_many_candidates_is_bounded_and_names_as_many_as_fit(count: int) -> None:
    refs = [f"lab/m{number}" for number in range(count)]
    told = [lost(ref, RequestRejectedError("x" * 5_000 + "\nsecret")) for ref in refs]
    found = round_failure(told, [each for ref in refs for each in attempts_at(ref, 3)])
    assert len(found.summary) <= EVENT_TEXT_CHARS_MAX
    assert len(found.metadata["candidates"]) <= EVENT_TEXT_CHARS_MAX
    assert "secret" not in found.summary
    if count > 1:
        assert all(ref in found.summary for ref in refs[:8])
    assert ("more" in found.summary) is (count > 8)
    if count == 1:
        assert found.summary.endswith("… (gave up after 3 attempts)")


def test_secrets_leave_a_text_before_it_is_cut() -> None:
    secret = "sk-0123456789"
    error = AuthRejectedError("x" * (EVENT_TEXT_CHARS_MAX - 5) + secret, hint=f"not {secret}")
    error.__cause__ = ValueError(f"{secret} was refused")
    exchange = TransportDiagnostics(request_id=f"id-{secret}")
    attempt = msgspec.structs.replace(ATTEMPT, model_ref="lab/one", transport_diagnostics=exchange)

    def redact(text: str) -> str:
        return text.replace(secret, "[key]")

    for others in ([], [lost("lab/two", error)]):
        found = round_failure([*others, lost("lab/one", error)], [attempt], redact=redact)
        told = msgspec.json.encode(found).decode()
        assert "sk-" not in told
        assert found.source_chain == ("ValueError: [key] was refused",)
        assert found.recovery_hint == "not [key]"
        assert found.metadata["request_id"] == "id-[key]"


@pytest.mark.requirement("settlement:failure-detail-is-bounded")
@pytest.mark.parametrize("error", [HolonError(RAW), ValueError(RAW), ProviderError(RAW)])
def test_raw_payloads_stay_out_of_the_artifact(error: Exception) -> None:
    found = failure_of(error)
    assert "secret" not in msgspec.json.encode(found).decode()
    assert "line one" in found.summary


@pytest.mark.requirement("settlement:failure-detail-is-bounded")
@pytest.mark.parametrize("length", [0, 1, EVENT_TEXT_CHARS_MAX, EVENT_TEXT_CHARS_MAX + 1, 5_000])
def test_a_summary_is_one_bounded_line(length: int) -> None:
    line = first_line("\n\n" + "x" * length + "\nmore")
    assert len(line) == min(length, EVENT_TEXT_CHARS_MAX) if length else line == "more"
    assert (line[-1:] == "…") is (length > EVENT_TEXT_CHARS_MAX)
    assert first_line(" \n ") == ""


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
