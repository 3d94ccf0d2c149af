"""Prompts to settled briefs, through HTTP, against a service that is a process of its own.

Owns:  eight clients that speak to a hundred agents in turns, each waiting for the end of what it
       said before it goes on. One more connection follows all events, which is how they learn of
       it. The model answers at once, in a process of its own.
What one message costs is told as processor time of the service, and so does not depend on who else
uses the machine; the rate does.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from bench.hosting import TEXT, temporary_home
from bench.measure import Measurement
from bench.served import Served, served

AGENTS_COUNT: Final = 100
IDLE_COUNT: Final = 400
CLIENTS_COUNT: Final = 8
WARM_UP_COUNT: Final = 10  # messages of each client
MESSAGES_COUNT: Final = 200  # of each client
RATE_MIN: Final = 100
CPU_MS_MAX: Final = 10
IDLE_KB_MAX: Final = 20
_ENDED: Final = b'"message_processed"'


class Load(NamedTuple):
    """What one load took."""

    seconds: float
    cpu_s: float
    messages_count: int


class Ends:
    """Knows which messages have ended, whether or not anybody waits for them yet."""

    def __init__(self) -> None:
        self._ended: dict[str, asyncio.Event] = {}

    def tell(self, message_id: str) -> None:
        """A message has ended."""
        self._ended.setdefault(message_id, asyncio.Event()).set()

    async def wait(self, message_id: str) -> None:
        """Return once a message has ended."""
        await self._ended.setdefault(message_id, asyncio.Event()).wait()
        del self._ended[message_id]


@asynccontextmanager
async def followed(service: Served) -> AsyncIterator[Ends]:
    """Follow the events of all agents while the block runs."""
    ends, opened = Ends(), asyncio.Event()

    async def follow() -> None:
        async with service.line() as line:
            async for said in line.lines("/events/stream"):
                opened.set()
                if said.startswith(b"data:") and _ENDED in said:
                    payload = json.loads(said[5:])["payload"]
                    ends.tell(payload["message_id"])

    following = asyncio.create_task(follow())
    await opened.wait()
    try:
        yield ends
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


async def run() -> list[Measurement]:
    """Load the service, and weigh it."""
    with temporary_home() as home, served(home) as service:
        await create(service, range(AGENTS_COUNT))
        async with followed(service) as ends:
            await load(service, ends, count=WARM_UP_COUNT)
            loaded = await load(service, ends, count=MESSAGES_COUNT)
            before_kb = service.rss_kb()
            await create(service, range(AGENTS_COUNT, AGENTS_COUNT + IDLE_COUNT))
            await _speak_once(service, ends)
            grown_kb = service.rss_kb() - before_kb
    return _measured(loaded, grown_kb / IDLE_COUNT)


async def create(service: Served, numbers: range) -> None:
    """Bring agents into being."""
    async with service.line() as line:
        for number in numbers:
            made = await line.post(f"/control/agents/agent-{number}/create")
            assert made.status == 200, made


async def load(service: Served, ends: Ends, *, count: int) -> Load:
    """Have every client say something `count` times, to one agent after another."""

    async def speak(client: int) -> None:
        agents = range(client, AGENTS_COUNT, CLIENTS_COUNT)
        async with service.line() as line:
            for number in range(count):
                path = f"/control/agents/agent-{agents[number % len(agents)]}/prompt"
                said = await line.post(path, {"text": TEXT})
                assert said.status == 200, said
                await ends.wait(said.value["message_id"])

    began, cpu_s = time.perf_counter(), service.cpu_s()
    await asyncio.gather(*(speak(client) for client in range(CLIENTS_COUNT)))
    took = time.perf_counter() - began
    return Load(took, service.cpu_s() - cpu_s, CLIENTS_COUNT * count)


async def _speak_once(service: Served, ends: Ends) -> None:
    async with service.line() as line:
        for number in range(AGENTS_COUNT, AGENTS_COUNT + IDLE_COUNT):
            said = await line.post(f"/control/agents/agent-{number}/prompt", {"text": TEXT})
            await ends.wait(said.value["message_id"])


def _measured(loaded: Load, idle_kb: float) -> list[Measurement]:
    rate = loaded.messages_count / loaded.seconds
    return [
        Measurement(
            name=f"prompts to settled briefs, {AGENTS_COUNT} agents, {CLIENTS_COUNT} clients",
            measured=rate,
            target=RATE_MIN,
            at_least=True,
            unit=" /s",
        ),
        Measurement(
            name="processor time of the service for one of them",
            measured=1_000 * loaded.cpu_s / loaded.messages_count,
            target=CPU_MS_MAX,
            unit=" ms",
        ),
        Measurement(
            name="memory an agent adds that has answered once and sleeps",
            measured=idle_kb,
            target=IDLE_KB_MAX,
            unit=" kB",
        ),
    ]
