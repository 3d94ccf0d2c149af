"""One round over the Responses API, from request to answer."""

from collections.abc import Mapping
from typing import Any, Final

import anyio
import msgspec
import pytest

from holon.adapters.providers.openai_responses.transport import OpenAiResponsesTransport
from holon.adapters.providers.wire_request import Endpoint, NoAuthorization
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    ExchangeStage,
    ProviderError,
    ProviderTimeoutError,
    RequestRejectedError,
    TransportDiagnostics,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.providers.prompt_frame import PromptFrame
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.turns.turn import AnswerProgress, ModelAnswer, StopReason, TextGrew
from holon.ports.providers import ignore_progress
from tests.adapters.providers.openai_responses.canned import (
    EXEC,
    FRAME,
    OPENAI,
    SEALED,
    Canned,
    CannedExchange,
    CannedReply,
    call_item,
    feed_of,
    message_item,
    request_for,
    result,
    user,
)
from tests.support.manual_clock import DAWN, ManualClock

INCREMENTAL: Final = msgspec.structs.replace(OPENAI, incremental=True)
HELLO: Final = request_for((user("Hi"),))


class Bearer:
    async def headers(self) -> Mapping[str, str]:
        return {"authorization": "Bearer secret"}


class Locked:
    async def headers(self) -> Mapping[str, str]:
        raise AuthRejectedError("the login is over")


class Talk:
    """A conversation over one transport that appends what the model said."""

    def __init__(self, *answers: Canned, endpoint: Endpoint = INCREMENTAL) -> None:
        self.exchange = CannedExchange(*answers)
        self.transport = OpenAiResponsesTransport(endpoint, self.exchange, NoAuthorization())
        self.messages: list[ConversationMessage] = [user("Begin.")]

    async def round(self, **fields: Any) -> ModelAnswer:
        answer = await self.transport.answer(request_for(self.messages, **fields), ignore_progress)
        results = tuple(result(call.call_id) for call in tool_uses_of(answer.blocks))
        self.messages.append(AssistantMessage(blocks=answer.blocks))
        self.messages.append(UserMessage(blocks=results or (TextBlock(text="Go on."),)))
        return answer


def noted(answer: ModelAnswer | ProviderError) -> str | None:
    return None if answer.diagnostics is None else answer.diagnostics.continuation


async def test_a_round_is_sent_with_its_credential_and_comes_back_with_diagnostics() -> None:
    exchange = CannedExchange({"id": "r", "output": [message_item("Hello")]})
    answer = await OpenAiResponsesTransport(OPENAI, exchange, Bearer()).answer(
        HELLO, ignore_progress
    )
    assert answer.blocks == (TextBlock(text="Hello"),)
    assert answer.stop_reason is StopReason.END_TURN
    assert answer.diagnostics == TransportDiagnostics(
        stage=ExchangeStage.COMPLETE, provider="canned", status=200
    )
    call = exchange.calls[0]
    assert (call.provider, call.model_ref) == ("openai", "openai/gpt-5.4")
    assert call.url == "https://api.example/v1/responses"
    assert dict(call.headers) == {
        "accept": "application/json",
        "authorization": "Bearer secret",
    }


async def test_nothing_is_sent_without_a_credential() -> None:
    exchange = CannedExchange()
    with pytest.raises(AuthRejectedError):
        await OpenAiResponsesTransport(OPENAI, exchange, Locked()).answer(HELLO, ignore_progress)
    assert exchange.calls == []


STREAMED: Final = feed_of(
    {"type": "response.output_text.delta", "delta": "Hel"},
    {"type": "response.output_text.delta", "delta": "lo"},
    {"type": "response.completed", "response": {"id": "r", "output": [message_item("Hello")]}},
)


