"""A stream that ends with its service ends as HTTP/1.1 says."""

import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import h11
import pytest

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.control_token import FixedToken
from holon.adapters.system.listening_sockets import bind_tcp
from holon.http.exchange import BodySource, RequestHead, StreamReply
from holon.http.server.listeners import Listeners
from holon.serve.control_server import serve_control_plane
from tests.http.serving import settled
from tests.support.control_server import MAIN, TOKEN, ControlServer, control_server


async def read_to_the_end(stream: anyio.abc.ByteStream, wire: h11.Connection) -> list[object]:
    """Every kind of part that came, up to the end of the message or of the connection."""
    parts: list[object] = []
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            try:
                wire.receive_data(await stream.receive(65_536))
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                wire.receive_data(b"")
            continue
        parts.append(type(event))
        if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            return parts


@pytest.mark.requirement("clients:streams-end-properly")
@pytest.mark.parametrize("path", [f"/agents/{MAIN}/events/stream", "/events/stream"])
async def test_a_stream_at_the_end_of_the_service_ends_its_chunked_body(
    tmp_path: Path, path: str
) -> None:
    async with control_server(tmp_path) as server:
        await settled(server)
        ending, parts = anyio.Event(), list[object]()
        with bind_tcp("127.0.0.1", 0) as bound, anyio.fail_after(20):
            port = bound.getsockname()[1]
            async with anyio.create_task_group() as serving:
                serving.start_soon(_serve, server, bound, ending)
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    wire = h11.Connection(h11.CLIENT)
                    headers = [
                        ("host", f"127.0.0.1:{port}"),
                        ("authorization", f"Bearer {TOKEN}"),
                    ]
                    asked = h11.Request(method="GET", target=path, headers=headers)
                    sent = (wire.send(asked), wire.send(h11.EndOfMessage()))
                    await stream.send(b"".join(part or b"" for part in sent))
                    wire.receive_data(await stream.receive(65_536))  # it has begun
                    ending.set()
                    parts = await read_to_the_end(stream, wire)
        assert parts[0] is h11.Response
        assert h11.Data in parts
        assert parts[-1] is h11.EndOfMessage


async def endless(head: RequestHead, body: BodySource) -> StreamReply:
    """Answer with a stream that has no end of its own."""
    del head, body

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield b"begun"
        await anyio.sleep_forever()

    return StreamReply(chunks=chunks())


@pytest.mark.requirement("clients:streams-end-properly")
async def test_a_stream_that_begins_while_the_service_ends_ends_its_chunked_body() -> None:
    listeners = Listeners(answer=endless, clock=SystemClock())
    with bind_tcp("127.0.0.1", 0) as bound, anyio.fail_after(20):
        port = bound.getsockname()[1]
        async with anyio.create_task_group() as serving:
            serving.start_soon(listeners.serve, [bound])
            listeners.end_streams()
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                wire = h11.Connection(h11.CLIENT)
                asked = h11.Request(method="GET", target="/", headers=[("host", "h")])
                sent = (wire.send(asked), wire.send(h11.EndOfMessage()))
                await stream.send(b"".join(part or b"" for part in sent))
                parts = await read_to_the_end(stream, wire)
            serving.cancel_scope.cancel()
    assert parts == [h11.Response, h11.EndOfMessage]


async def _serve(server: ControlServer, bound: socket.socket, ending: anyio.Event) -> None:
    names = frozenset({f"127.0.0.1:{bound.getsockname()[1]}".encode()})
    await serve_control_plane(
        server.context, (bound,), token=FixedToken(TOKEN), names=names, ending=ending
    )
