"""One stream of output on its way to its file.

Owns:  copying from a pipe or a terminal to a file, never more than the cap.
Rule 1: what does not fit is read and thrown away, so that a command is ended by us and not by a
        pipe that nobody empties; nothing beyond the cap ever reaches the disk.
        What the disk will not take is thrown away as well, and told apart from the cap.
Rule 2: this module is loaded by the fork server, which sees the standard library only.
"""

import errno
import os
import time
from typing import Final

CHUNK_BYTES: Final = 64 * 1024
PIPE_CHUNKS_COUNT_MAX: Final = 64  # more than a pipe or a terminal can hold
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class OutputSink:
    """Where one stream ends up."""

    def __init__(self, path: str, *, bytes_max: int) -> None:
        self._path = path
        self._file: int | None = None
        self._room = bytes_max
        self.is_full = False
        self.is_lost = False  # the disk did not take what was within the cap
        self.heard_s = time.monotonic()

    def take(self, source: int) -> int | None:
        """Copy what is there, one chunk at most: 0 at the end of the stream, None when it waits."""
        try:
            chunk = os.read(source, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that everybody has left
                raise
            return 0
        if chunk:
            self.heard_s = time.monotonic()
            self._write(chunk)
        return len(chunk)

    def drain(self, source: int) -> None:
        """Copy what was left in a stream that nobody writes to any more."""
        for _ in range(PIPE_CHUNKS_COUNT_MAX):
            if not self.take(source):
                return

    def close(self) -> None:
        """Give back the file."""
        if self._file is not None:
            os.close(self._file)

    def _write(self, chunk: bytes) -> None:
        if len(chunk) > self._room and not self.is_lost:
            self.is_full = True
        rest = memoryview(chunk)[: self._room]
        self._room -= len(rest)
        try:
            if self._file is None:
                self._file = os.open(self._path, _CREATE, 0o600)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:  # the disk has a cap of its own, or the folder is gone
            self._room, self.is_lost = 0, not self.is_full
