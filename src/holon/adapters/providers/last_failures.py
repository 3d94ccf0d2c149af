"""The latest failure of each provider, in a file for other processes to read.

Owns:  `<home>/state/provider_failures.json`.
Rule 1: the file is best effort: a missing or damaged one counts as empty.
Rule 2: summaries are written as given; the caller has redacted them.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec

from holon.adapters.system.private_file import FileUnusableError, read_bounded, replace_file
from holon.model.limits import CONFIG_FILE_BYTES_MAX
from holon.runtime.providers.gate import LastFailure

_log = logging.getLogger(__name__)


def failures_path(home: Path) -> Path:
    """Return where a home keeps them."""
    return home / "state" / "provider_failures.json"


def read_failures(home: Path) -> Mapping[str, LastFailure]:
    """Return the latest failure of each provider that has one."""
    try:
        file = read_bounded(failures_path(home), bytes_max=CONFIG_FILE_BYTES_MAX)
        if file is None:
            return {}
        return msgspec.json.decode(file.content, type=dict[str, LastFailure])
    except (FileUnusableError, msgspec.MsgspecError):
        return {}


def write_failures(home: Path, failures: Mapping[str, LastFailure]) -> None:
    """Put a new version in place, or raise FileUnusableError."""
    replace_file(failures_path(home), msgspec.json.encode(failures))


class LastFailureLog:
    """Keeps the file up to date while a host runs, off its event loop."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._known = dict(read_failures(home))
        self._news = anyio.Event()

    def take(self, provider: str, failure: LastFailure) -> None:
        """Record a provider's latest failure; it is written soon."""
        self._known[provider] = failure
        self._news.set()

    async def keep(self) -> None:
        """Write on every change, until cancelled."""
        while True:
            await self._news.wait()
            await self.write()

    async def write(self) -> None:
        """Write pending changes. A failure to write is logged and does not stop the host."""
        if not self._news.is_set():
            return
        self._news = anyio.Event()
        try:
            await anyio.to_thread.run_sync(write_failures, self._home, dict(self._known))
        except FileUnusableError as error:
            _log.warning("the notes about provider failures could not be written: %s", error)
