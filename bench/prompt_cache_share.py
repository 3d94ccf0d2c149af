"""How much of what is sent to a model it has read before.

Owns:  the share of input bytes that a provider's cache could answer, over a script of 20 turns and
       200 rounds in which one turn outgrows its room and earlier turns are let go.
Rule 1: a cache answers a prefix: what counts is how far each request begins like the one before it
        of the same agent, as lowered for the wire. Marks for the cache itself are not content.
Rule 2: the runtime is the real one; only the model is not, and says as much as it is told to.
"""

import re
from typing import Final

from bench.history import make_history
from bench.hosting import prompt, running_host, temporary_home
from bench.measure import Measurement
from holon.adapters.providers.anthropic_messages import request as anthropic
from holon.adapters.providers.openai_responses import request as responses
from holon.adapters.providers.wire_request import Endpoint
from holon.model.limits import EVENT_PAGE_COUNT_MAX
from holon.model.providers.attempts import TokenUsage
from holon.model.providers.models import TransportKind
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.compaction import HistoryCompacted, TurnCompactionApplied
from holon.model.turns.conversation import AssistantBlock, TextBlock, ToolUseBlock
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import CallId
from holon.ports.providers import OnProgress
from tests.support.builders import MAIN

SHARE_MIN: Final = 90.0
TURN_ROUNDS: Final = (7,) * 12 + (67,) + (7,) * 7  # 20 turns of 200 rounds in all
_WORDS: Final = "What I have found out so far, and where I shall look next. " * 140
_MARK: Final = re.compile(rb',?"cache_control":\{[^}]*\}')


class LongWinded:
    """Works for a while in every turn, and keeps how each request looks on two wires."""

    def __init__(self) -> None:
        self._turns = iter(TURN_ROUNDS)
        self._left = 0
        self.requests_count = 0
        self.wires = (
            _Wire(TransportKind.ANTHROPIC_MESSAGES),
            _Wire(TransportKind.OPENAI_RESPONSES),
        )

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Say a lot and call something, or end the turn."""
        del on_progress
        self.requests_count += 1
        for wire in self.wires:
            wire.take(request)
        if self._left == 0:
            self._left = next(self._turns)
        self._left -= 1
        words = TextBlock(text=f"{self.requests_count}: {_WORDS}")
        call = ToolUseBlock(
            call_id=CallId(f"call_{self.requests_count}"), name="ListWorkItems", input={}
        )
        blocks: tuple[AssistantBlock, ...] = (words, call) if self._left else (words,)
        return ModelAnswer(
            blocks=blocks,
            stop_reason=StopReason.TOOL_USE if self._left else StopReason.END_TURN,
            usage=TokenUsage(),
        )


class _Wire:
    """One way requests are written down, and how much of them was there before."""

    def __init__(self, transport: TransportKind) -> None:
        self.transport = transport
        self._endpoint = Endpoint(
            provider="bench", model="model", transport=transport, base_url="http://127.0.0.1"
        )
        self._marked = anthropic.RequestMemo(self._endpoint)
        self._plain = responses.RequestMemo()
        self._before = b""
        self.sent_bytes = 0
        self.known_bytes = 0

    def take(self, request: ProviderRequest) -> None:
        """Count one request."""
        body = self._lowered(request)
        self.sent_bytes += len(body)
        self.known_bytes += _common_bytes(body, self._before)
        self._before = body

    def _lowered(self, request: ProviderRequest) -> bytes:
        if self.transport is TransportKind.ANTHROPIC_MESSAGES:
            lowered = anthropic.lower(self._endpoint, request, self._marked).body
            return _MARK.sub(b"", lowered)
        return responses.lower(self._endpoint, request, self._plain).body


def _common_bytes(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


async def run() -> list[Measurement]:
    """Play the script, and say how much of it a cache could have answered."""
    model = LongWinded()
    with temporary_home() as home:
        make_history(home, turns_count=1)
        async with running_host(home, model=model) as host:
            for _ in TURN_ROUNDS:
                await host.settle(prompt(MAIN))
            epochs, in_turn = 0, 0
            seq = 0
            while events := await host.store.reads.events.events_after(
                MAIN, seq, limit=EVENT_PAGE_COUNT_MAX
            ):
                epochs += sum(isinstance(e.event, HistoryCompacted) for e in events)
                in_turn += sum(isinstance(e.event, TurnCompactionApplied) for e in events)
                seq = events[-1].event_seq
    assert epochs, "no turn was let go: the script is too short"
    assert in_turn, "no turn was compacted: the script is too short"
    detail = f"{model.requests_count} requests, {in_turn} compactions in turns, {epochs} epochs"
    return [
        Measurement(
            name=f"{wire.transport.value}: input a cache could answer, over 20 turns",
            measured=100 * wire.known_bytes / wire.sent_bytes,
            target=SHARE_MIN,
            at_least=True,
            unit=" %",
            detail=f"{detail}, {wire.sent_bytes / 2**20:.0f} MiB",
        )
        for wire in model.wires
    ]
