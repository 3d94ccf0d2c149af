"""A server on this machine that speaks every wire from one script, with faults on demand.

Owns:  the listening socket, the plan of faults, and the record of what was asked.

    async with open_wire_server(script, faults=[rate_limited()]) as server:
        ... a client of server.base_url(TransportKind.OPENAI_RESPONSES) ...
        assert server.requests[0].json["model"] == "gpt-5"

Rule 1: the n-th request meets the n-th fault of the plan; those after the last meet `otherwise`.
Rule 2: an error of the server itself is raised where the server was opened, never swallowed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
import h11

from holon.adapters.system.clock import SystemClock
from holon.model.providers.models import TransportKind
from holon.ports.clock import Clock
from tests.support.wire_server.answering import RecordedRequest, ScriptedModel, Speaker
from tests.support.wire_server.delivery import Connection, ConnectionOver
from tests.support.wire_server.faults import FINE, Fault
from tests.support.wire_server.wires import WIRES

LOOPBACK: Final = "127.0.0.1"


class WireServer:
    """A server that is running."""

    def __init__(
        self, model: ScriptedModel, faults: Sequence[Fault], otherwise: Fault, *, records: bool
    ) -> None:
        self._model = model
        self._records = records
        self._plan = deque(faults)
        self._otherwise = otherwise
        self._news = anyio.Event()
        self.requests: list[RecordedRequest] = []
        self.port = 0

    def base_url(self, kind: TransportKind) -> str:
        """Return the base URL a client of this wire is configured with."""
        return f"http://{LOOPBACK}:{self.port}{WIRES[kind].base_path}"

    def plan(self, *faults: Fault) -> None:
        """Add faults for the requests to come."""
        self._plan.extend(faults)

    async def wait_for_requests(self, count: int) -> None:
        """Return once so many requests have come in."""
        while len(self.requests) < count:
            await self._news.wait()

    @property
    def cached_share(self) -> float:
        """The share of all prompt bytes that were read from cache."""
        cache = self._model.cache
        return cache.bytes_read / cache.bytes_seen if cache.bytes_seen else 0.0

    async def serve(self, connection: Connection) -> None:
        """Answer the requests of one client, one after the other."""
        try:
            while (request := await connection.read()) is not None:
                self._record(request)
                fault = self._plan.popleft() if self._plan else self._otherwise
                await connection.bring(self._model.reply_to(request, fault), request)
        except (ConnectionError, ConnectionOver, h11.RemoteProtocolError):
            pass  # the client is gone or talks nonsense: there is nobody left to answer
        finally:
            await connection.close()

    def _record(self, request: RecordedRequest) -> None:
        if self._records:
            self.requests.append(request)
        self._news.set()
        self._news = anyio.Event()


@asynccontextmanager
async def open_wire_server(
    script: Speaker,
    *,
    faults: Sequence[Fault] = (),
    otherwise: Fault = FINE,
    clock: Clock | None = None,
    api_key: str | None = None,
    needs_key: bool = True,
    records: bool = True,
) -> AsyncIterator[WireServer]:
    """Serve a script on a free port of this machine until the block is left.

    With an `api_key`, no other is let in; without `needs_key`, every client is. A server that runs
    for long `records` no requests: whole prompts add up to gigabytes.
    """
    model = ScriptedModel(script, api_key=api_key, needs_key=needs_key)
    server = WireServer(model, faults, otherwise, records=records)
    tasks: set[asyncio.Task[None]] = set()
    errors: list[BaseException] = []

    def ended(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            errors.append(error)

    time = clock or SystemClock()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, time)
        task = asyncio.get_running_loop().create_task(server.serve(connection))
        tasks.add(task)
        task.add_done_callback(ended)

    listener = await asyncio.start_server(connected, LOOPBACK, 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in (left := tuple(tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await listener.wait_closed()
    for error in errors:
        raise error
