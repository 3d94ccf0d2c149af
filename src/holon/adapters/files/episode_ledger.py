"""The episode ledger: a JSON Lines file in an agent's home.

Owns:  `.holon/ledger/context_episodes.jsonl` below an agent's home.
Rule 1: the file only grows, by whole lines; a partial line left by a killed process is removed
        before the next line is appended.
Rule 2: the path is walked without following links, because an agent may write to its own home.
"""

import os
import stat
from collections.abc import Sequence
from typing import Final

import anyio.to_thread
import msgspec

from holon.adapters.files.openat import open_beneath, open_root
from holon.model.memory.records import LEDGER_TAIL_BYTES_MAX, EpisodeRecord
from holon.model.values import EpisodeId
from holon.ports.memory import LedgerError
from holon.ports.workspaces import FileRefusedError, PathEscapeError

LEDGER_FOLDER: Final = (".holon", "ledger")
LEDGER_NAME: Final = "context_episodes.jsonl"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class _Line(msgspec.Struct):
    """What is read back of a line."""

    id: str


_LINES: Final = msgspec.json.Decoder(_Line)


class FileEpisodeLedger:
    """Ledgers on disk."""

    is_kept = True

    async def last_id(self, agent_home: str) -> EpisodeId | None:
        """Return the id of the newest episode that stands in the ledger."""
        return await anyio.to_thread.run_sync(_last_id, agent_home)

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        """Add episodes at the end, in this order."""
        lines = b"".join(msgspec.json.encode(episode) + b"\n" for episode in episodes)
        await anyio.to_thread.run_sync(_append, agent_home, lines)


def _last_id(agent_home: str) -> EpisodeId | None:
    ledger = _open(agent_home)
    if ledger is None:
        return None
    try:
        for line in reversed(_whole_lines(ledger)):
            try:
                return EpisodeId(_LINES.decode(line).id)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue  # not a line of ours
        return None
    except OSError as error:
        raise _unusable(error) from error
    finally:
        os.close(ledger)


def _append(agent_home: str, lines: bytes) -> None:
    ledger = _open(agent_home)
    if ledger is None:
        return
    try:
        end = _end_of_lines(ledger)
        os.ftruncate(ledger, end)
        os.lseek(ledger, end, os.SEEK_SET)
        left = memoryview(lines)
        while left:
            left = left[os.write(ledger, left) :]
    except OSError as error:
        raise _unusable(error) from error
    finally:
        os.close(ledger)


def _open(agent_home: str) -> int | None:
    """Open the ledger of an existing home, creating missing folders."""
    try:
        folder = _folder(agent_home)
        if folder is None:
            return None
        try:
            ledger = os.open(LEDGER_NAME, _FLAGS, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except (OSError, FileRefusedError, PathEscapeError) as error:
        raise _unusable(error) from error
    if not stat.S_ISREG(os.fstat(ledger).st_mode):
        os.close(ledger)
        raise LedgerError(f"{LEDGER_NAME} is no regular file")
    return ledger


def _folder(agent_home: str) -> int | None:
    if not os.path.isdir(agent_home):
        return None
    root = open_root(agent_home)
    try:
        for depth in range(1, len(LEDGER_FOLDER) + 1):
            _make(root, LEDGER_FOLDER[:depth])
        return open_beneath(root, LEDGER_FOLDER, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(root)


def _make(root: int, parts: tuple[str, ...]) -> None:
    above = open_beneath(root, parts[:-1], os.O_RDONLY | os.O_DIRECTORY) if parts[1:] else root
    try:
        os.mkdir(parts[-1], 0o700, dir_fd=above)
    except FileExistsError:
        return
    finally:
        if above != root:
            os.close(above)


def _whole_lines(ledger: int) -> list[bytes]:
    """Return the whole lines among the last bytes; the first of them may lack its beginning."""
    size = os.fstat(ledger).st_size
    tail = os.pread(ledger, LEDGER_TAIL_BYTES_MAX, max(0, size - LEDGER_TAIL_BYTES_MAX))
    return tail.split(b"\n")[:-1]


def _end_of_lines(ledger: int) -> int:
    size = os.fstat(ledger).st_size
    start = max(0, size - LEDGER_TAIL_BYTES_MAX)
    last_newline = os.pread(ledger, LEDGER_TAIL_BYTES_MAX, start).rfind(b"\n")
    return start + last_newline + 1 if last_newline >= 0 or start == 0 else size


def _unusable(error: Exception) -> LedgerError:
    return LedgerError(f"the ledger of episodes cannot be used: {error}")
