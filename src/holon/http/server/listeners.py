"""Listening sockets: accepting connections and limiting how many are open.

Owns:  non-blocking accept, receive and send on sockets of either kind; the peer's identity from the
       kernel; the connection limits.
Rule 1: a wait cancelled at the moment its socket becomes ready is cancelled silently. The streams
        of anyio would log a traceback for it, although nothing is wrong.
Rule 2: receiving always yields to the event loop, so that a peer that sends without end does not
        block others.
Rule 3: each socket has its own connection limit, so that a full TCP socket does not block the Unix
        socket. Above the limit, the connection that has been idle the longest is closed. If all are
        being answered, the new connection is closed.
Rule 4: connections without a first request are limited to half of the total at most; the oldest is
        closed for the next, so that silent connections do not block others.
Rule 5: unauthenticated connections have a fair_queue of the limit, and each peer address a smaller
        one. Above it, the peer's longest idle connection is closed; if none is idle, its new
        connection is. Other peers are not affected.
Rule 6: a failure of one connection ends that connection; no peer can end the host.
Rule 7: when the machine lacks resources for another connection, accepting pauses, and clients wait
        in the backlog. Only the loss of the listening socket ends accepting.
"""

import errno
import logging
import socket
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

from holon.http.exchange import Answerer, Peer, SocketKind
from holon.http.server.connection import AuthCheck, Connection, FairQueue, never_authenticated
from holon.model.limits import (
    HTTP_ACCEPT_PAUSE_MS,
    HTTP_CONNECTIONS_COUNT_MAX,
    HTTP_UNAUTHENTICATED_PER_PEER_COUNT_MAX,
    HTTP_WITHOUT_REQUEST_COUNT_MAX,
)
from holon.ports.clock import Clock

_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid

# These mean that the listening socket is closed. Every other error of accept is temporary.
_GONE: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})


async def accepted(listening: socket.socket) -> socket.socket:
    """Wait for the next connection; OSError as accept raises it."""
    while True:
        try:
            connected, _ = listening.accept()
        except BlockingIOError:
            await anyio.wait_readable(listening)
        else:
            return connected


class SocketStream(ByteStream):
    """Reads and writes one connected socket, which it closes."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self.socket: Final = connected

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        """Wait for bytes; raise EndOfStream at the end."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = self.socket.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self.socket)
            except OSError as broken:
                raise anyio.BrokenResourceError from broken
            else:
                if not data:
                    raise anyio.EndOfStream
                return data

    async def send(self, item: bytes) -> None:
        """Send all bytes."""
        rest = memoryview(item)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.socket)
            except OSError as broken:
                raise anyio.BrokenResourceError from broken

    async def send_eof(self) -> None:
        """Shut down the sending side."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as broken:
            raise anyio.BrokenResourceError from broken

    async def aclose(self) -> None:
        """Close the socket."""
        self.socket.close()


_log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class Listeners:
    """Serves an answerer on sockets that are already bound and listening."""

    answer: Answerer
    clock: Clock
    connections_max: int = HTTP_CONNECTIONS_COUNT_MAX  # by each socket
    is_authenticated: AuthCheck = never_authenticated
    _pools: list["_ConnectionPool"] = field(default_factory=list)
    _fair_queue: FairQueue = field(default_factory=FairQueue)
    _ends_streams: bool = False

    @property
    def open_count(self) -> int:
        """The number of open connections."""
        return sum(len(pool) for pool in self._pools)

    def end_streams(self) -> None:
        """End the body of every stream, current and future."""
        self._ends_streams = True
        for pool in self._pools:
            pool.end_streams()

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept on all of them until cancelled."""
        async with anyio.create_task_group() as accepting:
            accepting.start_soon(self._fair_queue.run)
            for bound in sockets:
                pool = _ConnectionPool(self.connections_max)
                self._pools.append(pool)
                accepting.start_soon(self._accept_on, bound, pool)

    async def _accept_on(self, bound: socket.socket, pool: "_ConnectionPool") -> None:
        is_paused = False
        async with anyio.create_task_group() as serving:
            while True:
                try:
                    connected = await accepted(bound)
                except OSError as error:
                    if error.errno in _GONE:
                        raise
                    if not is_paused:
                        _log.warning("accepting connections is paused: %s", error.strerror)
                    is_paused = True
                    await self.clock.sleep_for(HTTP_ACCEPT_PAUSE_MS)
                else:
                    is_paused = False
                    serving.start_soon(self._serve_one, connected, pool)
                    await checkpoint()  # an evicted connection closes before the next is accepted

    async def _serve_one(self, connected: socket.socket, pool: "_ConnectionPool") -> None:
        async with SocketStream(connected) as stream:
            peer = peer_of(connected)
            if peer is None or not pool.make_room(peer):
                return
            connection = Connection(
                stream,
                peer,
                self.answer,
                fair_queue=self._fair_queue,
                is_authenticated=self.is_authenticated,
            )
            if self._ends_streams:
                connection.end_stream()
            with pool.entered(connection):
                try:
                    await connection.serve()
                except Exception:  # noqa: BLE001 - named boundary: a bug ends one connection
                    _log.exception("the connection from %s failed", connection.peer.address)


class _ConnectionPool:
    """The open connections of one socket, oldest first."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._silent_max = min(HTTP_WITHOUT_REQUEST_COUNT_MAX, count_max // 2)
        self._of_peer_max = min(HTTP_UNAUTHENTICATED_PER_PEER_COUNT_MAX, max(1, count_max // 2))
        self._open: OrderedDict[Connection, anyio.CancelScope] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def end_streams(self) -> None:
        for connection in self._open:
            connection.end_stream()

    def make_room(self, peer: Peer) -> bool:
        """Make room for one connection, evicting the longest idle if needed; False if none is."""
        if peer.socket_kind is SocketKind.TCP:
            same = [each for each in self._unauthenticated() if each.peer.address == peer.address]
            if len(same) >= self._of_peer_max:
                return self._evict_idle(same)
        if len(self._open) < self._count_max:
            return True
        return self._evict_idle(list(self._open))

    def _unauthenticated(self) -> Iterator[Connection]:
        return (each for each in self._open if each.is_unauthenticated)

    def _evict_idle(self, candidates: Sequence[Connection]) -> bool:
        rests = ((each.resting_since_s, each) for each in candidates)
        resting = [(since_s, each) for since_s, each in rests if since_s is not None]
        if not resting:
            return False
        _, longest = min(resting, key=lambda rest: rest[0])
        self._evict(longest)
        return True

    @contextmanager
    def entered(self, connection: Connection) -> Iterator[None]:
        """Hold a connection in the pool while the block runs; eviction cancels the block."""
        self._evict_silent()
        with anyio.CancelScope() as scope:
            self._open[connection] = scope
            try:
                yield
            finally:
                self._open.pop(connection, None)

    def _evict_silent(self) -> None:
        silent = [connection for connection in self._open if not connection.has_requested]
        for connection in silent[: max(0, len(silent) - self._silent_max + 1)]:
            self._evict(connection)

    def _evict(self, connection: Connection) -> None:
        self._open.pop(connection).cancel()  # it closes at the next checkpoint and no longer counts


def peer_of(connected: socket.socket) -> Peer | None:
    """Return the peer's identity, or None if it has already disconnected."""
    if connected.family == socket.AF_UNIX:
        packed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(packed)
        return Peer(socket_kind=SocketKind.UNIX, address=f"uid:{uid}", uid=uid, pid=pid)
    try:
        host, *_ = connected.getpeername()
    except OSError:
        return None
    return Peer(socket_kind=SocketKind.TCP, address=str(host))
