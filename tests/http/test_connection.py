"""Bytes on one connection, from a peer that is not always nice."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.streams.stapled import StapledByteStream

from holon.http.exchange import (
    AnyReply,
    BodySource,
    BodyTooLargeError,
    BodyTooSlowError,
    Peer,
    Reply,
    RequestHead,
    SocketKind,
    StreamReply,
)
from holon.http.server import connection as module
from holon.http.server.connection import Connection


class _Receiving:
    """The reading half of an in-memory pipe of bytes."""

    def __init__(self, chunks: anyio.abc.ObjectReceiveStream[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        data = self._rest or await self._chunks.receive()
        self._rest = data[max_bytes:]
        return data[:max_bytes]

    async def aclose(self) -> None:
        await self._chunks.aclose()


def pipe() -> tuple[ByteStream, ByteStream]:
    """Two streams, each the other's end."""
    there_send, there_receive = anyio.create_memory_object_stream[bytes](1_000)
    back_send, back_receive = anyio.create_memory_object_stream[bytes](1_000)
    return (
        StapledByteStream(back_send, _Receiving(there_receive)),  # type: ignore[arg-type]
        StapledByteStream(there_send, _Receiving(back_receive)),  # type: ignore[arg-type]
    )


class Peerless:
    """A server for one connection, and the client's end of it."""

    def __init__(self, client: ByteStream) -> None:
        self.client = client
        self.heads: list[RequestHead] = []

    async def say(self, text: bytes) -> None:
        await self.client.send(text)

    async def all_that_comes(self) -> bytes:
        """Everything until the server closes."""
        heard = b""
        with anyio.fail_after(20):
            while True:
                try:
                    heard += await self.client.receive()
                except anyio.EndOfStream:
                    return heard


Answer = Callable[[RequestHead, BodySource], object]


@asynccontextmanager
async def connected(answer: Answer) -> AsyncIterator[Peerless]:
    server, client = pipe()
    peerless = Peerless(client)

    async def answering(head: RequestHead, body: BodySource) -> AnyReply:
        peerless.heads.append(head)
        return await answer(head, body)  # type: ignore[misc, no-any-return]

    async def serve() -> None:
        async with server:
            await Connection(
                server, Peer(socket_kind=SocketKind.TCP, address="peer"), answering
            ).serve()

    async with anyio.create_task_group() as running:
        running.start_soon(serve)
        yield peerless
        running.cancel_scope.cancel()
    await client.aclose()


async def echo(head: RequestHead, body: BodySource) -> Reply:
    return Reply(status=200, body=await body.read(bytes_max=100))


async def unread(head: RequestHead, body: BodySource) -> Reply:
    return Reply(status=403, body=b"no")


