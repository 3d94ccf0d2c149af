"""What the log is told about an exchange, and what it is not."""

import json
import logging

import anyio
import pytest

from holon.adapters.providers.http.traced import LOGGER_NAME, TracedProvider, Tracing
from holon.adapters.system.secrets import SecretRegistry
from holon.model.providers.attempts import (
    ExchangeStage,
    ProviderError,
    RateLimitedError,
    TokenUsage,
    TransportDiagnostics,
)
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import TextBlock
from holon.model.turns.turn import AnswerProgress, ModelAnswer, StopReason
from holon.model.values import JsonValue
from holon.ports.providers import OnProgress, Provider, ignore_progress
from tests.adapters.providers.recorded.sample_requests import MODEL, Sayer, asking, saying
from tests.support.manual_clock import ManualClock

SECRET = "sk-plainly-secret-0123456789"
KNOWN = TransportDiagnostics(
    url="https://a.example/v1",
    status=200,
    request_id="req_1\n2",
    bytes_sent=123,
    bytes_received=45,
)
ANSWER = ModelAnswer(
    blocks=(TextBlock(text="what only the user may read"),),
    stop_reason=StopReason.END_TURN,
    usage=TokenUsage(input_tokens=7, output_tokens=3),
    diagnostics=KNOWN,
)
FAILURE = RateLimitedError(
    "slow down, said the body",
    retry_after_ms=1_500,
    diagnostics=TransportDiagnostics(
        stage=ExchangeStage.RESPONSE_HEAD, status=429, source_chain=(f"refused {SECRET}",)
    ),
)


class Slow:
    """A provider that takes its time."""

    def __init__(self, clock: ManualClock, inner: Provider) -> None:
        self._clock = clock
        self._inner = inner

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        self._clock.advance(250)
        return await self._inner.answer(request, on_progress)


def traced(
    *ends: ModelAnswer | ProviderError, exchanges: bool = False, failures: bool = False
) -> TracedProvider:
    clock, registry = ManualClock(), SecretRegistry()
    registry.learn("KEY", SECRET)
    tracing = Tracing(clock=clock, redactor=registry, exchanges=exchanges, failures=failures)
    return TracedProvider(Slow(clock, Sayer(*ends)), MODEL, tracing)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, JsonValue]]:
    """Return each line's word and its JSON."""
    found = []
    for record in caplog.records:
        assert record.name == LOGGER_NAME
        assert "\n" not in record.getMessage()
        _, word, trace = record.getMessage().split(" ", 2)
        found.append((word, json.loads(trace)))
    return found


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=LOGGER_NAME)


async def test_an_answer_is_one_line_of_facts(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[AnswerProgress] = []
    provider = traced(ANSWER, exchanges=True, failures=True)
    assert await provider.answer(asking("a private question"), heard.append) is ANSWER
    assert len(heard) == 1
    ((word, trace),) = lines(caplog)
    assert word == "exchange"
    assert trace == {
        "model_ref": "anthropic/some-model",
        "outcome": "succeeded",
        "status": 200,
        "duration_ms": 250,
        "bytes_sent": 123,
        "bytes_received": 45,
        "request_id": "req_1\n2",
        "token_usage": {
            "input_tokens": 7,
            "output_tokens": 3,
            "total_tokens": 10,
            "cache_read_tokens": 0,
            "cache_creation_tokens": 0,
            "is_estimated": False,
        },
    }
    assert "private" not in caplog.text
    assert "only the user" not in caplog.text


async def test_a_failure_is_told_with_its_diagnostics_and_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(RateLimitedError) as caught:
        await traced(FAILURE, exchanges=True, failures=True).answer(asking("a"), ignore_progress)
    assert caught.value is FAILURE
    (_, exchange), (word, failure) = lines(caplog)
    assert (exchange["outcome"], exchange["status"]) == ("rate_limited", 429)
    assert word == "failure"
    assert failure == {
        "model_ref": "anthropic/some-model",
        "failure_kind": "rate_limited",
        "disposition": "retryable",
        "retry_after_ms": 1_500,
        "duration_ms": 250,
        "diagnostics": {
            "stage": "response_head",
            "status": 429,
            "source_chain": ["refused [secret:KEY]"],
        },
    }
    assert "said the body" not in caplog.text


@pytest.mark.parametrize(
    ("exchanges", "failures", "words"),
    [
        (True, False, ["exchange", "exchange"]),
        (False, True, ["failure"]),
        (True, True, ["exchange", "exchange", "failure"]),
    ],
)
async def test_each_trace_is_its_own_choice(
    caplog: pytest.LogCaptureFixture, exchanges: bool, failures: bool, words: list[str]
) -> None:
    provider = traced(saying("hi"), ProviderError("odd"), exchanges=exchanges, failures=failures)
    await provider.answer(asking("a"), ignore_progress)
    with pytest.raises(ProviderError):
        await provider.answer(asking("a"), ignore_progress)
    assert [word for word, _ in lines(caplog)] == words


async def test_a_cancelled_exchange_is_told_as_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    class Silent:
        async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
            await anyio.sleep_forever()
            return ANSWER

    tracing = Tracing(clock=ManualClock(), redactor=SecretRegistry(), exchanges=True, failures=True)
    provider = TracedProvider(Silent(), MODEL, tracing)
    with anyio.move_on_after(0) as scope:
        await provider.answer(asking("a"), ignore_progress)
    assert scope.cancelled_caught
    ((_, trace),) = lines(caplog)
    assert (trace["outcome"], trace["token_usage"]) == ("abandoned", None)
