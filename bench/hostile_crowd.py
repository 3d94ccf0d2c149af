"""How long the operator's socket takes while 200 hostile connections do their worst over TCP.

Owns:  the comparison: the same requests over the socket of one service, in turns without the crowd
       and with it. The crowd is a process of its own: slow heads, half bodies, wrong tokens, and
       floods of requests to triggers and webhooks, each kind a quarter of the connections.
"""

import asyncio
import sys
import time
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.measure import Measurement, median
from bench.served import Served, process, served

HOSTILE_COUNT: Final = 200
REQUESTS_COUNT: Final = 40
TURNS_COUNT: Final = 2
SETTLING_S: Final = 2.0  # until the crowd is there
DRIP_S: Final = 0.05
_ASK: Final = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def run() -> list[Measurement]:
    """Measure both, and say how they compare."""
    alone: list[float] = []
    beset: list[float] = []
    with TemporaryDirectory() as folder, served(Path(folder) / "home") as service:
        await _asked(service)  # the first answer prepares what later ones find
        for _ in range(TURNS_COUNT):
            alone += await _asked(service)
            program = [sys.executable, "-m", "bench.hostile_crowd", str(service.port)]
            with process(program):
                await asyncio.sleep(SETTLING_S)
                beset += await _asked(service)
    quiet_ms, beset_ms = median(alone) * 1_000, median(beset) * 1_000
    detail = f"without them {quiet_ms:.2f} ms"
    name = f"an answer on the operator's socket beside {HOSTILE_COUNT} hostile connections, median"
    return [Measurement(name, beset_ms, 50.0, unit=" ms", detail=detail)]


async def _asked(service: Served) -> list[float]:
    """Ask over the socket, each time on a new connection as a command does."""
    took: list[float] = []
    for _ in range(REQUESTS_COUNT):
        began = time.perf_counter()
        reader, writer = await asyncio.open_unix_connection(
            str(service.home / "run" / "holon.sock")
        )
        writer.write(_ASK)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        took.append(time.perf_counter() - began)
        writer.close()
    return took


async def _slow_head(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /status HTTP/1.1\r\n")
    for number in count():
        writer.write(b"x-%d: y\r\n" % number)
        await writer.drain()
        await asyncio.sleep(DRIP_S)


async def _half_body(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = _request(port, b"POST", b"/callbacks/wake/guess", b"content-length: 60000\r\n")
    writer.write(head)
    for _ in count():
        writer.write(b"x" * 64)
        await writer.drain()
        await asyncio.sleep(DRIP_S)


async def _wrong_token(port: int) -> None:
    await _flood(port, _request(port, b"GET", b"/status", b"authorization: Bearer guess\r\n"))


async def _trigger_flood(port: int) -> None:
    await _flood(port, _request(port, b"POST", b"/callbacks/wake/guess", b"content-length: 0\r\n"))


async def _webhook_flood(port: int) -> None:
    headers = b"x-holon-signature: guess\r\ncontent-length: 0\r\n"
    await _flood(port, _request(port, b"POST", b"/webhooks/generic/main", headers))


async def _flood(port: int, request: bytes) -> None:
    """Send as much as is taken, several requests at once, and read what comes only to drop it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(request * 8)
        await writer.drain()
        if not await reader.read(65_536):
            return


def _request(port: int, method: bytes, path: bytes, headers: bytes) -> bytes:
    return b"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (method, path, port, headers)


_KINDS: Final = (_slow_head, _half_body, _wrong_token, _trigger_flood, _webhook_flood)


async def _again_and_again(number: int, port: int) -> None:
    while True:
        try:
            await _KINDS[number % len(_KINDS)](port)
        except OSError:
            await asyncio.sleep(DRIP_S)


async def _crowd(port: int) -> None:
    async with asyncio.TaskGroup() as crowd:
        for number in range(HOSTILE_COUNT):
            crowd.create_task(_again_and_again(number, port))
        print("ready", flush=True)


if __name__ == "__main__":
    asyncio.run(_crowd(int(sys.argv[1])))
