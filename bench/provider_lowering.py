"""What a round of a long conversation costs on its way to a model and back.

Owns:  the comparison, for every wire: making the request and reading the answer early in a
       conversation of 200 tool rounds and late in it. It grows as the runtime lets it grow: what
       was sent stays the same object, and the turn's opening is laid out anew each round.
Rule 1: no network: the exchange is memory, so what is timed is lowering, the body and lifting.
Rule 2: every round is timed in several conversations and its best time counts: other work on the
        machine only ever adds.
"""

import gc
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.measure import Measurement, median, ratio_of_medians
from bench.provider_answers import WIRES, Wire
from holon.adapters.providers.http.exchange import HttpCall, HttpReply
from holon.adapters.providers.resolver import TransportParts, provider_at
from holon.adapters.providers.wire_request import Endpoint, NoAuthorization
from holon.adapters.system.clock import SystemClock
from holon.model.providers.attempts import TransportDiagnostics
from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptCache,
    PromptFrame,
    ProviderRequest,
    Stability,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.turns.turn import ModelAnswer
from holon.model.values import AgentId
from holon.ports.providers import Provider, ignore_progress
from holon.tools.registry import builtin_tools

ROUNDS_COUNT: Final = 200
EARLY: Final = slice(5, 16)
LATE: Final = slice(190, 201)
RATIO_MAX: Final = 1.3
_CONVERSATIONS_COUNT: Final = 30
_AGENT: Final = AgentId("main")
_TOOLS: Final = builtin_tools().specs
_RESULT: Final = "a line of what a command prints\n" * 12 + "exit code 0"
_FRAME: Final = PromptFrame(
    system_prompt="You are an agent that works on its own and says what it did. " * 40,
    system_blocks=(PromptBlock(text="Where you are. " * 30, stability=Stability.AGENT_SCOPED),),
    context_blocks=(PromptBlock(text="What is new. " * 30, stability=Stability.TURN_SCOPED),),
    cache=PromptCache(agent_id=_AGENT, prompt_cache_key="main:bench", context_fingerprint="00"),
)


class MemoryReply:
    """A 200 with a given body."""

    def __init__(self, body: bytes, *, is_event_stream: bool) -> None:
        self._body = body
        self.is_event_stream = is_event_stream
        self.headers: Mapping[str, str] = {}

    async def read(self) -> bytes:
        """Return the whole body."""
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        yield self._body

    def diagnostics(self) -> TransportDiagnostics:
        """Say that all went well."""
        return TransportDiagnostics(status=200)


class MemoryExchange:
    """Answers a call with what it was given to answer."""

    def __init__(self, *, is_event_stream: bool) -> None:
        self._is_event_stream = is_event_stream
        self.answer = b""
        self.body_bytes = 0

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[HttpReply]:
        """Take the call and hand out the answer."""
        self.body_bytes = len(call.body)
        yield MemoryReply(self.answer, is_event_stream=self._is_event_stream)


async def run() -> list[Measurement]:
    """Time conversations on every wire in turns, and compare early rounds with late ones."""
    passes = [[_conversation_s(wire) for wire in WIRES] for _ in range(_CONVERSATIONS_COUNT)]
    return [
        _measured(wire, times) for wire, times in zip(WIRES, zip(*passes, strict=True), strict=True)
    ]


def _measured(wire: Wire, conversations: Sequence[tuple[list[float], int]]) -> Measurement:
    best = [min(times) for times in zip(*(each for each, _ in conversations), strict=True)]
    early, late = best[EARLY], best[LATE]
    detail = (
        f"{1e3 * median(early):.3f} ms and {1e3 * median(late):.3f} ms,"
        f" {conversations[0][1] / 1_024:.0f} KiB at the end"
    )
    return Measurement(
        name=f"{wire.name}: a model round late in a conversation of {ROUNDS_COUNT},"
        " against an early one",
        measured=ratio_of_medians(late, early),
        target=RATIO_MAX,
        detail=detail,
    )


def _conversation_s(wire: Wire) -> tuple[list[float], int]:
    """Return how many seconds each round of a conversation takes, and the size of the last."""
    exchange = MemoryExchange(is_event_stream=wire.is_event_stream)
    provider = _provider(wire, exchange)
    messages: list[ConversationMessage] = [
        UserMessage(blocks=(TextBlock(text="Please look around, and tell me what you find."),))
    ]
    times_s: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for number in range(ROUNDS_COUNT + 1):
            exchange.answer = wire.answer(number)
            request = ProviderRequest(
                agent_id=_AGENT,
                frame=_FRAME,
                conversation=tuple(messages),
                tools=_TOOLS,
                turn_start=ConversationPosition(message_index=0, block_index=0),
            )
            began = time.perf_counter()
            answer = _unsuspended(provider.answer(request, ignore_progress))
            times_s.append(time.perf_counter() - began)
            messages += _round(answer)
    finally:
        gc.enable()
    return times_s, exchange.body_bytes


def _provider(wire: Wire, exchange: MemoryExchange) -> Provider:
    endpoint = Endpoint(
        provider="acme",
        model="m1",
        transport=wire.transport,
        base_url="http://127.0.0.1:1",
        stream=wire.is_event_stream,
        incremental=wire.incremental,
        context_editing=wire.context_editing,
    )
    parts = TransportParts(
        exchange=lambda: exchange,
        clock=SystemClock(),
        home=Path("/nonexistent"),
        local_threads_count=1,
    )
    return provider_at(endpoint, NoAuthorization(), parts)


def _round(answer: ModelAnswer) -> tuple[ConversationMessage, ConversationMessage]:
    """Return what a round adds: the calls and their results."""
    results = (
        ToolResultBlock(call_id=call.call_id, content=f"{call.call_id}\n{_RESULT}")
        for call in tool_uses_of(answer.blocks)
    )
    return AssistantMessage(blocks=answer.blocks), UserMessage(blocks=tuple(results))


def _unsuspended(coroutine: Coroutine[Any, Any, ModelAnswer]) -> ModelAnswer:
    """Return what a coroutine returns that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        answer = done.value
        assert isinstance(answer, ModelAnswer)
        return answer
    coroutine.close()
    raise AssertionError("nothing here waits")
