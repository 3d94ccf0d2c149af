"""The client for this machine, where it differs from the library's (see test_http_client)."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from holon.adapters.providers.http.exchange import ExchangeTimeouts, HttpCall
from holon.adapters.providers.http.local_client import LocalHttpExchange, is_loopback
from holon.adapters.system.clock import SystemClock
from holon.model.providers.attempts import UnreadableResponseError
from tests.adapters.providers.byte_server import byte_server

OK = b"HTTP/1.1 200 OK\r\n"
PACKED = gzip.compress(b"{}")
WHOLE = OK + b"content-length: 2\r\n\r\n{}"


@pytest.fixture
async def exchange() -> AsyncIterator[LocalHttpExchange]:
    made = LocalHttpExchange(ExchangeTimeouts(), clock=SystemClock())
    yield made
    await made.aclose()


@asynccontextmanager
async def lasting_server(answers: Sequence[bytes]) -> AsyncIterator[tuple[str, list[int]]]:
    """Give each request the next answer, and count the requests of each connection."""
    waiting, counts = list(answers), list[int]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(counts)
        counts.append(0)
        try:
            while waiting:
                await reader.readuntil(b"\r\n\r\n{}")
                counts[number] += 1
                writer.write(waiting.pop(0))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", counts


async def fetched(exchange: LocalHttpExchange, url: str) -> bytes:
    call = HttpCall(provider="acme", model_ref="acme/m1", url=url, headers={}, body=b"{}")
    async with exchange.open(call) as reply:
        return await reply.read()


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost/v1/chat", True),
        ("http://[::1]:11434", True),
        ("https://127.0.0.1:8000/v1", False),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://localhost.example.com/", False),
        ("http://user:word@127.0.0.1/", False),
        ("http://127.0.0.1@example.com/", False),
        ("http://127.0.0.1:8000\\@example.com/", False),
        ("http://127.0.0.1:99999/", False),
        ("http://127.0.0.1/a b", False),
        ("http://127.0.0.1/a\r\nx: y", False),
        ("http://10.0.0.7:8000/v1", False),
    ],
)
def test_only_what_names_this_machine_by_itself_is_here(url: str, here: bool) -> None:
    assert is_loopback(url) is here


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        OK + b"transfer-encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\nlater: on\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + WHOLE,
        OK + b"Content-Length: 2, 2\r\n\r\n{}",
    ],
)
async def test_a_connection_whose_answer_was_whole_is_used_again(
    exchange: LocalHttpExchange, answer: bytes
) -> None:
    async with lasting_server([answer] * 3) as (url, counts):
        assert [await fetched(exchange, url) for _ in range(3)] == [b"{}"] * 3
    assert counts == [3]


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"content-length: 2\r\nconnection: close\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        WHOLE + b"and more than it said",
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)
async def test_a_connection_that_may_hold_something_else_is_not_used_again(
    exchange: LocalHttpExchange, answer: bytes
) -> None:
    async with lasting_server([answer] * 2) as (url, counts):
        assert [await fetched(exchange, url) for _ in range(2)] == [b"{}"] * 2
    assert counts == [1, 1]


async def test_a_connection_the_server_has_ended_meanwhile_is_replaced(
    exchange: LocalHttpExchange,
) -> None:
    async with byte_server([WHOLE]) as server:
        assert [await fetched(exchange, server.url) for _ in range(3)] == [b"{}"] * 3
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        OK + b"content-length: -2\r\n\r\n{}",
        OK + b"content-length: " + b"9" * 5_000 + b"\r\n\r\n{}",
        OK + b"content-length: two\r\n\r\n{}",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"broken header\r\n\r\n{}",
        OK + b"a: b\r\n folded: on\r\n\r\n{}",
        OK + b"transfer-encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
        OK
        + b"transfer-encoding: chunked\r\ncontent-encoding: gzip\r\n\r\n"
        + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (PACKED, b"more", b"")),
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 9,
        OK + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_nearly_http_is_refused(exchange: LocalHttpExchange, answer: bytes) -> None:
    async with byte_server([answer]) as server:
        with pytest.raises(UnreadableResponseError):
            await fetched(exchange, server.url)
