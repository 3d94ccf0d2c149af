"""Where a home keeps what a runtime shares with those who look for it.

Owns:  the names of the files under `<home>/run`. A command that only wants to call pays for no
       more than this.
"""

from pathlib import Path
from typing import Final

RUN_FOLDER: Final = "run"


class RunPaths:
    """The places of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / RUN_FOLDER
        self.socket = self.folder / "holon.sock"
        self.token = self.folder / "token"
        self.pid = self.folder / "holon.pid"  # the number of the process, for scripts
        self.record = self.folder / "daemon.json"  # the record of the process, for us
        self.log = self.folder / "daemon.log"  # what a runtime in the background prints
        self.startup_failure = self.folder / "startup_failure.json"
        self.shutdown_failure = self.folder / "shutdown_failure.json"
