"""A host for a bench: the real store on a real disk, and a model that answers at once.

Owns:  homes that are gone afterwards, hosts on them, and the requests benches send.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import anyio

from holon.adapters.sqlite.store import SqliteStore, open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.model.events.retention import RetentionPolicy
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    TextBody,
)
from holon.model.turns.turn import ModelAnswer
from holon.model.values import AgentId
from holon.ports.providers import OnProgress, Provider
from holon.runtime.host import Host
from tests.support.hosts import a_host
from tests.support.scripted_provider import ScriptedCall, ScriptedRound, spoken
from tests.support.single_model import SingleModel

TEXT: Final = "A message of the length people write, give or take. " * 4
_TOOL_ROUND: Final = ScriptedRound(
    calls=(ScriptedCall(name="Sleep", input={"reason": "the bench is over"}),)
)
_LAST_WORDS: Final = ScriptedRound(text="Done.")


class PromptModel:
    """Answers at once: one tool round, which ends the turn, or plain words."""

    def __init__(self, *, uses_tool: bool) -> None:
        self._round = _TOOL_ROUND if uses_tool else _LAST_WORDS
        self._count = 0

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the one thing this model says."""
        del request, on_progress
        self._count += 1
        return spoken(self._round, call_prefix=f"call_{self._count}")


class SilentModel:
    """Never answers, as a model does for as long as a message takes to admit."""

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Keep the lane busy until it is cancelled."""
        del request, on_progress
        await anyio.sleep_forever()
        raise AssertionError("nobody wakes a sleeper for ever")


class BenchHost:
    """A host that is ready, its store, and a way to wait for the end of a turn."""

    def __init__(self, home: Path, host: Host, store: SqliteStore) -> None:
        self.home = home
        self.admit = host.admit
        self.store = store
        self._news = anyio.Event()
        store.observe(self._ring)

    def _ring(self, touched: Collection[AgentId]) -> None:
        del touched
        self._news.set()
        self._news = anyio.Event()

    async def settle(self, request: IngressRequest) -> float:
        """Return how many seconds it took from a request to the settled turn."""
        began = time.perf_counter()
        receipt = await self.admit(request)
        while True:
            news = self._news
            entry = await self.store.reads.queue.message(receipt.message_id)
            if entry is not None and entry.state.is_terminal:
                return time.perf_counter() - began
            await news.wait()


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Yield a path for a home on the disk temporary files live on."""
    home = Path(tempfile.mkdtemp(prefix="holon-bench-"))
    try:
        yield home
    finally:
        shutil.rmtree(home)


@asynccontextmanager
async def running_host(
    home: Path, *, model: Provider, retention: RetentionPolicy | None = None
) -> AsyncIterator[BenchHost]:
    """Yield a host that is ready; it is gone afterwards."""
    store = open_store(home)
    host = a_host(
        store=store,
        clock=SystemClock(),
        ids=TimeOrderedIds(),
        models=SingleModel(model),
        retention_policy=retention or RetentionPolicy(),
    )
    bench_host = BenchHost(home, host, store)
    try:
        async with anyio.create_task_group() as life:
            life.start_soon(host.run)
            await host.wait_ready()
            yield bench_host
            life.cancel_scope.cancel()
    finally:
        await store.close()


def prompt(agent_id: str, *, key: str | None = None, text: str = TEXT) -> IngressRequest:
    """What an operator says to an agent."""
    return IngressRequest(
        agent_id=AgentId(agent_id),
        kind=MessageKind.OPERATOR_PROMPT,
        origin=OperatorOrigin(),
        body=TextBody(text=text),
        surface=DeliverySurface.CLI_PROMPT,
        admission=AdmissionContext.LOCAL_PROCESS,
        idempotency_key=key,
    )
