"""All of the program in memory, for a service that outlives the files it was started from.

Owns:  loading what a service has not needed yet.
Rule 1: an upgrade replaces files under a running service. A part that was loaded only then would be
        of another version than the rest, so everything is loaded while the files are still ours.
Rule 2: that waits until the service has long been ready, and takes place on a thread of its own:
        nobody waits for what nobody has asked for.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Final

import anyio.to_thread

import holon
from holon.model.limits import MINUTE_MS
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel

LOAD_AFTER_MS: Final = MINUTE_MS
_OTHERS: Final = (
    *("holon.cli", "holon.client", "holon.daemon", "holon.testing", "holon.__main__"),
    "holon.adapters.telemetry",  # needs packages that may be missing; is loaded at once or never
)


async def load_the_rest(clock: Clock, journal: Journal) -> None:
    """Wait a while, then load what is not loaded yet."""
    await clock.sleep_for(LOAD_AFTER_MS)
    broken = await anyio.to_thread.run_sync(load_whole_program, abandon_on_cancel=True)
    for name, why in broken.items():
        journal.note("not_loaded", f"{name} cannot be loaded: {why}", level=LogLevel.WARNING)


def load_whole_program() -> dict[str, str]:
    """Load every module a service may need; return those that cannot be, and why."""
    broken: dict[str, str] = {}
    for name in names_of_a_service():
        try:
            importlib.import_module(name)
        except ImportError as error:
            broken[name] = str(error)
    return broken


def names_of_a_service() -> Iterator[str]:
    """Name every module a service may come to need."""
    for found in pkgutil.walk_packages(holon.__path__, f"{holon.__name__}.", onerror=_no_matter):
        if not found.name.startswith(_OTHERS):
            yield found.name


def _no_matter(name: str) -> None:
    """Let a package that cannot be loaded be told by whoever loads it."""
    del name
