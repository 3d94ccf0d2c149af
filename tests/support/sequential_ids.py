"""Readable ids for failing tests: `msg_1`, `turn_2`.

Owns:  the test kit's id source.
Rule 1: one counter per prefix, so that an id tells how many of its kind came before.
Rule 2: `SequentialIds(after=old.highest)` continues where a crashed world stopped: no id twice.
"""

from collections import Counter

from holon.model.values import IdPrefix


class SequentialIds:
    """Counts up from `after` for each kind of id."""

    def __init__(self, *, after: int = 0) -> None:
        self._after = after
        self._counts: Counter[IdPrefix] = Counter()

    @property
    def highest(self) -> int:
        """The greatest number handed out so far, over all kinds."""
        return self._after + max(self._counts.values(), default=0)

    def fresh(self, prefix: IdPrefix) -> str:
        """Return the next id of this kind."""
        self._counts[prefix] += 1
        return f"{prefix}_{self._after + self._counts[prefix]}"
