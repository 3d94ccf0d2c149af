"""Taking connections in when the machine, or whoever knocks, makes it hard."""

import logging
import os
import resource
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.listening_sockets import bind_tcp, bind_unix
from holon.http.exchange import Answerer, BodySource, PeerGoneError, Reply, RequestHead, SocketKind
from holon.http.server.connection import AuthCheck, never_authenticated
from holon.http.server.listeners import Listeners

PATIENCE_S = 20.0
ASKED = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
RESET = struct.pack("ii", 1, 0)  # linger for no time at all: closing breaks the connection off


async def greet(head: RequestHead, body: BodySource) -> Reply:
    """Answer everybody."""
    del head, body
    return Reply(status=200, body=b"welcome")


@asynccontextmanager
async def listening(
    bound: socket.socket,
    *,
    answer: Answerer = greet,
    room_for: int = 64,
    is_authenticated: AuthCheck = never_authenticated,
) -> AsyncIterator[None]:
    """Serve on a socket while the block runs; whatever ends the serving ends the block."""
    with bound:
        listeners = Listeners(
            answer=answer,
            clock=SystemClock(),
            connections_max=room_for,
            is_authenticated=is_authenticated,
        )
        async with anyio.create_task_group() as serving:
            serving.start_soon(listeners.serve, [bound])
            with anyio.fail_after(PATIENCE_S):
                yield
            serving.cancel_scope.cancel()


def bound_at(socket_kind: SocketKind, folder: Path) -> socket.socket:
    """A listening socket of either kind."""
    return bind_tcp("127.0.0.1", 0) if socket_kind is SocketKind.TCP else bind_unix(folder / "s")


