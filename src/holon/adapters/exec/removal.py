"""Removing the folders of commands whose results are known, without keeping anybody waiting.

Owns:  folders that are forgotten but still there. They have a name no run can have, so that a run
       is gone for everybody as soon as it is forgotten.
Rule 1: the disk may take longer to remove a folder than a command took to run, so that is done on a
        thread of its own, started with the first folder. It does so now and then, for all that
        have gathered: removing one while the next is made keeps the next one waiting.
Rule 2: a command may have put folders into its own, however deep: they go as well.
Rule 3: what a runtime that was killed left behind is removed by the next one that forgets a run.
"""

import contextlib
import os
import queue
import shutil
import threading
from pathlib import Path
from typing import Final

from holon.adapters.exec.run_folder import RunFolder

FORGOTTEN: Final = ".forgotten_"
GATHER_S: Final = 1.0


class Removal:
    """Removes run folders under one root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: queue.SimpleQueue[RunFolder | None] = queue.SimpleQueue()
        self._is_closing = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, folder: RunFolder) -> None:
        """Make a folder disappear at once; its files go a little later."""
        gone = f"{self._root}/{FORGOTTEN}{os.path.basename(folder.path)}"
        try:
            os.rename(folder.path, gone)
        except FileNotFoundError:
            return
        except OSError:  # a namesake that was left behind, or a disk that takes no new names
            _remove(folder)  # on a read-only disk it stays, for retention
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="holon-removal", daemon=True)
            self._thread.start()
        self._waiting.put(RunFolder(gone))

    def close(self) -> None:
        """Return once everything that was taken is removed."""
        if self._thread is not None:
            self._is_closing.set()
            self._waiting.put(None)
            self._thread.join()
            self._thread = None
            self._is_closing.clear()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            for name in os.listdir(self._root):
                if name.startswith(FORGOTTEN):
                    _remove(RunFolder(self._root / name))
        is_first = True
        while (folder := self._waiting.get()) is not None:
            if is_first:
                self._is_closing.wait(GATHER_S)
            _remove(folder)
            is_first = self._waiting.empty()


def _remove(folder: RunFolder) -> None:
    """Remove a folder as far as that can be done; the next runtime tries again."""
    try:
        folder.remove()
    except OSError:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder.path, ignore_errors=True)