async def test_a_streamed_answer_is_the_same_answer_and_can_be_watched() -> None:
    heard: list[AnswerProgress] = []
    exchange = CannedExchange(STREAMED)
    endpoint = msgspec.structs.replace(OPENAI, stream=True)
    transport = OpenAiResponsesTransport(endpoint, exchange, NoAuthorization())
    answer = await transport.answer(HELLO, heard.append)
    assert answer.blocks == (TextBlock(text="Hello"),)
    assert heard == [TextGrew(text="Hel"), TextGrew(text="lo")]
    assert exchange.bodies[0]["stream"] is True
    assert exchange.calls[0].headers["accept"] == "text/event-stream"


@pytest.mark.parametrize("stream", [True, False])
async def test_the_form_of_the_reply_decides_how_it_is_read(stream: bool) -> None:
    endpoint = msgspec.structs.replace(OPENAI, stream=stream)
    other: Canned = {"output": [message_item("Hello")]} if stream else STREAMED
    transport = OpenAiResponsesTransport(endpoint, CannedExchange(other), NoAuthorization())
    assert (await transport.answer(HELLO, ignore_progress)).blocks == (TextBlock(text="Hello"),)


async def test_an_unreadable_answer_names_where_it_broke() -> None:
    transport = OpenAiResponsesTransport(OPENAI, CannedExchange({"output": 1}), NoAuthorization())
    with pytest.raises(UnreadableResponseError) as caught:
        await transport.answer(HELLO, ignore_progress)
    told = caught.value.diagnostics
    assert told is not None
    assert told.stage is ExchangeStage.DECODE
    assert told.flags is not None
    assert told.flags.is_decode


async def test_a_reset_moment_counts_from_the_clock() -> None:
    error = {"type": "usage_limit_reached", "resets_at": int(DAWN.timestamp()) + 30}
    transport = OpenAiResponsesTransport(
        OPENAI, CannedExchange({"error": error}), NoAuthorization(), clock=ManualClock()
    )
    with pytest.raises(UsageLimitedError) as caught:
        await transport.answer(HELLO, ignore_progress)
    assert caught.value.retry_after_ms == 30_000


def said(number: int, *items: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": f"resp_{number}", "output": list(items or (call_item(f"c{number}"),))}


@pytest.mark.requirement("provider-openai:continues-strict-extension")
async def test_later_rounds_send_only_what_is_new() -> None:
    talk = Talk(said(1, SEALED, call_item("c1")), said(2), said(3, message_item("x")), said(4))
    notes = [noted(await talk.round()) for _ in range(4)]
    assert notes == ["not_applicable_initial_request", "hit", "hit", "hit"]
    assert all(body["store"] is True for body in talk.exchange.bodies)
    told = [(body.get("previous_response_id"), body["input"]) for body in talk.exchange.bodies[1:]]
    assert told == [
        ("resp_1", [{"type": "function_call_output", "call_id": "c1", "output": "ok"}]),
        ("resp_2", [{"type": "function_call_output", "call_id": "c2", "output": "ok"}]),
        (
            "resp_3",
            [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Go on."}],
                }
            ],
        ),
    ]


async def test_without_the_option_every_request_is_whole_and_unstored() -> None:
    talk = Talk(said(1), said(2), endpoint=OPENAI)
    assert [noted(await talk.round()) for _ in range(2)] == [None, None]
    assert [body["store"] for body in talk.exchange.bodies] == [False, False]
    assert "previous_response_id" not in talk.exchange.bodies[1]
    assert len(talk.exchange.bodies[1]["input"]) == 3


@pytest.mark.requirement("provider-openai:falls-back-to-full-request")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"frame": PromptFrame(system_prompt="x")}, "missing_continuation_scope"),
        ({"tools": (EXEC,)}, "request_shape_changed"),
        (
            {"frame": msgspec.structs.replace(FRAME, system_prompt="Other.")},
            "request_shape_changed",
        ),
    ],
)
async def test_a_request_that_differs_goes_out_whole(fields: Any, reason: str) -> None:
    talk = Talk(said(1), said(2))
    await talk.round()
    assert noted(await talk.round(**fields)) == reason
    assert "previous_response_id" not in talk.exchange.bodies[1]
    assert len(talk.exchange.bodies[1]["input"]) == 3