@contextmanager
def no_handles_left() -> Iterator[None]:
    """Let this process open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open("/dev/null", "rb") as lowest_free:
        limit = lowest_free.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/dev/null", os.O_RDONLY)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Warned(logging.Handler):
    """Hears the first complaint."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = list[str]()
        self.heard = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Note it down."""
        self.said.append(record.getMessage())
        self.heard.set()


@pytest.fixture
def warned() -> Iterator[Warned]:
    """Whatever the listeners complain about."""
    heard, log = Warned(), logging.getLogger("holon.http.server.listeners")
    log.addHandler(heard)
    yield heard
    log.removeHandler(heard)


def answer_to(client: socket.socket) -> bytes:
    """Ask over a connection, and return all that comes."""
    client.settimeout(PATIENCE_S)
    client.sendall(ASKED)
    heard = b""
    while chunk := client.recv(4_096):
        heard += chunk
    return heard


def asked_once(client: socket.socket) -> bytes:
    """Ask over a connection, hear the answer, and keep the connection."""
    client.settimeout(PATIENCE_S)
    client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    heard = b""
    while not heard.endswith(b"welcome"):
        heard += client.recv(4_096)
    return heard


@pytest.mark.requirement("http:out-of-handles-is-waited-out")
@pytest.mark.parametrize("socket_kind", list(SocketKind))
async def test_who_knocks_while_no_handle_is_left_is_let_in_later(
    socket_kind: SocketKind, tmp_path: Path, warned: Warned
) -> None:
    bound = bound_at(socket_kind, tmp_path)
    async with listening(bound):
        with socket.socket(bound.family) as client:
            with no_handles_left():
                client.connect(bound.getsockname())
                await warned.heard.wait()
            answer = await anyio.to_thread.run_sync(answer_to, client)
    assert answer.endswith(b"welcome")
    assert warned.said == ["accepting connections is paused: Too many open files"]


async def test_a_peer_that_breaks_off_before_it_is_let_in_harms_nobody() -> None:
    bound = bind_tcp("127.0.0.1", 0)
    async with listening(bound):
        for _ in range(3):
            with socket.socket(bound.family) as hasty:
                hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                hasty.connect(bound.getsockname())
        with socket.socket(bound.family) as client:
            client.connect(bound.getsockname())
            answer = await anyio.to_thread.run_sync(answer_to, client)
    assert answer.endswith(b"welcome")


@pytest.mark.requirement("http:a-wait-given-up-is-no-error")
@pytest.mark.parametrize("expects", [b"", b"Expect: 100-continue\r\n"])
async def test_a_peer_that_breaks_off_in_its_body_is_gone_and_no_fault(expects: bytes) -> None:
    bound, heard = bind_tcp("127.0.0.1", 0), list[type[Exception]]()
    reading, ended = anyio.Event(), anyio.Event()

    async def take(head: RequestHead, body: BodySource) -> Reply:
        reading.set()
        try:
            await body.read(bytes_max=100)
        except Exception as error:
            heard.append(type(error))
            raise
        finally:
            ended.set()
        return await greet(head, body)

    async with listening(bound, answer=take):
        with socket.socket(bound.family) as hasty:
            hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            hasty.connect(bound.getsockname())
            hasty.sendall(
                b"POST / HTTP/1.1\r\nHost: h\r\n" + expects + b"Content-Length: 9\r\n\r\n"
            )
            await reading.wait()
        await ended.wait()
    assert heard == [PeerGoneError]


async def test_a_listening_socket_that_is_gone_is_not_waited_for() -> None:
    bound = bind_tcp("127.0.0.1", 0)
    serving = Listeners(answer=greet, clock=SystemClock()).serve([bound])
    bound.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ExceptionGroup) as caught, bound, anyio.fail_after(PATIENCE_S):
        await serving
    assert caught.group_contains(OSError, match="Invalid argument")


@pytest.mark.requirement("http:a-place-is-had-by-asking")
async def test_those_who_have_asked_once_keep_nobody_out() -> None:
    bound = bind_tcp("127.0.0.1", 0)
    with ExitStack() as held:
        async with listening(bound, room_for=4, is_authenticated=lambda head: True):
            idle = [held.enter_context(socket.socket(bound.family)) for _ in range(4)]
            for each in idle:
                each.connect(bound.getsockname())
                await anyio.to_thread.run_sync(asked_once, each)
            newcomer = held.enter_context(socket.socket(bound.family))
            newcomer.connect(bound.getsockname())
            answer = await anyio.to_thread.run_sync(answer_to, newcomer)
            longest, second = idle[:2]
            assert await anyio.to_thread.run_sync(longest.recv, 1) == b"", "it had to go"
            assert await anyio.to_thread.run_sync(asked_once, second), "one place was enough"
    assert answer.endswith(b"welcome")


@pytest.mark.requirement("http:a-place-is-had-by-asking")
async def test_who_is_being_answered_keeps_the_place() -> None:
    bound, answering, enough = bind_tcp("127.0.0.1", 0), anyio.Semaphore(0), anyio.Event()

    async def slowly(head: RequestHead, body: BodySource) -> Reply:
        answering.release()
        await enough.wait()
        return await greet(head, body)

    with ExitStack() as held:
        async with listening(bound, answer=slowly, room_for=2, is_authenticated=lambda head: True):
            busy = [held.enter_context(socket.socket(bound.family)) for _ in range(2)]
            for each in busy:
                each.connect(bound.getsockname())
                each.sendall(ASKED)
                await answering.acquire()
            newcomer = held.enter_context(socket.socket(bound.family))
            newcomer.settimeout(PATIENCE_S)
            newcomer.connect(bound.getsockname())
            assert await anyio.to_thread.run_sync(newcomer.recv, 1) == b"", "there is no place"
            enough.set()
            for each in busy:
                each.settimeout(PATIENCE_S)
                heard = await anyio.to_thread.run_sync(each.recv, 4_096)
                assert heard.endswith(b"welcome")


def shows_something(head: RequestHead) -> bool:
    """Take any credentials for the right ones."""
    return head.value(b"authorization") is not None


@pytest.mark.requirement("http:strangers-share-the-room")
async def test_strangers_of_one_peer_that_send_half_a_body_make_room_for_its_next() -> None:
    bound, reading = bind_tcp("127.0.0.1", 0), anyio.Semaphore(0)

    async def take(head: RequestHead, body: BodySource) -> Reply:
        if head.method == "POST":
            reading.release()
            await body.read(bytes_max=100)
        return await greet(head, body)

    with ExitStack() as held:
        async with listening(bound, answer=take, room_for=8, is_authenticated=shows_something):
            half = [held.enter_context(socket.socket(bound.family)) for _ in range(4)]
            for each in half:
                each.connect(bound.getsockname())
                each.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf")
                await reading.acquire()
            newcomer = held.enter_context(socket.socket(bound.family))
            newcomer.connect(bound.getsockname())
            answer = await anyio.to_thread.run_sync(answer_to, newcomer)
            half[0].settimeout(PATIENCE_S)
            assert await anyio.to_thread.run_sync(half[0].recv, 1) == b"", "it had to go"
    assert answer.endswith(b"welcome")


@pytest.mark.requirement("http:strangers-share-the-room")
@pytest.mark.parametrize(("shown", "kept"), [(b"", 4), (b"authorization: x\r\n", 7)])
async def test_a_peer_keeps_more_connections_once_they_show_who_it_is(
    shown: bytes, kept: int
) -> None:
    bound = bind_tcp("127.0.0.1", 0)
    ask = b"GET / HTTP/1.1\r\nHost: h\r\n" + shown + b"\r\n"

    def answered(client: socket.socket) -> bool:
        client.settimeout(PATIENCE_S)
        try:
            client.sendall(ask)
            return client.recv(4_096) != b""
        except OSError:
            return False

    with ExitStack() as held:
        async with listening(bound, room_for=8, is_authenticated=shows_something):
            clients = [held.enter_context(socket.socket(bound.family)) for _ in range(7)]
            for each in clients:
                each.connect(bound.getsockname())
                assert await anyio.to_thread.run_sync(answered, each)
            still = [await anyio.to_thread.run_sync(answered, each) for each in clients[-kept:]]
            assert still == [True] * kept
            if kept < len(clients):
                assert not await anyio.to_thread.run_sync(answered, clients[0])
