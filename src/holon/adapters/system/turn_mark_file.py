"""The mark of the running turn, in a file of the home.

Owns:  `<home>/run/turn`: one line, the id of a turn, or blanks.
Rule 1: it is written in place, at one length, by one system call: a killed process leaves the old
        line or the new one. The page cache keeps it for the next process; nothing is synced.
Rule 2: it belongs to the holder of the home's lock, and is read and cleared when opened, so one
        crash is counted once.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from holon.model.limits import ID_CHARS_MAX
from holon.model.values import RECORD_ID_PATTERN, TurnId

FILE_NAME: Final = "turn"
_BLANK: Final = b" " * ID_CHARS_MAX + b"\n"


class TurnMarkFile:
    """The mark of one home, while its process lives."""

    def __init__(self, home: Path) -> None:
        self._file = -1
        self._left_by: TurnId | None = None
        path = home / "run" / FILE_NAME
        with contextlib.suppress(OSError):  # without a mark everything else goes on
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
            self._left_by = _turn_in(os.pread(self._file, len(_BLANK), 0))
        self._write(_BLANK)

    @property
    def left_by(self) -> TurnId | None:
        """The turn that had the processor when the process before this one ended, if one had."""
        return self._left_by

    def enter(self, turn_id: TurnId) -> None:
        """Say that this turn has the processor."""
        self._write(turn_id.encode("ascii", "replace").ljust(len(_BLANK) - 1) + b"\n")

    def leave(self) -> None:
        """Say that no turn has it any more."""
        self._write(_BLANK)

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _write(self, line: bytes) -> None:
        if self._file < 0:
            return
        try:
            os.pwrite(self._file, line, 0)
        except OSError:  # a full disk: a mark that may be wrong is worse than none
            self.close()


def _turn_in(line: bytes) -> TurnId | None:
    if not line.endswith(b"\n"):  # longer than any mark, or nothing
        return None
    text = line.decode("ascii", "replace").strip()
    return TurnId(text) if RECORD_ID_PATTERN.fullmatch(text) else None
