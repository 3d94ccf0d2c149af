"""One accepted socket as a stream of bytes.

Owns:  receiving, sending and accepting on sockets that do not block, for either door alike.
Rule 1: a wait that is given up in the very moment the socket becomes ready is given up quietly. The
        streams of anyio log a traceback then, which tells of nothing that is wrong.
Rule 2: whoever sends without end lets others have their turn: receiving always does.
"""

import socket
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream


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