async def test_several_requests_share_a_connection() -> None:
    async with connected(echo) as peer:
        await peer.say(b"POST /a?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
        await peer.say(b"GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        heard = await peer.all_that_comes()
    assert heard.count(b"HTTP/1.1 200 OK") == 2
    assert [(h.method, h.path, h.query) for h in peer.heads] == [
        ("POST", "/a", "x=1"),
        ("GET", "/b", ""),
    ]


async def test_requests_sent_at_once_are_answered_in_order() -> None:
    async with connected(echo) as peer:
        one = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n%d"
        last = b"POST /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1\r\n\r\n3"
        await peer.say(one % 1 + one % 2 + last)
        heard = await peer.all_that_comes()
    assert [part[-1:] for part in heard.split(b"HTTP/1.1 200 OK")[1:]] == [b"1", b"2", b"3"]


async def test_every_answer_forbids_guessing_and_keeping() -> None:
    async with connected(echo) as peer:
        await peer.say(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        heard = await peer.all_that_comes()
    for header in (b"cache-control: no-store", b"x-content-type-options: nosniff"):
        assert header in heard


async def test_a_body_nobody_read_ends_the_connection() -> None:
    async with connected(unread) as peer:
        await peer.say(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nsome")
        heard = await peer.all_that_comes()
    assert heard.startswith(b"HTTP/1.1 403")
    assert b"connection: close" in heard


async def test_nobody_is_told_to_continue_before_the_body_is_wanted() -> None:
    expecting = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    async with connected(unread) as peer:
        await peer.say(expecting)
        assert b"100" not in await peer.all_that_comes()
    async with connected(echo) as peer:
        await peer.say(expecting)
        with anyio.fail_after(20):
            assert (await peer.client.receive()).startswith(b"HTTP/1.1 100")


async def test_a_body_over_the_bound_is_cut_off_while_it_comes() -> None:
    refused: list[BodyTooLargeError] = []

    async def bounded(head: RequestHead, body: BodySource) -> Reply:
        try:
            await body.read(bytes_max=10)
        except BodyTooLargeError as large:
            refused.append(large)
        return Reply(status=413)

    async with connected(bounded) as peer:
        await peer.say(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        await peer.say(b"b\r\n01234567890\r\n")
        assert (await peer.all_that_comes()).startswith(b"HTTP/1.1 413")
    assert refused


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost : h\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 300_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n", b"431"),
    ],
)
async def test_s25_what_cannot_be_read_without_doubt_is_refused(text: bytes, status: bytes) -> None:
    async with connected(echo) as peer:
        await peer.say(text)
        heard = await peer.all_that_comes()
    assert heard.startswith(b"HTTP/1.1 " + status)
    assert not peer.heads


async def test_s24_a_peer_that_never_asks_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HTTP_HEAD_MS_MAX", 1)
    async with connected(echo) as peer:
        await peer.say(b"GET / HTTP/1.1\r\nHo")
        assert await peer.all_that_comes() == b""


async def test_a_peer_that_has_asked_may_be_idle_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HTTP_IDLE_MS_MAX", 1)
    async with connected(echo) as peer:
        await peer.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await peer.all_that_comes()).startswith(b"HTTP/1.1 200")


async def test_s23_a_body_that_comes_too_slowly_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HTTP_BODY_MS_MAX", 1)

    async def patient(head: RequestHead, body: BodySource) -> Reply:
        try:
            await body.read(bytes_max=10)
        except BodyTooSlowError:
            return Reply(status=408)
        return Reply(status=200)

    async with connected(patient) as peer:
        await peer.say(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n1")
        assert (await peer.all_that_comes()).startswith(b"HTTP/1.1 408")


async def test_a_stream_goes_on_until_its_source_ends() -> None:
    async def stream(head: RequestHead, body: BodySource) -> StreamReply:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            yield b"data: 2\n\n"

        return StreamReply(chunks=chunks())  # type: ignore[arg-type]

    async with connected(stream) as peer:
        await peer.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        heard = await peer.all_that_comes()
    assert b"text/event-stream" in heard
    assert heard.index(b"data: 1") < heard.index(b"data: 2")
    assert heard.endswith(b"0\r\n\r\n")


async def test_a_reader_that_hangs_up_ends_its_stream() -> None:
    ended = anyio.Event()

    async def stream(head: RequestHead, body: BodySource) -> StreamReply:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"data: 1\n\n"
                await anyio.sleep_forever()
            finally:
                ended.set()

        return StreamReply(chunks=chunks())  # type: ignore[arg-type]

    async with connected(stream) as peer:
        await peer.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await peer.client.receive()
        await peer.client.aclose()
        with anyio.fail_after(20):
            await ended.wait()


async def test_who_asks_for_a_head_gets_no_body_and_may_ask_again() -> None:
    async with connected(unread) as peer:
        await peer.say(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        await peer.say(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        heard = await peer.all_that_comes()
    first, second = heard.split(b"HTTP/1.1 403 Forbidden")[1:]
    assert b"content-length: 2" in first
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b"\r\n\r\nno")


async def test_a_reader_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HTTP_SEND_MS_MAX", 20)
    closed = anyio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"more"
        finally:
            closed.set()

    async def streaming(head: RequestHead, body: BodySource) -> StreamReply:
        return StreamReply(chunks=endless())

    async with connected(streaming) as peer:
        await peer.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        with anyio.fail_after(20):
            await closed.wait()
