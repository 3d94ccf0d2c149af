"""One round over the Codex backend, from request to answer."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from holon.adapters.providers.openai_codex import OpenAiCodexTransport
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    Disposition,
    ExchangeStage,
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    RequestRejectedError,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.turns.conversation import AssistantMessage, TextBlock, UserMessage, tool_uses_of
from holon.model.turns.turn import AnswerProgress, StopReason, TextGrew
from holon.ports.providers import ignore_progress
from tests.adapters.providers.openai_responses.canned import (
    CODEX,
    SEALED,
    CannedExchange,
    CannedReply,
    call_item,
    done,
    feed_of,
    message_item,
    request_for,
    result,
    user,
)
from tests.support.manual_clock import ManualClock

HELLO: Final = request_for((user("Hi"),))
HI: Final = message_item("Hi")


class Login:
    async def headers(self) -> Mapping[str, str]:
        return {"authorization": "Bearer secret", "chatgpt-account-id": "acc"}


def transport_over(exchange: Any) -> OpenAiCodexTransport:
    return OpenAiCodexTransport(CODEX, exchange, Login(), clock=ManualClock())


def ended(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"id": "resp_1", "output": [], **fields}}


@pytest.mark.requirement("provider-openai:codex-streams")
async def test_a_round_is_streamed_with_the_headers_of_the_backend() -> None:
    delta = {"type": "response.output_text.delta", "delta": "Hi"}
    exchange = CannedExchange(feed_of(delta, done(0, HI), ended()))
    heard: list[AnswerProgress] = []
    answer = await transport_over(exchange).answer(HELLO, heard.append)
    assert answer.blocks == (TextBlock(text="Hi"),)
    assert answer.diagnostics is not None
    assert answer.diagnostics.stage is ExchangeStage.COMPLETE
    assert heard == [TextGrew(text="Hi")]
    assert exchange.calls[0].url == "https://chat.example/backend-api/codex/responses"
    assert dict(exchange.calls[0].headers) == {
        "accept": "text/event-stream",
        "openai-beta": "responses=experimental",
        "originator": "holon",
        "authorization": "Bearer secret",
        "chatgpt-account-id": "acc",
    }


ENDS: Final[dict[str, tuple[bytes, StopReason]]] = {
    "rebuilt from items": (feed_of(done(0, HI), ended()), StopReason.END_TURN),
    "a call": (feed_of(done(0, call_item("c")), ended()), StopReason.TOOL_USE),
    "out of length": (
        feed_of(
            done(0, HI), ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
        ),
        StopReason.MAX_TOKENS,
    ),
    "told twice": (feed_of(done(0, HI), done(0, HI), ended(), ended()), StopReason.END_TURN),
}


@pytest.mark.requirement("provider-openai:incomplete-is-classified")
@pytest.mark.parametrize("name", ENDS)
async def test_a_feed_with_a_good_end_is_an_answer(name: str) -> None:
    body, stop_reason = ENDS[name]
    answer = await transport_over(CannedExchange(body)).answer(HELLO, ignore_progress)
    assert answer.stop_reason is stop_reason
    assert len(answer.blocks) == 1


def failed(**error: Any) -> bytes:
    return feed_of(done(0, HI), ended("failed", error=error))


FAILURES: Final[dict[str, tuple[bytes, type[ProviderError]]]] = {
    "rate limit": (failed(code="rate_limit_exceeded"), RateLimitedError),
    "overloaded": (failed(code="server_is_overloaded"), ProviderOverloadedError),
    "slow down": (failed(code="slow_down"), ProviderOverloadedError),
    "quota": (failed(code="insufficient_quota"), UsageLimitedError),
    "not in the plan": (failed(code="usage_not_included"), UsageLimitedError),
    "used up": (failed(type="usage_limit_reached", resets_in_seconds=5), UsageLimitedError),
    "too long": (failed(code="context_length_exceeded"), ContextTooLongError),
    "bad prompt": (failed(code="invalid_prompt"), RequestRejectedError),
    "bad key": (failed(code="invalid_api_key"), AuthRejectedError),
    "filtered": (
        feed_of(ended("incomplete", incomplete_details={"reason": "content_filter"})),
        RequestRejectedError,
    ),
    "an error event": (feed_of({"type": "error", "code": "slow_down"}), ProviderOverloadedError),
    "[DONE] too early": (feed_of(done(0, HI), "[DONE]"), UnreadableResponseError),
    "the end never came": (feed_of(done(0, HI)), UnreadableResponseError),
    "cut inside the end": (
        feed_of(done(0, HI), ended(output=[HI]))[:-1],
        UnreadableResponseError,
    ),
    "no event": (b"", UnreadableResponseError),
    "an empty answer": (feed_of(ended()), UnreadableResponseError),
}
RETRYABLE: Final = (RateLimitedError, ProviderOverloadedError)


@pytest.mark.requirement("provider-openai:failed-is-classified")
@pytest.mark.parametrize("name", FAILURES)
async def test_a_feed_with_a_bad_end_is_the_error_it_stands_for(name: str) -> None:
    body, kind = FAILURES[name]
    with pytest.raises(ProviderError) as caught:
        await transport_over(CannedExchange(body)).answer(HELLO, ignore_progress)
    error = caught.value
    assert type(error) is kind
    assert (error.disposition is Disposition.RETRYABLE) is (kind in RETRYABLE)
    assert error.diagnostics is not None
    assert error.diagnostics.stage is ExchangeStage.DECODE


async def test_a_feed_whose_content_type_was_lost_is_still_a_feed() -> None:
    class Plain(CannedExchange):
        def reply_with(self, body: bytes) -> CannedReply:
            return CannedReply(body, content_type="text/plain")

    exchange = Plain(feed_of(done(0, HI), ended()))
    assert (await transport_over(exchange).answer(HELLO, ignore_progress)).blocks == (
        TextBlock(text="Hi"),
    )


@pytest.mark.requirement("provider-openai:codex-replays-originals")
async def test_the_next_round_replays_what_the_backend_said_itself() -> None:
    call = call_item("c", '{ "cmd": "ls" }')
    told = feed_of(done(0, SEALED), done(1, {**HI, "phase": "commentary"}), done(2, call), ended())
    exchange = CannedExchange(told, feed_of(done(0, HI), ended()), feed_of(done(0, HI), ended()))
    transport = transport_over(exchange)
    answer = await transport.answer(HELLO, ignore_progress)
    results = tuple(result(each.call_id) for each in tool_uses_of(answer.blocks))
    conversation = (user("Hi"), AssistantMessage(blocks=answer.blocks), UserMessage(blocks=results))
    await transport.answer(request_for(conversation), ignore_progress)
    assert exchange.bodies[1]["input"][1:] == [
        SEALED,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
            "phase": "commentary",
        },
        {
            "type": "function_call",
            "call_id": "c",
            "name": "ExecCommand",
            "arguments": '{ "cmd": "ls" }',
        },
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    ]
    await transport.answer(request_for((*conversation, user("More"))), ignore_progress)
    assert exchange.calls[2].body.startswith(exchange.calls[1].body.removesuffix(b"]}"))


async def test_a_backend_we_do_not_remember_is_told_the_rebuilt_answer() -> None:
    said = AssistantMessage(blocks=(TextBlock(text="Earlier."),))
    exchange = CannedExchange(feed_of(done(0, HI), ended()))
    await transport_over(exchange).answer(
        request_for((user("a"), said, user("b"))), ignore_progress
    )
    assert exchange.bodies[0]["input"][1] == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Earlier."}],
    }
