"""How long the first words of a streamed answer take from the wire to the runtime.

Owns:  the comparison, for every wire: our transport against a reader that does nothing but read,
       over the same HTTP library, from the same server, in turns within one run.
Rule 1: the server writes the moment of sending into the words, so both clocks are one, and it goes
        on only after the words were heard: nothing else happens in between.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2

from bench.measure import Measurement, median
from bench.provider_streams import STREAMS, Stream
from holon.adapters.providers.http.remote_client import HttpClientExchange
from holon.adapters.providers.resolver import TransportParts, provider_at
from holon.adapters.providers.wire_request import Endpoint, NoAuthorization
from holon.adapters.system.clock import SystemClock
from holon.model.providers.models import TransportKind
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import TextBlock, UserMessage
from holon.model.turns.turn import AnswerProgress, TextGrew
from holon.model.values import AgentId
from holon.ports.providers import Provider

REQUESTS_COUNT: Final = 250
DIFFERENCE_MS_MAX: Final = 2.0
_WARM_UP_COUNT: Final = 20
_HEAD_LEAD_S: Final = 0.001  # long enough for a client to wait for the body before it comes
_MS_NS: Final = 1_000_000
_STAMP: Final = re.compile(rb"sent at (\d+)")
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_REQUEST: Final = ProviderRequest(
    agent_id=AgentId("main"),
    frame=PromptFrame(system_prompt="You are an agent."),
    conversation=(UserMessage(blocks=(TextBlock(text="Say something."),)),),
    tools=(),
)


class StampingServer:
    """Streams an answer whose first words say when they were sent."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._serving: set[asyncio.Task[None]] = set()
        self.url = ""
        self.heard = asyncio.Event()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client that has come."""
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def wait_alone(self) -> None:
        """Return when every client has left."""
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await _read_request(reader)
                await self._answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has had enough
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        self.heard.clear()
        writer.write(_HEAD)
        await asyncio.sleep(_HEAD_LEAD_S)
        first, rest = self._stream(f"sent at {time.perf_counter_ns()}")
        writer.write(_chunk(first))
        await self.heard.wait()
        writer.write(_chunk(rest) + _chunk(b""))


async def _read_request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    assert length is not None
    await reader.readexactly(int(length[1]))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _age_ms(words: bytes) -> float:
    """Return how long ago some words were sent."""
    heard_ns = time.perf_counter_ns()
    stamp = _STAMP.search(words)
    assert stamp is not None
    return (heard_ns - int(stamp[1])) / _MS_NS


async def run() -> list[Measurement]:
    """Measure every wire."""
    return [await _measured(transport, stream) for transport, stream in STREAMS.items()]


async def _measured(transport: TransportKind, stream: Stream) -> Measurement:
    ours_ms: list[float] = []
    bare_ms: list[float] = []
    async with _serving(stream) as server, httpx2.AsyncClient(trust_env=False) as client:
        exchange = HttpClientExchange()
        try:
            provider = _provider(transport, server, exchange)
            for _ in range(_WARM_UP_COUNT + REQUESTS_COUNT):
                ours_ms.append(await _heard_ms(provider, server))
                bare_ms.append(await _read_ms(client, server))
        finally:
            await exchange.aclose()
    ours, bare = median(ours_ms[_WARM_UP_COUNT:]), median(bare_ms[_WARM_UP_COUNT:])
    return Measurement(
        name=f"{transport.value}: first words of a stream to the runtime, over a bare reader",
        measured=ours - bare,
        target=DIFFERENCE_MS_MAX,
        unit=" ms",
        detail=f"{ours:.3f} ms and {bare:.3f} ms",
    )


@asynccontextmanager
async def _serving(stream: Stream) -> AsyncIterator[StampingServer]:
    server = StampingServer(stream)
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        await server.wait_alone()


def _provider(
    transport: TransportKind, server: StampingServer, exchange: HttpClientExchange
) -> Provider:
    endpoint = Endpoint(
        provider="acme", model="m1", transport=transport, base_url=server.url, stream=True
    )
    parts = TransportParts(
        exchange=lambda: exchange,
        clock=SystemClock(),
        home=Path("/nonexistent"),
        local_threads_count=1,
    )
    return provider_at(endpoint, NoAuthorization(), parts)


async def _heard_ms(provider: Provider, server: StampingServer) -> float:
    """Return how long the first words took to be heard through our transport."""
    ages_ms: list[float] = []

    def hear(progress: AnswerProgress) -> None:
        assert isinstance(progress, TextGrew)
        ages_ms.append(_age_ms(progress.text.encode()))
        server.heard.set()

    await provider.answer(_REQUEST, hear)
    return ages_ms[0]


async def _read_ms(client: httpx2.AsyncClient, server: StampingServer) -> float:
    """Return how long the first words took to be read by a reader that does nothing else."""
    ages_ms: list[float] = []
    headers: Mapping[str, str] = {"accept-encoding": "identity"}
    async with client.stream("POST", server.url, content=b"{}", headers=headers) as response:
        async for piece in response.aiter_bytes():
            if not ages_ms:
                ages_ms.append(_age_ms(piece))
                server.heard.set()
    return ages_ms[0]
