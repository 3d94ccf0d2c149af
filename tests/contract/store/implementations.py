"""The implementations of the store that keep the contract.

Owns:  how each of them is opened. Another one is added by its line in IMPLEMENTATIONS.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from holon.adapters.sqlite.store import open_store
from holon.ports.store import Store
from tests.support.builders import START
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store

Opener: TypeAlias = Callable[[], Store]  # opens one home as often as called, one after the other


def _sqlite_with_a_writer_thread(folder: Path) -> Opener:
    return lambda: open_store(folder)


def _sqlite_in_memory(folder: Path) -> Opener:
    del folder
    shared = memory_connection()
    return lambda: memory_store(shared, InlineWriter(shared, ManualClock(START), NoFaults()))


IMPLEMENTATIONS: Final[dict[str, Callable[[Path], Opener]]] = {
    "sqlite with a writer thread": _sqlite_with_a_writer_thread,
    "sqlite in memory, inline": _sqlite_in_memory,
}
