"""One attempt, from the request to the answer, over an exchange made of memory."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from holon.adapters.providers.anthropic_messages.transport import AnthropicMessages
from holon.adapters.providers.http.exchange import HttpCall, HttpReply
from holon.adapters.providers.wire_request import ContextEditing, Endpoint
from holon.model.providers.attempts import (
    ExchangeStage,
    FailureFlags,
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    TransportDiagnostics,
    UnreadableResponseError,
)
from holon.model.turns.conversation import TextBlock
from holon.model.turns.turn import AnswerProgress, StopReason, TextGrew
from holon.ports.providers import ignore_progress
from tests.adapters.providers.anthropic_messages.sample_requests import (
    endpoint,
    request,
    rounds,
    user,
)
from tests.adapters.providers.anthropic_messages.sample_streams import (
    TEXT,
    answer,
    event,
    streamed,
    wire_bytes,
)

HELLO = (TextBlock(text="Hello, wörld."),)
NOTE = "context_editing: eligible_tool_result_bytes=8"


class MemoryReply:
    """A reply whose pieces are known."""

    def __init__(self, pieces: list[bytes], *, is_event_stream: bool) -> None:
        self._pieces = pieces
        self.is_event_stream = is_event_stream
        self.headers: Mapping[str, str] = {}
        self.pieces_taken = 0

    async def read(self) -> bytes:
        return b"".join(self._pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.pieces_taken += 1
            yield piece

    def diagnostics(self) -> TransportDiagnostics:
        return TransportDiagnostics(
            stage=ExchangeStage.RESPONSE_BODY, url="https://api.example/v1/messages", status=200
        )


class MemoryExchange:
    """Answers each call with the same reply, or fails it."""

    def __init__(self, reply: MemoryReply, failure: ProviderError | None = None) -> None:
        self._reply = reply
        self._failure = failure
        self.calls: list[HttpCall] = []
        self.open_count = 0

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[HttpReply]:
        self.calls.append(call)
        if self._failure is not None:
            raise self._failure
        self.open_count += 1
        try:
            yield self._reply
        finally:
            self.open_count -= 1


class KeyInHand:
    """Puts a key on every request."""

    async def headers(self) -> Mapping[str, str]:
        return {"x-api-key": "k"}


def _model(exchange: MemoryExchange, asked: Endpoint | None = None) -> AnthropicMessages:
    return AnthropicMessages(asked or endpoint(), exchange, KeyInHand())


def _json(value: object) -> MemoryReply:
    return MemoryReply([msgspec.json.encode(value)], is_event_stream=False)


def _stream(events: list[dict[str, object]]) -> MemoryReply:
    data = wire_bytes(events)
    return MemoryReply([data[at : at + 50] for at in range(0, len(data), 50)], is_event_stream=True)


async def test_an_answer_in_json_is_read_with_its_diagnostics() -> None:
    exchange = MemoryExchange(_json(answer(TEXT)))
    heard: list[AnswerProgress] = []
    told = await _model(exchange).answer(request(user("a")), heard.append)
    assert (told.blocks, told.stop_reason, heard) == (HELLO, StopReason.END_TURN, [])
    assert told.diagnostics == TransportDiagnostics(
        stage=ExchangeStage.COMPLETE, url="https://api.example/v1/messages", status=200
    )
    (call,) = exchange.calls
    assert (call.provider, call.model_ref) == ("anthropic", "anthropic/claude-x")
    assert call.headers["x-api-key"] == "k"
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert exchange.open_count == 0


@pytest.mark.requirement("provider-anthropic:stream-is-the-answer")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_event_stream_is_consumed_as_one_whatever_was_asked_for(stream: bool) -> None:
    heard: list[AnswerProgress] = []
    model = _model(MemoryExchange(_stream(streamed(answer(TEXT)))), endpoint(stream=stream))
    told = await model.answer(request(user("a")), heard.append)
    assert told.blocks == HELLO
    assert "".join(one.text for one in heard if isinstance(one, TextGrew)) == HELLO[0].text


async def test_json_is_read_as_json_although_a_stream_was_asked_for() -> None:
    model = _model(MemoryExchange(_json(answer(TEXT))), endpoint(stream=True))
    assert (await model.answer(request(user("a")), ignore_progress)).blocks == HELLO


async def test_nothing_is_read_behind_the_end_of_the_message() -> None:
    reply = MemoryReply(
        [wire_bytes(streamed(answer(TEXT))), b"data: nonsense\n\n"], is_event_stream=True
    )
    told = await _model(MemoryExchange(reply)).answer(request(user("a")), ignore_progress)
    assert told.blocks == HELLO
    assert reply.pieces_taken == 1


OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
FAILURES: list[tuple[str, MemoryReply, type[ProviderError], bool]] = [
    ("a cut stream", _stream(streamed(answer(TEXT))[:-1]), UnreadableResponseError, True),
    (
        "an error in a stream",
        _stream([*streamed(answer(TEXT))[:4], OVERLOADED]),
        ProviderOverloadedError,
        False,
    ),
    ("an error inside a 200", _json(OVERLOADED), ProviderOverloadedError, False),
    ("an empty answer", _json(answer()), UnreadableResponseError, True),
    ("a page", MemoryReply([b"<html>"], is_event_stream=False), UnreadableResponseError, True),
    ("nothing", MemoryReply([], is_event_stream=True), UnreadableResponseError, True),
]


@pytest.mark.requirement("provider-anthropic:bad-answers-fail-fast")
@pytest.mark.parametrize(
    ("reply", "kind", "is_decode"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
async def test_a_failure_after_the_head_carries_what_is_known_of_the_exchange(
    reply: MemoryReply, kind: type[ProviderError], is_decode: bool
) -> None:
    exchange = MemoryExchange(reply)
    with pytest.raises(kind) as caught:
        await _model(exchange).answer(request(user("a")), ignore_progress)
    known = caught.value.diagnostics
    assert known is not None
    assert (known.status, known.url) == (200, "https://api.example/v1/messages")
    assert known.flags is not None
    assert known.flags.is_decode is is_decode
    assert exchange.open_count == 0


async def test_a_failed_exchange_passes_as_it_is() -> None:
    seen = TransportDiagnostics(stage=ExchangeStage.RESPONSE_HEAD, flags=FailureFlags(status=429))
    limited = RateLimitedError("later", retry_after_ms=5, diagnostics=seen)
    with pytest.raises(RateLimitedError) as caught:
        await _model(MemoryExchange(_json(None), limited)).answer(
            request(user("a")), ignore_progress
        )
    assert caught.value is limited
    assert caught.value.diagnostics == seen


@pytest.mark.requirement("provider-anthropic:context-editing-diagnostics")
async def test_what_could_be_cleared_is_noted_with_success_and_failure() -> None:
    editing = endpoint(context_editing=ContextEditing(keep_recent_tool_uses=1))
    asked = request(user("a"), *rounds(0, 2))
    told = await _model(MemoryExchange(_json(answer(TEXT))), editing).answer(asked, ignore_progress)
    assert told.diagnostics is not None
    assert told.diagnostics.notes == (NOTE,)
    unreadable = MemoryExchange(_json(answer(stop="unheard_of")))
    with pytest.raises(UnreadableResponseError) as caught:
        await _model(unreadable, editing).answer(asked, ignore_progress)
    assert caught.value.diagnostics is not None
    assert caught.value.diagnostics.notes == (NOTE,)