async def test_a_changed_history_goes_out_whole() -> None:
    talk = Talk(said(1), said(2))
    await talk.round()
    talk.messages[0] = user("Summary of what was.")
    assert noted(await talk.round()) == "conversation_not_strict_append_only"


async def test_a_response_without_an_id_cannot_be_continued() -> None:
    talk = Talk({"output": [call_item("c1")]}, said(2))
    await talk.round()
    assert noted(await talk.round()) == "missing_response_id"


async def test_a_cut_off_response_is_not_continued() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    talk = Talk({**said(1, message_item("Hal")), **cut}, said(2))
    assert (await talk.round()).stop_reason is StopReason.MAX_TOKENS
    assert noted(await talk.round()) == "not_applicable_initial_request"


@pytest.mark.requirement("provider-openai:errors-invalidate-continuation")
@pytest.mark.parametrize(
    "failure",
    [
        ProviderTimeoutError("late", diagnostics=TransportDiagnostics()),
        ContextTooLongError("long", diagnostics=TransportDiagnostics(status=400)),
        {"output": 1},
        {"error": {"code": "server_error"}},
        {"status": "incomplete", "output": [], "incomplete_details": {"reason": "content_filter"}},
        feed_of("[DONE]"),
    ],
)
async def test_after_any_error_the_next_request_is_whole(failure: Canned) -> None:
    talk = Talk(said(1), failure, said(2), said(3))
    await talk.round()
    with pytest.raises(ProviderError) as caught:
        await talk.round()
    assert noted(caught.value) == "hit"
    assert noted(await talk.round()) == "not_applicable_initial_request"
    assert noted(await talk.round()) == "hit"
    assert len(talk.exchange.calls) == 4


async def test_a_cancelled_request_leaves_nothing_to_continue_from() -> None:
    class Silent(CannedExchange):
        def reply_with(self, body: bytes) -> CannedReply:
            scope.cancel()
            return CannedReply(body, content_type="text/event-stream")

    talk = Talk()
    talk.exchange = Silent(said(1), STREAMED, said(2))
    talk.transport = OpenAiResponsesTransport(INCREMENTAL, talk.exchange, NoAuthorization())
    await talk.round()
    with anyio.CancelScope() as scope:
        await talk.round()
    assert scope.cancelled_caught
    assert noted(await talk.round()) == "not_applicable_initial_request"


@pytest.mark.requirement("provider-openai:falls-back-to-full-request")
async def test_a_provider_that_lost_the_response_is_sent_everything_at_once() -> None:
    refused = RequestRejectedError("gone", diagnostics=TransportDiagnostics(status=400))
    talk = Talk(said(1), refused, said(2), said(3))
    await talk.round()
    assert noted(await talk.round()) == "previous_response_refused"
    assert talk.exchange.bodies[1]["previous_response_id"] == "resp_1"
    assert "previous_response_id" not in talk.exchange.bodies[2]
    assert len(talk.exchange.bodies[2]["input"]) == 3
    assert noted(await talk.round()) == "hit"


@pytest.mark.requirement("provider-openai:scoped-by-agent-and-key")
async def test_windows_of_two_scopes_do_not_meet() -> None:
    talk = Talk(said(1), said(2), said(3), said(4))
    cache = msgspec.structs.replace(FRAME.cache, agent_id="other")  # type: ignore[type-var]
    other = msgspec.structs.replace(FRAME, cache=cache)
    await talk.round()
    assert noted(await talk.round(frame=other)) == "not_applicable_initial_request"
    assert noted(await talk.round()) == "hit"
    assert talk.exchange.bodies[2]["previous_response_id"] == "resp_1"
