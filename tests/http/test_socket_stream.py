"""Waiting on a socket, and giving the wait up in the worst moment."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from holon.adapters.system.listening_sockets import bind_unix
from holon.http.server.listeners import SocketStream, accepted

FILLING = b"x" * 65_536


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two connected sockets, of which the first is ours."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def drain(readable: socket.socket) -> int:
    """Take whatever lies in a socket."""
    taken = 0
    try:
        while chunk := readable.recv(65_536):
            taken += len(chunk)
    except BlockingIOError:
        return taken
    return taken


async def complaints_when_given_up(
    waiting: Callable[[], Coroutine[Any, Any, object]], make_ready: Callable[[], object]
) -> list[dict[str, Any]]:
    """Cancel a wait in the turn of the loop in which what it waits for has come."""
    loop = asyncio.get_running_loop()
    complaints = list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(waiting)
            await anyio.wait_all_tasks_blocked()
            make_ready()
            # Runs first in the next turn; the loop, which has polled by then, tells the wait after.
            loop.call_soon(group.cancel_scope.cancel)
            await anyio.sleep_forever()
        await anyio.wait_all_tasks_blocked()
    finally:
        loop.set_exception_handler(None)
    return complaints


@pytest.mark.requirement("http:a-wait-given-up-is-no-error")
async def test_receiving_given_up_as_bytes_arrive_is_quiet(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    stream = SocketStream(ours)
    assert not await complaints_when_given_up(stream.receive, lambda: theirs.send(b"late"))
    assert await stream.receive() == b"late"


@pytest.mark.requirement("http:a-wait-given-up-is-no-error")
async def test_sending_given_up_as_room_appears_is_quiet(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    stream = SocketStream(ours)

    async def send_without_end() -> None:
        while True:
            await stream.send(FILLING)

    assert not await complaints_when_given_up(send_without_end, lambda: drain(theirs))


@pytest.mark.requirement("http:a-wait-given-up-is-no-error")
async def test_accepting_given_up_as_somebody_knocks_is_quiet(tmp_path: Path) -> None:
    with bind_unix(tmp_path / "s") as bound, socket.socket(socket.AF_UNIX) as client:

        async def accept() -> None:
            with closing(await accepted(bound)):
                pytest.fail("the wait was given up before")

        assert not await complaints_when_given_up(
            accept, lambda: client.connect(bound.getsockname())
        )


async def test_what_is_sent_arrives_whole_however_slowly_it_is_taken(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    stream, sent = SocketStream(ours), FILLING * 16
    taken = 0
    async with anyio.create_task_group() as group:
        group.start_soon(stream.send, sent)
        while taken < len(sent):
            await anyio.wait_readable(theirs)
            taken += drain(theirs)
    await stream.send_eof()
    assert (taken, theirs.recv(1)) == (len(sent), b"")


async def test_ends_are_told_apart(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    stream = SocketStream(ours)
    theirs.close()
    with pytest.raises(anyio.EndOfStream):
        await stream.receive()
    with pytest.raises(anyio.BrokenResourceError):
        await stream.send(b"nobody takes this")
    await stream.aclose()
    with pytest.raises(anyio.BrokenResourceError):
        await stream.receive()
