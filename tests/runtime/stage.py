"""A stage for one model round: models that play parts, a directory of them, and virtual time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from holon.model.providers.attempts import ModelUnavailableError, ProviderError, TokenUsage
from holon.model.providers.models import ModelRef, parse_model_ref
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import TextBlock, UserMessage
from holon.model.turns.turn import ModelAnswer, ModelAnswered, ModelFailed, StopReason, TextGrew
from holon.model.values import AgentId, later
from holon.ports.providers import Candidate, ModelPreference, OnProgress
from holon.runtime.providers.gate import LastFailure, ProviderGate
from tests.support.hosts import a_host
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.sequential_ids import SequentialIds
from tests.support.sim_loop import SimLoop

ADA = AgentId("ada")
BOB = AgentId("bob")
LATENCY_MS = 100
USAGE = TokenUsage(input_tokens=7, output_tokens=3)

Line: TypeAlias = ModelAnswer | Exception
Scene: TypeAlias = "Callable[[Stage], Coroutine[Any, Any, None]]"


def said(text: str = "hi", *, usage: TokenUsage | None = USAGE) -> ModelAnswer:
    """An answer in words."""
    return ModelAnswer(blocks=(TextBlock(text=text),), stop_reason=StopReason.END_TURN, usage=usage)


class Actor:
    """Says its lines in order, the last one for ever, each after the same while."""

    def __init__(self, clock: ManualClock, lines: Sequence[Line]) -> None:
        self._clock = clock
        self._lines = list(lines)
        self.asked_count = 0

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Say the next line."""
        line = self._lines[min(self.asked_count, len(self._lines) - 1)]
        self.asked_count += 1
        await self._clock.sleep_until(later(self._clock.now(), by_ms=LATENCY_MS))
        if isinstance(line, Exception):
            raise line
        on_progress(TextGrew(text="…"))
        return line


class Playbill:
    """A directory: the models of a play, and those that cannot be had."""

    def __init__(self, clock: ManualClock, parts: Mapping[str, Sequence[Line]]) -> None:
        refs = [parse_model_ref(name) for name in parts]
        self.preference = ModelPreference(default=refs[0], fallbacks=tuple(refs[1:]))
        self.actors = {str(ref): Actor(clock, parts[str(ref)]) for ref in refs}
        self.missing: dict[str, ProviderError] = {}

    def find(self, ref: ModelRef) -> Candidate:
        """Return the actor of that name."""
        name = str(ref)
        if name in self.missing:
            raise self.missing[name]
        if name not in self.actors:
            raise ModelUnavailableError(f"nobody plays {name}")
        return Candidate(model_ref=ref, provider=self.actors[name], account=ref.provider)


class Stage:
    """One host's provider plane with nothing else around it."""

    def __init__(self, parts: Mapping[str, Sequence[Line]], **settings: Any) -> None:
        self.clock = ManualClock()
        self.bill = Playbill(self.clock, parts)
        self.last_failures: dict[str, LastFailure] = {}  # of each provider
        writer = InlineWriter(memory_connection(), self.clock, NoFaults())
        self.host = a_host(
            store=memory_store(memory_connection(), writer),
            clock=self.clock,
            ids=SequentialIds(),
            models=self.bill,
            gate=ProviderGate(notice=self.last_failures.__setitem__),
            **settings,
        )

    @property
    def asked(self) -> Counter[str]:
        """How often each model was asked."""
        return Counter({ref: a.asked_count for ref, a in self.bill.actors.items() if a.asked_count})

    async def ask(
        self, *, agent: AgentId = ADA, override: str | None = None
    ) -> ModelAnswered | ModelFailed:
        """Have a round, whatever comes of it."""
        request = ProviderRequest(
            agent_id=agent,
            frame=PromptFrame(system_prompt=""),
            conversation=(UserMessage(blocks=(TextBlock(text="hello"),)),),
            tools=(),
        )
        own = None if override is None else parse_model_ref(override)
        return await self.host._provider.ask(request, override=own)

    async def succeed(self, **asking: Any) -> ModelAnswered:
        """Have a round that must be answered."""
        came = await self.ask(**asking)
        assert isinstance(came, ModelAnswered), came
        return came

    async def fail(self, **asking: Any) -> ModelFailed:
        """Have a round that must fail."""
        came = await self.ask(**asking)
        assert isinstance(came, ModelFailed), came
        return came

    async def rest(self, ms: int) -> None:
        """Let time pass."""
        await self.clock.sleep_until(later(self.clock.now(), by_ms=ms))


def play(scene: Scene, parts: Mapping[str, Sequence[Line]], **settings: Any) -> Stage:
    """Play a scene in virtual time."""
    stage = Stage(parts, **settings)
    SimLoop(stage.clock, Random(0)).run_life(scene(stage))
    return stage


async def start(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """Begin something that goes on beside the scene."""
    return asyncio.get_running_loop().create_task(work)
