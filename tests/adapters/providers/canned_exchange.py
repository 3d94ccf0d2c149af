"""A wire fed with bytes and no network at all, for searching through many answers quickly.

Owns:  an exchange whose reply is given, and running a coroutine that never has to wait.
Rule 1: nothing here suspends, so no event loop is needed; a wire that waits for something is told.
"""

from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from holon.adapters.providers.http.exchange import HttpCall, HttpReply
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.resolver import TransportParts, provider_at
from holon.adapters.providers.wire_request import Endpoint, NoAuthorization
from holon.adapters.system.clock import SystemClock
from holon.model.providers.attempts import TransportDiagnostics
from holon.model.providers.models import TransportKind
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import TextBlock, UserMessage
from holon.model.turns.turn import ModelAnswer
from holon.model.values import AgentId
from holon.ports.providers import ignore_progress

WIRES = (
    TransportKind.OPENAI_CHAT_COMPLETIONS,
    TransportKind.OPENAI_RESPONSES,
    TransportKind.OPENAI_CODEX_RESPONSES,
    TransportKind.ANTHROPIC_MESSAGES,
)
REQUEST = ProviderRequest(
    agent_id=AgentId("main"),
    frame=PromptFrame(system_prompt="You are Holon."),
    conversation=(UserMessage(blocks=(TextBlock(text="hello"),)),),
    tools=(),
)
_Result = TypeVar("_Result")


class CannedReply:
    """A 200 with a given body."""

    def __init__(self, pieces: list[bytes], *, is_event_stream: bool) -> None:
        self._pieces = pieces
        self._is_event_stream = is_event_stream

    @property
    def is_event_stream(self) -> bool:
        """As the test said."""
        return self._is_event_stream

    @property
    def headers(self) -> Mapping[str, str]:
        """None."""
        return {}

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join(self._pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in its pieces."""
        for piece in self._pieces:
            yield piece

    def diagnostics(self) -> TransportDiagnostics:
        """Nothing in particular."""
        return TransportDiagnostics(status=200)


class CannedExchange:
    """Answers every call with the same reply."""

    def __init__(self, reply: CannedReply) -> None:
        self._reply = reply

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[HttpReply]:
        """Hand out the reply."""
        yield self._reply


def answer_of(wire: TransportKind, reply: CannedReply) -> ModelAnswer:
    """Return what a wire makes of a reply."""
    endpoint = Endpoint(
        provider="acme",
        model="m1",
        transport=wire,
        base_url="http://127.0.0.1:1",
        stream=reply.is_event_stream,
    )
    parts = TransportParts(
        exchange=lambda: CannedExchange(reply),
        clock=SystemClock(),
        home=Path("/nonexistent"),
        local_threads_count=1,
        refused=RefusedParameters(),
    )
    provider = provider_at(endpoint, NoAuthorization(), parts)
    return unsuspended(provider.answer(REQUEST, ignore_progress))


def unsuspended(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Return what a coroutine returns that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: _Result = done.value
        return result
    coroutine.close()
    raise AssertionError("the coroutine waits for something")
