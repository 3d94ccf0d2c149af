"""A regular look at what the store lies on.

Owns:  when it is looked at, and the journal's lines about what is found.
Rule 1: a database that was exchanged or removed ends the host at once, also when nothing is
        committed meanwhile.
Rule 2: what the store gets over by itself is told once when it begins, and once when it is over.
"""

from contextlib import suppress
from typing import NoReturn

from holon.model.errors import StoreFullError
from holon.model.limits import STORE_LOOK_MS
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.ports.store import Store


async def watch_store(store: Store, clock: Clock, journal: Journal) -> NoReturn:
    """Look for ever; raises StoreBrokenError when the store can no longer be relied on."""
    told: dict[str, str] = {}
    while True:
        await clock.sleep_for(STORE_LOOK_MS)
        with suppress(StoreFullError):  # it is among the problems
            await store.look()
        found = {problem.code: problem.message for problem in store.problems}
        for code in found.keys() - told.keys():
            journal.note(code, found[code], level=LogLevel.WARNING)
        for code in told.keys() - found.keys():
            journal.note(f"{code}_over", f"it is over: {told[code]}")
        told = found
