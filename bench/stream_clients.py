"""Clients of an event stream: some read, some do not.

Owns:  a reader that notes the number of every event it gets and forgets the rest, and a client that
       asks for a stream and never reads. How the latter is cut off is seen without reading either.
"""

import asyncio
import fcntl
import re
import select
import socket
import sys
import termios
import time
from pathlib import Path
from typing import Final, Self

from bench.served import Served

_ID: Final = re.compile(rb"\nid: (\d+)(?=\n)")
_STALLED_BUFFER_BYTES: Final = 4_096
_ESTABLISHED: Final = "01"


def request(service: Served, path: str) -> bytes:
    """Return the request for a stream."""
    head = f"host: 127.0.0.1:{service.port}\r\nauthorization: Bearer {service.token}\r\n"
    return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()


class ReadingClient(asyncio.Protocol):
    """Reads as fast as it can."""

    def __init__(self, asked: bytes) -> None:
        self._asked = asked
        self._tail = b""
        self.opened = asyncio.Event()
        self.is_cut = False
        self.numbers: list[int] = []

    @classmethod
    async def follow(cls, service: Served, path: str) -> Self:
        """Return a client whose stream has begun."""
        loop = asyncio.get_running_loop()
        asked = request(service, path)
        _, client = await loop.create_connection(lambda: cls(asked), "127.0.0.1", service.port)
        await client.opened.wait()
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        """Note the numbers of the events that are whole."""
        text = self._tail + data
        whole, _, rest = text.rpartition(b"\n")
        self._tail = b"\n" + rest
        self.numbers.extend(map(int, _ID.findall(whole + b"\n")))
        if b": open" in text:
            self.opened.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Know that nothing more comes."""
        del exc
        self.is_cut = True

    @property
    def newest(self) -> int:
        """The number of the event that came last."""
        return self.numbers[-1] if self.numbers else 0

    def close(self) -> None:
        """Hang up."""
        self._transport.close()


class StalledClient:
    """Asks for a stream and reads nothing of it."""

    def __init__(self, service: Served, path: str, *, through: Path | None) -> None:
        """Ask over a socket file, or else over the network."""
        if through is None:
            self._socket = socket.socket(socket.AF_INET)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _STALLED_BUFFER_BYTES)
            self._socket.connect(("127.0.0.1", service.port))
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(through))
        self._is_tcp = through is None
        self._socket.sendall(request(service, path))
        self._waiting_bytes = 0
        self._moved_at_s = time.perf_counter()
        self.cut_after_s: float | None = None  # since the kernel last took a byte for it

    def look(self) -> None:
        """Note whether more was sent to it, or that it was cut."""
        if self.cut_after_s is not None:
            return
        now_s = time.perf_counter()
        waiting_bytes = self._sent_and_unread() if self._is_tcp else self._unread()
        if waiting_bytes is None or self._is_hung_up():
            self.cut_after_s = now_s - self._moved_at_s
        elif waiting_bytes != self._waiting_bytes:
            self._waiting_bytes, self._moved_at_s = waiting_bytes, now_s

    def _is_hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self._socket, 0)  # the end is told whatever was asked for
        return bool(poll.poll(0))

    def _unread(self) -> int:
        found = fcntl.ioctl(self._socket, termios.FIONREAD, b"\0\0\0\0")
        return int.from_bytes(found, sys.byteorder)

    def _sent_and_unread(self) -> int | None:
        """What lies here and in the service's kernel buffer; nothing once it has let go."""
        (_, theirs), (_, ours) = self._socket.getpeername(), self._socket.getsockname()
        local, remote = f":{theirs:04X}", f":{ours:04X}"
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, here, there, state, queues, *rest = line.split()
            if here.endswith(local) and there.endswith(remote):
                is_held = state == _ESTABLISHED and (rest[4] != "0" or not self._waiting_bytes)
                return int(queues.partition(":")[0], 16) + self._unread() if is_held else None
        return None

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
