"""One stream of output on its way to its file, and the file that holds both streams of a command.

Owns:  copying from a pipe or a terminal to a file, never more than the cap, and the combined file.
Rule 1: what does not fit is read and thrown away, so that a command is ended by us and not by a
        pipe that is not emptied; nothing beyond the cap ever reaches the disk.
        What the disk will not take is thrown away as well, and told apart from the cap.
Rule 2: a combined file is made with the first byte of the second stream: until then the file of the
        first stream holds everything. It holds what the streams have on disk and nothing else, so
        their caps bound it. Where the disk will not take it, it is removed; the streams go on.
Rule 3: this module is loaded by the fork server, which sees the standard library only.
"""

import errno
import os
import time
from contextlib import suppress
from typing import Final

CHUNK_BYTES: Final = 64 * 1024
PIPE_CHUNKS_COUNT_MAX: Final = 64  # more than a pipe or a terminal can hold
# Readable, since the combined file begins with what the first stream has written so far.
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class CombinedFile:
    """Both streams of a command in the order they came, once there are two."""

    def __init__(self, path: str, *, streams_count: int) -> None:
        self._path = path
        self._open_count = streams_count
        self._file: int | None = None
        self._first: int | None = None  # our own handle of the only file there is so far
        self._first_path: str | None = None
        self._is_given_up = False

    def take(self, data: memoryview, *, path: str, file: int) -> None:
        """Add what a stream has just written to its file."""
        if self._is_given_up or not data:
            return
        try:
            if self._first_path is None:
                self._first, self._first_path = os.dup(file), path
            if self._file is None:
                if path == self._first_path:
                    return
                self._begin()
            self._append(data)
        except OSError:
            self._give_up()

    def stream_ended(self) -> None:
        """Give back the handles once no stream is left."""
        self._open_count -= 1
        if self._open_count == 0:
            self._close()

    def _close(self) -> None:
        for file in (self._file, self._first):
            if file is not None:
                os.close(file)
        self._file = self._first = None
        self._is_given_up = True

    def _begin(self) -> None:
        self._file = os.open(self._path, _CREATE, 0o600)
        offset = 0
        while self._first is not None and (chunk := os.pread(self._first, CHUNK_BYTES, offset)):
            self._append(memoryview(chunk))
            offset += len(chunk)

    def _append(self, data: memoryview) -> None:
        while data and self._file is not None:
            data = data[os.write(self._file, data) :]

    def _give_up(self) -> None:
        was_ours = self._file is not None
        self._close()
        if was_ours:
            with suppress(OSError):
                os.unlink(self._path)


class OutputSink:
    """Where one stream ends up."""

    def __init__(self, path: str, *, bytes_max: int, combined: CombinedFile | None = None) -> None:
        self._path = path
        self._combined = combined
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
        """Copy what was left in a stream that is not written to any more."""
        for _ in range(PIPE_CHUNKS_COUNT_MAX):
            if not self.take(source):
                return

    def close(self) -> None:
        """Give back the file."""
        if self._file is not None:
            os.close(self._file)
        if self._combined is not None:
            self._combined.stream_ended()

    def _write(self, chunk: bytes) -> None:
        if len(chunk) > self._room and not self.is_lost:
            self.is_full = True
        kept = memoryview(chunk)[: self._room]
        self._room -= len(kept)
        rest = kept
        try:
            if self._file is None:
                self._file = os.open(self._path, _CREATE, 0o600)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:  # the disk has a cap of its own, or the folder is gone
            self._room, self.is_lost = 0, not self.is_full
        if self._combined is not None and self._file is not None:
            written = kept[: len(kept) - len(rest)]
            self._combined.take(written, path=self._path, file=self._file)
