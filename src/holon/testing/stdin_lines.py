"""Lines from standard input, on the event loop, without ever blocking it.

Owns:  the thread that reads. It is a daemon and holds no lock, so it never keeps a process alive.
Rule 1: a line that is too long comes out as an error in its place; the lines after it are whole.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from holon.model.errors import BadSyntaxError

LINE_BYTES_MAX: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 65_536
_STDIN: Final = 0

Line: TypeAlias = bytes | BadSyntaxError


def stdin_lines() -> MemoryObjectReceiveStream[Line]:
    """Return the lines of stdin as they come; the stream ends when the input does."""
    sending, receiving = anyio.create_memory_object_stream[Line](float("inf"))
    loop = asyncio.get_running_loop()

    def pump() -> None:
        # A loop that is gone took everyone with it who could have been told.
        with contextlib.suppress(RuntimeError):
            for line in _split(_chunks()):
                loop.call_soon_threadsafe(sending.send_nowait, line)
            loop.call_soon_threadsafe(sending.close)

    threading.Thread(target=pump, name="holon-stdin", daemon=True).start()
    return receiving


def _chunks() -> Iterator[bytes]:
    while chunk := os.read(_STDIN, _CHUNK_BYTES):
        yield chunk


def _split(chunks: Iterator[bytes]) -> Iterator[Line]:
    """Yield whole lines; what follows the last newline is not a line and is left out."""
    pending = b""
    is_skipping = False
    for chunk in chunks:
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            if not is_skipping and line.strip():
                yield line
            is_skipping = False
        if len(pending) > LINE_BYTES_MAX:
            if not is_skipping:
                yield BadSyntaxError(f"a line is longer than {LINE_BYTES_MAX} bytes")
            pending, is_skipping = b"", True
