"""What a round to a model server on this machine costs with each HTTP client.

Owns:  the figures decision 0037 rests on: our own plain client, httpx2, and, where they are
       installed, libraries that Holon does not depend on. All of them run behind the same caps,
       deadlines and facts, against the same server in a process of its own, in turns in one run.
Rule 1: a ratio is over our own client. The time of a round includes the server's share, which is
        the same for all; the CPU time is that of the client's process alone, with its threads.

`python -m bench.http_clients [rounds]`; PYTHONPATH may name a folder with aiohttp and pyreqwest.
"""

import asyncio
import importlib
import importlib.util
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from statistics import median
from typing import Any, Final

import anyio

from holon.adapters.providers.http.exchange import (
    ErrorMeaning,
    ExchangeFacts,
    ExchangeTimeouts,
    HttpCall,
    HttpReply,
    exchange_error,
    public_url,
)
from holon.adapters.providers.http.local_client import LocalHttpExchange
from holon.adapters.providers.http.remote_client import HttpClientExchange
from holon.adapters.providers.http.reply import (
    CappedReply,
    ErrorMapping,
    ReplyTimeouts,
    headers_of,
    run_step,
)
from holon.adapters.system.clock import SystemClock
from holon.model.providers.attempts import ExchangeStage, ProviderError, ProviderUnreachableError

OWN: Final = "own"
_MS: Final = 1_000
_ROUNDS_COUNT: Final = 1_000
_WARM_UP_COUNT: Final = 50
_IMPORTS_COUNT: Final = 15
_BODY: Final = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 900}]})
_ANSWER: Final = json.dumps({"id": "a", "choices": [{"message": {"content": "y" * 700}}]}).encode()
_EVENTS_COUNT: Final = 40
_EVENT: Final = b'data: {"choices":[{"delta":{"content":"a few words of it "}}]}\n\n'

Opened = Callable[[HttpCall], AbstractAsyncContextManager[HttpReply]]


# --- the server: standard library only, one thread a connection -----------------------------------


def serve() -> None:
    """Say the port on stdout, then serve until stdin ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    sys.stdin.read()


def _accept(listener: socket.socket) -> None:
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer_all, args=(client,), daemon=True).start()


def _answer_all(client: socket.socket) -> None:
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    whole += b"content-length: %d\r\n\r\n%b" % (len(_ANSWER), _ANSWER)
    stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    stream += b"transfer-encoding: chunked\r\n\r\n"
    event = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
    with client:
        while request := _request_of(client):
            if b"/stream" not in request:
                client.sendall(whole)
                continue
            client.sendall(stream)
            for _ in range(_EVENTS_COUNT):
                client.sendall(event)
            client.sendall(b"0\r\n\r\n")


def _request_of(client: socket.socket) -> bytes:
    heard, head, missing = b"", b"", 1
    while missing > 0:
        piece = client.recv(65_536)
        if not piece:
            return b""
        heard += piece
        head, end, body = heard.partition(b"\r\n\r\n")
        if end:
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            missing = int(length) - len(body)
    return head


# --- the clients, each behind the shell of a provider's exchange ----------------------------------


class _Pieces:
    """A body, piece by piece, of a library that gives None or nothing at the end."""

    def __init__(self, take: Callable[[], Any]) -> None:
        self._take = take

    async def __anext__(self) -> bytes:
        piece = await self._take()
        if not piece:
            raise StopAsyncIteration
        return bytes(piece)

    async def aclose(self) -> None:
        """Nothing is held."""


def _told(error: Exception, facts: ExchangeFacts) -> ProviderError:
    meaning = ErrorMeaning(ProviderUnreachableError, ExchangeStage.RESPONSE_HEAD, "it broke")
    return exchange_error(error, meaning, facts)


_ERROR_MAPPING: Final = ErrorMapping((Exception,), _told)
_Sent = tuple[int, Mapping[str, str], Callable[[], Any], Callable[[], Any]]


def _through(send: Callable[[HttpCall], Any]) -> Opened:
    """The same caps, deadlines and facts as every exchange, around a library's request."""

    @asynccontextmanager
    async def opened(call: HttpCall) -> AsyncIterator[HttpReply]:
        facts = ExchangeFacts(
            provider=call.provider, model_ref=call.model_ref, url=public_url(call.url)
        )
        timeouts = ReplyTimeouts.since(anyio.current_time(), ExchangeTimeouts(), _ERROR_MAPPING)
        sent: _Sent = await run_step(lambda: send(call), facts, timeouts.deadline_s, _ERROR_MAPPING)
        status, headers, take, close = sent
        facts.received_head(status, headers, bytes_sent=len(call.body))
        try:
            yield CappedReply(headers, _Pieces(take), facts, timeouts)
        finally:
            await close()

    return opened


async def _nothing() -> None:
    return None


@asynccontextmanager
async def own() -> AsyncIterator[Opened]:
    """Our client for this machine."""
    exchange = LocalHttpExchange(ExchangeTimeouts(), clock=SystemClock())
    yield exchange.open
    await exchange.aclose()


@asynccontextmanager
async def with_httpx2() -> AsyncIterator[Opened]:
    """The library that carries all other calls."""
    exchange = HttpClientExchange(ExchangeTimeouts(), clock=SystemClock())
    yield exchange.open
    await exchange.aclose()


