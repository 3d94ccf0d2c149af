"""The sockets a server listens on, and the connections it lets in.

Owns:  accepting, who the kernel says is at the other end, and how many may be there at once.
Rule 1: connections that have not asked for anything are few: the oldest of them makes room for the
        next, so that nobody keeps others out by being silent.
Rule 2: over the total the newcomer is closed at once.
Rule 3: whatever goes wrong with one connection ends that one; nobody can end the host from outside.
Rule 4: a machine that has nothing left for another connection is waited for; whoever knocks
        meanwhile stays in line. Only a listening socket that is gone ends the listening.
"""

import errno
import logging
import socket
import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio

from holon.http.connection import Connection
from holon.http.exchange import Answerer, Door, Peer
from holon.http.socket_stream import SocketStream, accepted
from holon.model.limits import (
    HTTP_ACCEPT_PAUSE_MS,
    HTTP_CONNECTIONS_COUNT_MAX,
    HTTP_HEADLESS_COUNT_MAX,
)
from holon.ports.clock import Clock

_log = logging.getLogger(__name__)
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
# Said of the listening socket itself. Whatever else accepting meets is of the moment.
_GONE: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})


@dataclass(kw_only=True, slots=True)
class Listeners:
    """Serves an answerer on sockets that are already bound and listening."""

    answer: Answerer
    clock: Clock
    connections_max: int = HTTP_CONNECTIONS_COUNT_MAX
    headless_max: int = HTTP_HEADLESS_COUNT_MAX
    _open: OrderedDict[Connection, anyio.CancelScope] = field(default_factory=OrderedDict)

    @property
    def open_count(self) -> int:
        """How many connections there are."""
        return len(self._open)

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Accept on all of them until cancelled."""
        async with anyio.create_task_group() as accepting:
            for bound in sockets:
                accepting.start_soon(self._accept_on, bound)

    async def _accept_on(self, bound: socket.socket) -> None:
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
                    serving.start_soon(self._serve_one, connected)

    async def _serve_one(self, connected: socket.socket) -> None:
        async with SocketStream(connected) as stream:
            if len(self._open) >= self.connections_max:
                return
            peer = peer_of(connected)
            if peer is None:
                return
            self._make_room()
            connection = Connection(stream, peer, self.answer)
            with anyio.CancelScope() as scope:
                self._open[connection] = scope
                try:
                    await connection.serve()
                except Exception:  # noqa: BLE001 - named boundary: a bug ends one connection
                    _log.exception("a connection from %s broke off", connection.peer.address)
                finally:
                    del self._open[connection]

    def _make_room(self) -> None:
        silent = [scope for connection, scope in self._open.items() if not connection.asked]
        if len(silent) >= self.headless_max:
            silent[0].cancel()


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
