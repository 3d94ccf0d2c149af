"""Taking connections in when the machine, or whoever knocks, makes it hard."""

import logging
import os
import resource
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.listening_sockets import bind_tcp, bind_unix
from holon.http.exchange import BodySource, Door, Reply, RequestHead
from holon.http.listeners import Listeners

PATIENCE_S = 20.0
ASKED = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
RESET = struct.pack("ii", 1, 0)  # linger for no time at all: closing breaks the connection off


async def greet(head: RequestHead, body: BodySource) -> Reply:
    """Answer everybody."""
    del head, body
    return Reply(status=200, body=b"welcome")


@asynccontextmanager
async def listening(bound: socket.socket) -> AsyncIterator[None]:
    """Serve on a socket while the block runs; whatever ends the serving ends the block."""
    with bound:
        async with anyio.create_task_group() as serving:
            serving.start_soon(Listeners(answer=greet, clock=SystemClock()).serve, [bound])
            with anyio.fail_after(PATIENCE_S):
                yield
            serving.cancel_scope.cancel()


def bound_at(door: Door, folder: Path) -> socket.socket:
    """A listening socket of either kind."""
    return bind_tcp("127.0.0.1", 0) if door is Door.TCP else bind_unix(folder / "s")


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
    heard, log = Warned(), logging.getLogger("holon.http.listeners")
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


@pytest.mark.requirement("http:out-of-handles-is-waited-out")
@pytest.mark.parametrize("door", list(Door))
async def test_who_knocks_while_no_handle_is_left_is_let_in_later(
    door: Door, tmp_path: Path, warned: Warned
) -> None:
    bound = bound_at(door, tmp_path)
    async with listening(bound):
        with socket.socket(bound.family) as client:
            with no_handles_left():
                client.connect(bound.getsockname())
                await warned.heard.wait()
            answer = await anyio.to_thread.run_sync(answer_to, client)
    assert answer.endswith(b"welcome")
    assert warned.said == ["connections have to wait: Too many open files"]


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


async def test_a_listening_socket_that_is_gone_is_not_waited_for() -> None:
    bound = bind_tcp("127.0.0.1", 0)
    serving = Listeners(answer=greet, clock=SystemClock()).serve([bound])
    bound.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ExceptionGroup) as caught, bound, anyio.fail_after(PATIENCE_S):
        await serving
    assert caught.group_contains(OSError, match="Invalid argument")