@asynccontextmanager
async def with_httpcore2() -> AsyncIterator[Opened]:
    """What httpx2 stands on, driven directly."""
    httpcore2 = importlib.import_module("httpcore2")
    async with httpcore2.AsyncConnectionPool(keepalive_expiry=5.0) as pool:

        async def send(call: HttpCall) -> _Sent:
            names = {"host": "127.0.0.1", "content-length": str(len(call.body))}
            lines = [(name, value) for name, value in {**names, **headers_of(call)}.items()]
            request = httpcore2.Request("POST", call.url, headers=lines, content=call.body)
            response = await pool.handle_async_request(request)
            headers = {name.decode().lower(): value.decode() for name, value in response.headers}
            pieces = aiter(response.aiter_stream())

            async def take() -> bytes | None:
                return await anext(pieces, None)

            return response.status, headers, take, response.aclose

        yield _through(send)


@asynccontextmanager
async def with_aiohttp() -> AsyncIterator[Opened]:
    """A client with its parser in C."""
    aiohttp = importlib.import_module("aiohttp")
    options = {"auto_decompress": True, "cookie_jar": aiohttp.DummyCookieJar()}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), **options) as made:

        async def send(call: HttpCall) -> _Sent:
            headers = headers_of(call)
            response = await made.post(
                call.url, data=call.body, headers=headers, allow_redirects=False
            )
            names = {name.lower(): value for name, value in response.headers.items()}

            async def close() -> None:
                response.release()

            return response.status, names, response.content.readany, close

        yield _through(send)


@asynccontextmanager
async def with_pyreqwest() -> AsyncIterator[Opened]:
    """A client in Rust."""
    builder = importlib.import_module("pyreqwest.client").ClientBuilder()
    async with builder.no_proxy().follow_redirects(False).build() as made:

        async def send(call: HttpCall) -> _Sent:
            asked = made.post(call.url).headers(headers_of(call)).body_bytes(call.body)
            streamed = asked.build_streamed()
            response = await streamed.__aenter__()
            names = {name.lower(): value for name, value in response.headers.items()}

            async def close() -> None:
                await streamed.__aexit__(None, None, None)

            return response.status, names, response.body_reader.read_chunk, close

        yield _through(send)


CLIENTS: Final[Mapping[str, tuple[str, Callable[[], AbstractAsyncContextManager[Opened]]]]] = {
    OWN: ("holon.adapters.providers.http.local_client", own),
    "httpx2": ("httpx2", with_httpx2),
    "httpcore2": ("httpcore2", with_httpcore2),
    "aiohttp": ("aiohttp", with_aiohttp),
    "pyreqwest": ("pyreqwest.client", with_pyreqwest),
}


# --- the measuring --------------------------------------------------------------------------------


async def _round(opened: Opened, url: str, *, is_stream: bool) -> tuple[float, float]:
    """One exchange: seconds of the clock, and of the processor."""
    call = HttpCall(
        provider="p", model_ref="p/m", url=url, headers={"authorization": "Bearer key"},
        body=_BODY.encode(),
    )  # fmt: skip
    wall, processor = time.perf_counter(), time.process_time()
    received = 0
    async with opened(call) as reply:
        if is_stream:
            async for piece in reply.chunks():
                received += len(piece)
        else:
            received = len(await reply.read())
    took = time.perf_counter() - wall, time.process_time() - processor
    assert received == (_EVENTS_COUNT * len(_EVENT) if is_stream else len(_ANSWER))
    return took


async def _compared(
    names: Sequence[str], origin: str, rounds: int, *, is_stream: bool
) -> Mapping[str, tuple[float, float]]:
    """Medians of every client, of the clock and of the processor; each round asks them in turn."""
    url = f"{origin}/{'stream' if is_stream else 'whole'}"
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    async with AsyncExitStack() as stack:
        opened = [(name, await stack.enter_async_context(CLIENTS[name][1]())) for name in names]
        for number in range(_WARM_UP_COUNT + rounds):
            first = number % len(opened)
            for name, one in opened[first:] + opened[:first]:
                took[name].append(await _round(one, url, is_stream=is_stream))
    return {
        name: (median(wall for wall, _ in kept), median(cpu for _, cpu in kept))
        for name, kept in ((name, each[_WARM_UP_COUNT:]) for name, each in took.items())
    }


def _import_ms(module: str) -> float:
    """The median time a fresh process takes to import a module, the interpreter not counted."""
    program = (
        "import asyncio, time, holon.adapters.providers.http.reply, holon.adapters.system.clock;"
        "began = time.perf_counter();"
        f"import {module}; print(time.perf_counter() - began)"
    )
    asked = [sys.executable, "-c", program]
    said = (
        subprocess.run(asked, capture_output=True, check=True).stdout for _ in range(_IMPORTS_COUNT)
    )
    return median(float(each) for each in said) * _MS


def main() -> None:
    """Measure every client that is installed and print a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS_COUNT
    server = subprocess.Popen(
        [sys.executable, "-c", "from bench.http_clients import serve; serve()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    origin = f"http://127.0.0.1:{int(server.stdout.readline())}"
    print(f"{rounds} rounds each; × = over our own client in the same run")
    print("| client | answer | × | CPU × | stream | × | CPU × | import |")
    print("|---|---|---|---|---|---|---|---|")
    try:
        names = [
            name
            for name, (module, _) in CLIENTS.items()
            if importlib.util.find_spec(module.partition(".")[0])
        ]
        whole, stream = (
            asyncio.run(_compared(names, origin, rounds, is_stream=is_stream))
            for is_stream in (False, True)
        )
        for name in names:
            cells = [name]
            for of in (whole, stream):
                (wall, cpu), (our_wall, our_cpu) = of[name], of[OWN]
                cells += [f"{wall * _MS:.3f} ms", f"{wall / our_wall:.2f}", f"{cpu / our_cpu:.2f}"]
            print(f"| {' | '.join([*cells, f'{_import_ms(CLIENTS[name][0]):.0f} ms'])} |")
    finally:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
