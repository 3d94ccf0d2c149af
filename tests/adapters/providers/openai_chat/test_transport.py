"""Chat Completions over a real connection."""

from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from holon.adapters.providers.http.exchange import ExchangeTimeouts
from holon.adapters.providers.http.remote_client import HttpClientExchange
from holon.adapters.providers.openai_chat.transport import OpenAiChatTransport
from holon.adapters.providers.wire_request import Endpoint, NoAuthorization
from holon.model.providers.attempts import (
    ExchangeStage,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.turns.conversation import TextBlock
from holon.model.turns.turn import AnswerProgress, ModelAnswer, TextGrew
from holon.ports.providers import ignore_progress
from tests.adapters.providers.byte_server import (
    HOLD,
    ByteServer,
    Step,
    byte_server,
    head,
    json_response,
)
from tests.adapters.providers.openai_chat.chat_samples import (
    ENDPOINT,
    STREAMING,
    request,
    response,
    user,
)

USAGE = {"prompt_tokens": 5, "completion_tokens": 1}
STREAM = head("200 OK", kind="text/event-stream")


def event(value: object) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def chunk(text: str, reason: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]})


@pytest.fixture
async def exchange() -> AsyncIterator[HttpClientExchange]:
    made = HttpClientExchange(ExchangeTimeouts(connect_ms=5_000, answer_ms=20_000, idle_ms=20_000))
    yield made
    await made.aclose()


class Key:
    """Authorization with a fixed header."""

    async def headers(self) -> Mapping[str, str]:
        """The header."""
        return {"authorization": "Bearer key"}


def at(server: ByteServer, exchange: HttpClientExchange, endpoint: Endpoint) -> OpenAiChatTransport:
    placed = msgspec.structs.replace(endpoint, base_url=server.url + "/v1")
    return OpenAiChatTransport(placed, exchange, Key())


@pytest.mark.requirement("provider-http:chat-completions-wire")
async def test_a_whole_answer_is_asked_for_and_read(exchange: HttpClientExchange) -> None:
    answer = json_response("200 OK", response({"content": "hi"}, usage=USAGE), "x-request-id: r1")
    async with byte_server([answer]) as server:
        got = await at(server, exchange, ENDPOINT).answer(request(user("hello")), ignore_progress)
    assert got.blocks == (TextBlock(text="hi"),)
    assert got.usage == TokenUsage(input_tokens=5, output_tokens=1)
    assert got.diagnostics is not None
    assert got.diagnostics.stage is ExchangeStage.COMPLETE
    assert got.diagnostics.request_id == "r1"
    assert server.seen[0].line.startswith("POST /v1/chat/completions ")
    assert server.seen[0].headers["authorization"] == "bearer key"
    assert msgspec.json.decode(server.seen[0].body)["messages"][-1]["content"] == "hello"


async def test_a_stream_is_heard_as_it_grows_and_read_in_the_end(
    exchange: HttpClientExchange,
) -> None:
    heard: list[AnswerProgress] = []
    # HOLD after [DONE]: a server that keeps the connection open does not keep us waiting.
    steps: list[Step] = [STREAM, chunk("h"), chunk("i", "stop"), b"data: [DONE]\n\n", HOLD]
    async with byte_server(steps) as server:
        got = await at(server, exchange, STREAMING).answer(request(user("hello")), heard.append)
    assert got.blocks == (TextBlock(text="hi"),)
    assert heard == [TextGrew(text="h"), TextGrew(text="i")]


async def test_the_reply_decides_how_it_is_read(exchange: HttpClientExchange) -> None:
    async def got(steps: list[Step], endpoint: Endpoint) -> ModelAnswer:
        async with byte_server(steps) as server:
            return await at(server, exchange, endpoint).answer(
                request(user("hello")), ignore_progress
            )

    whole = json_response("200 OK", response({"content": "hi"}))
    assert (await got([whole], STREAMING)).blocks == (TextBlock(text="hi"),)
    assert (await got([STREAM, chunk("hi", "stop")], ENDPOINT)).blocks == (TextBlock(text="hi"),)


@pytest.mark.requirement("provider-http:unreadable-answers-fail-fast")
@pytest.mark.parametrize(
    ("steps", "kind", "says"),
    [
        ([STREAM, chunk("h")], UnreadableResponseError, "ended before the answer was complete"),
        ([STREAM, b"data: {\n\n"], UnreadableResponseError, "is not JSON"),
        ([head("200 OK") + b"<html><body>"], UnreadableResponseError, "an HTML page"),
        ([head("200 OK") + b"{"], UnreadableResponseError, "not JSON"),
        ([head("200 OK") + b'{"choices": []}'], UnreadableResponseError, "no choice"),
        ([head("200 OK") + b'{"error": {"code": 429}}'], RateLimitedError, "inside the answer"),
        ([], ProviderUnreachableError, "the connection broke"),
    ],
)
async def test_a_bad_answer_ends_in_its_error_with_diagnostics(
    exchange: HttpClientExchange, steps: list[Step], kind: type[ProviderError], says: str
) -> None:
    async with byte_server(steps) as server:
        transport = at(server, exchange, STREAMING)
        with pytest.raises(ProviderError, match=says) as raised:
            await transport.answer(request(user("hello")), ignore_progress)
        assert type(raised.value) is kind
        assert raised.value.diagnostics is not None
        assert raised.value.diagnostics.model_ref == "acme/m1"
        assert raised.value.diagnostics.url == server.url + "/v1/chat/completions"
        assert raised.value.diagnostics.flags is not None


async def test_a_stream_that_falls_silent_is_a_timeout() -> None:
    exchange = HttpClientExchange(ExchangeTimeouts(idle_ms=500))
    heard: list[AnswerProgress] = []
    async with byte_server([STREAM + chunk("h"), HOLD]) as server:
        transport = at(server, exchange, STREAMING)
        with pytest.raises(ProviderTimeoutError, match="took too long"):
            await transport.answer(request(user("hello")), heard.append)
    await exchange.aclose()
    assert heard == [TextGrew(text="h")]


async def test_a_stream_cut_at_any_byte_never_gives_a_wrong_answer(
    exchange: HttpClientExchange,
) -> None:
    whole = chunk("h") + chunk("i", "stop") + b"data: [DONE]\n\n"
    complete_at = whole.index(b"data: [DONE]")
    for cut in range(0, len(whole), 7):
        async with byte_server([STREAM, whole[:cut]]) as server:
            transport = at(server, exchange, STREAMING)
            try:
                got = await transport.answer(request(user("hello")), ignore_progress)
            except UnreadableResponseError:
                assert cut < complete_at
            else:
                assert cut >= complete_at
                assert got.blocks == (TextBlock(text="hi"),)


async def test_a_server_that_asks_for_no_key_is_sent_none(exchange: HttpClientExchange) -> None:
    async with byte_server([json_response("200 OK", response({"content": "hi"}))]) as server:
        placed = msgspec.structs.replace(ENDPOINT, base_url=server.url)
        transport = OpenAiChatTransport(placed, exchange, NoAuthorization())
        await transport.answer(request(user("hello")), ignore_progress)
    assert "authorization" not in server.seen[0].headers
