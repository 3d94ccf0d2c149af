"""The sockets a server listens on, and the connections it lets in.

Owns:  receiving, sending and accepting on sockets that do not block, for either door alike;
       accepting, who the kernel says is at the other end, and how many may be there at once.
Rule 1: a wait that is given up in the very moment the socket becomes ready is given up quietly. The
        streams of anyio log a traceback then, which tells of nothing that is wrong.
Rule 2: whoever sends without end lets others have their turn: receiving always does.
Rule 3: each socket has room for so many and no more, so that a crowd at one door keeps nobody out
        of the other. Over that, whoever has asked for nothing the longest makes room: a place is
        had by asking, not by having asked. Where all are being answered, the newcomer is closed.
Rule 4: connections that have not asked for anything are few, and never more than half: the oldest
        of them makes room for the next, so that nobody keeps others out by being silent.
Rule 5: those who have not shown who they are have a share of the room, and each peer among them a
        smaller one. Over it, the connection of that peer that has rested the longest makes room for
        its next; where none of them rests, the next is closed. Other peers notice nothing.
Rule 6: whatever goes wrong with one connection ends that one; no peer can end the host.
Rule 7: a machine that has nothing left for another connection is waited for; whoever knocks
        meanwhile stays in line. Only a listening socket that is gone ends the listening.
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

from holon.http.exchange import Answerer, Door, Peer
from holon.http.server.connection import Connection, FairShare, Knows, nobody_known
from holon.model.limits import (
    HTTP_ACCEPT_PAUSE_MS,
    HTTP_CONNECTIONS_COUNT_MAX,
    HTTP_UNAUTHENTICATED_PER_PEER_COUNT_MAX,
    HTTP_WITHOUT_REQUEST_COUNT_MAX,
)
from holon.ports.clock import Clock


async def accepted(listening: socket.socket) -> socket.socket:
    """Wait for the next connection, or raise what the kernel says."""
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
        """Wait for bytes; their end is EndOfStream."""
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
        """Return once the kernel has taken them all."""
        rest = memoryview(item)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.socket)
            except OSError as broken:
                raise anyio.BrokenResourceError from broken

    async def send_eof(self) -> None:
        """Say that no more comes."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as broken:
            raise anyio.BrokenResourceError from broken

    async def aclose(self) -> None:
        """Give the socket back."""
        self.socket.close()


_log = logging.getLogger(__name__)
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
# Said of the listening socket itself. Whatever else accepting meets is of the moment.
_GONE: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})


@dataclass(kw_only=True, slots=True)
class Listeners:
    """Serves an answerer on sockets that are already bound and listening."""

    answer: Answerer
    clock: Clock
    connections_max: int = HTTP_CONNECTIONS_COUNT_MAX  # by each socket
    knows: Knows = nobody_known
    _rooms: list["_Room"] = field(default_factory=list)
    _share: FairShare = field(default_factory=FairShare)
    _ends_streams: bool = False

    @property
    def open_count(self) -> int:
        """How many connections there are."""
        return sum(len(room) for room in self._rooms)

    def end_streams(self) -> None:
        """Have every stream end its body, and those that would begin from now on."""
        self._ends_streams = True
        for room in self._rooms:
            room.end_streams()

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept on all of them until cancelled."""
        async with anyio.create_task_group() as accepting:
            accepting.start_soon(self._share.run)
            for bound in sockets:
                room = _Room(self.connections_max)
                self._rooms.append(room)
                accepting.start_soon(self._accept_on, bound, room)

    async def _accept_on(self, bound: socket.socket, room: "_Room") -> None:
        is_hindered = False
        async with anyio.create_task_group() as serving:
            while True:
                try:
                    connected = await accepted(bound)
                except OSError as error:
                    if error.errno in _GONE:
                        raise
                    if not is_hindered:
                        _log.warning("connections have to wait: %s", error.strerror)
                    is_hindered = True
                    await self.clock.sleep_for(HTTP_ACCEPT_PAUSE_MS)
                else:
                    is_hindered = False
                    serving.start_soon(self._serve_one, connected, room)
                    await checkpoint()  # who has to go for it is gone before the next one is let in

    async def _serve_one(self, connected: socket.socket, room: "_Room") -> None:
        async with SocketStream(connected) as stream:
            peer = peer_of(connected)
            if peer is None or not room.make_place(peer):
                return
            connection = Connection(stream, peer, self.answer, share=self._share, knows=self.knows)
            if self._ends_streams:
                connection.end_stream()
            with room.entered(connection):
                try:
                    await connection.serve()
                except Exception:  # noqa: BLE001 - named boundary: a bug ends one connection
                    _log.exception("a connection from %s broke off", connection.peer.address)


class _Room:
    """Those who came in by one socket, the oldest first."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._silent_max = min(HTTP_WITHOUT_REQUEST_COUNT_MAX, count_max // 2)
        self._of_peer_max = min(HTTP_UNAUTHENTICATED_PER_PEER_COUNT_MAX, max(1, count_max // 2))
        self._within: OrderedDict[Connection, anyio.CancelScope] = OrderedDict()

    def __len__(self) -> int:
        return len(self._within)

    def end_streams(self) -> None:
        for connection in self._within:
            connection.end_stream()

    def make_place(self, peer: Peer) -> bool:
        """Make room for one more, if need be by who has rested the longest; False when none is."""
        if peer.door is Door.TCP:
            same = [each for each in self._strangers() if each.peer.address == peer.address]
            if len(same) >= self._of_peer_max:
                return self._make_one_go(same)
        if len(self._within) < self._count_max:
            return True
        return self._make_one_go(list(self._within))

    def _strangers(self) -> Iterator[Connection]:
        return (each for each in self._within if each.is_stranger)

    def _make_one_go(self, candidates: Sequence[Connection]) -> bool:
        rests = ((each.resting_since_s, each) for each in candidates)
        resting = [(since_s, each) for since_s, each in rests if since_s is not None]
        if not resting:
            return False
        _, longest = min(resting, key=lambda rest: rest[0])
        self._show_out(longest)
        return True

    @contextmanager
    def entered(self, connection: Connection) -> Iterator[None]:
        """Have a connection in here for as long as the block lasts, or until it has to go."""
        self._show_out_the_silent()
        with anyio.CancelScope() as scope:
            self._within[connection] = scope
            try:
                yield
            finally:
                self._within.pop(connection, None)

    def _show_out_the_silent(self) -> None:
        silent = [connection for connection in self._within if not connection.asked]
        for connection in silent[: max(0, len(silent) - self._silent_max + 1)]:
            self._show_out(connection)

    def _show_out(self, connection: Connection) -> None:
        self._within.pop(connection).cancel()  # it is gone in a moment, and counts no more


def peer_of(connected: socket.socket) -> Peer | None:
    """Who is at the other end; nobody when they have left already."""
    if connected.family == socket.AF_UNIX:
        packed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(packed)
        return Peer(door=Door.UNIX, address=f"uid:{uid}", uid=uid, pid=pid)
    try:
        host, *_ = connected.getpeername()
    except OSError:
        return None
    return Peer(door=Door.TCP, address=str(host))
