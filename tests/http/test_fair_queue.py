"""Strangers wait for their turn, one line for each peer; whoever is known does not wait."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from holon.http.exchange import BodySource, Peer, Reply, RequestHead, SocketKind
from holon.http.server.connection import Connection, FairQueue
from holon.http.server.listeners import SocketStream
from holon.model.limits import HTTP_FAIR_QUEUE_ADMITTED_COUNT

PASSES = 20  # of the event loop: enough for everything that may happen without a turn
GET = b"GET /%d HTTP/1.1\r\nHost: h\r\n%s\r\n"
TOKEN = b"authorization: Bearer right\r\n"


async def passes(count: int = PASSES) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


class Served:
    """What was asked, in order."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def answer(self, head: RequestHead, body: BodySource) -> Reply:
        """Note the path."""
        del body
        self.paths.append(head.path)
        return Reply(status=200)


def is_authenticated(head: RequestHead) -> bool:
    return head.value(b"authorization") == b"Bearer right"


@pytest.mark.requirement("http:strangers-take-turns")
async def test_the_lines_of_the_peers_take_turns_however_long_one_is() -> None:
    share, order = FairQueue(), list[str]()

    async def wait(address: str) -> None:
        await share.turn(address)
        order.append(address)

    async with anyio.create_task_group() as crowd:
        for _ in range(100):
            crowd.start_soon(wait, "hostile")
        await passes()
        crowd.start_soon(wait, "honest")
        await passes()
        assert order == [], "all of them wait"
        crowd.start_soon(share.run)
        while len(order) < 101:
            await passes(1)
        crowd.cancel_scope.cancel()
    assert order.index("honest") <= 1, "it waited for one turn of the crowd and no more"


@pytest.mark.requirement("http:strangers-take-turns")
async def test_a_few_strangers_go_on_in_each_pass_of_the_loop() -> None:
    share, gone_on = FairQueue(), list[int]()

    async def wait() -> None:
        await share.turn("hostile")
        gone_on.append(1)

    async with anyio.create_task_group() as crowd:
        for _ in range(100):
            crowd.start_soon(wait)
        await passes()
        crowd.start_soon(share.run)
        before, most = 0, 0
        while len(gone_on) < 100:
            await passes(1)
            most, before = max(most, len(gone_on) - before), len(gone_on)
        crowd.cancel_scope.cancel()
    assert most == HTTP_FAIR_QUEUE_ADMITTED_COUNT


@pytest.mark.requirement("http:strangers-take-turns")
async def test_who_has_gone_leaves_the_line() -> None:
    share, patient_goes_on = FairQueue(), anyio.Event()

    async def wait() -> None:
        await share.turn("peer")
        patient_goes_on.set()

    async with anyio.create_task_group() as crowd:
        for _ in range(100):
            crowd.start_soon(share.turn, "peer")
        await passes()
        crowd.cancel_scope.cancel()
    async with anyio.create_task_group() as crowd:
        crowd.start_soon(wait)
        crowd.start_soon(share.run)
        await passes()
        assert patient_goes_on.is_set(), "those who have gone take no turns"
        crowd.cancel_scope.cancel()


@asynccontextmanager
async def served_to(
    socket_kind: SocketKind, share: FairQueue
) -> AsyncIterator[tuple[socket.socket, Served]]:
    """The client's end of a connection, and what the server was asked over it."""
    client, server = socket.socketpair()
    served, peer = Served(), Peer(socket_kind=socket_kind, address="peer")
    stream = SocketStream(server)
    connection = Connection(
        stream, peer, served.answer, fair_queue=share, is_authenticated=is_authenticated
    )
    with client, server:
        async with anyio.create_task_group() as serving:
            serving.start_soon(connection.serve)
            yield client, served
            serving.cancel_scope.cancel()


@asynccontextmanager
async def given(share: FairQueue) -> AsyncIterator[None]:
    """Turns are given while the block runs."""
    async with anyio.create_task_group() as giving:
        giving.start_soon(share.run)
        yield
        giving.cancel_scope.cancel()


@pytest.mark.requirement("http:strangers-take-turns")
@pytest.mark.parametrize(
    ("socket_kind", "headers", "expected"),
    [
        pytest.param(
            SocketKind.TCP, b"", [], id="a stranger waits before its first request is read"
        ),
        pytest.param(SocketKind.TCP, TOKEN, [], id="on TCP the first request shows who it is"),
        pytest.param(SocketKind.UNIX, b"", ["/1", "/2"], id="the kernel says who is at the socket"),
    ],
)
async def test_nothing_a_stranger_sent_is_read_before_its_turn(
    socket_kind: SocketKind, headers: bytes, expected: list[str]
) -> None:
    share = FairQueue()
    async with served_to(socket_kind, share) as (client, served):
        client.sendall(GET % (1, headers) + GET % (2, headers))
        await passes()
        assert served.paths == expected
        async with given(share):
            while len(served.paths) < 2:
                await passes(1)


@pytest.mark.requirement("http:strangers-take-turns")
@pytest.mark.parametrize(("headers", "waits"), [(b"", True), (TOKEN, False)])
async def test_each_request_of_a_stranger_is_a_turn_and_none_of_a_known_peer_is(
    headers: bytes, waits: bool
) -> None:
    share = FairQueue()
    async with served_to(SocketKind.TCP, share) as (client, served):
        client.sendall(GET % (1, headers))
        async with given(share):
            while not served.paths:
                await passes(1)
        client.sendall(GET % (2, headers) + GET % (3, headers))
        await passes()
        assert served.paths == (["/1"] if waits else ["/1", "/2", "/3"])
