"""The sockets a server listens on, and the connections it lets in.

Owns:  accepting, who the kernel says is at the other end, and how many may be there at once.
Rule 1: connections that have not asked for anything are few: the oldest of them makes room for the
        next, so that nobody keeps others out by being silent.
Rule 2: over the total the newcomer is closed at once.
Rule 3: whatever goes wrong with one connection ends that one; nobody can end the host from outside.
"""

import logging
import socket
import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from holon.http.connection import Connection
from holon.http.exchange import Answerer, Door, Peer
from holon.model.limits import HTTP_CONNECTIONS_COUNT_MAX, HTTP_HEADLESS_COUNT_MAX

_log = logging.getLogger(__name__)
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


@dataclass(kw_only=True, slots=True)
class Listeners:
    """Serves an answerer on sockets that are already bound and listening."""

    answer: Answerer
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
                listener = await SocketListener.from_socket(bound)
                accepting.start_soon(listener.serve, self._serve_one)

    async def _serve_one(self, stream: SocketStream) -> None:
        async with stream:
            if len(self._open) >= self.connections_max:
                return
            self._make_room()
            connection = Connection(stream, peer_of(stream), self.answer)
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


def peer_of(stream: SocketStream) -> Peer:
    """Who is at the other end of a stream."""
    raw = stream.extra(SocketAttribute.raw_socket)
    if raw.family != socket.AF_UNIX:
        return Peer(door=Door.TCP, address=str(stream.extra(SocketAttribute.remote_address)[0]))
    packed = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(packed)
    return Peer(door=Door.UNIX, address=f"uid:{uid}", uid=uid, pid=pid)
