"""A bounded least-recently-used map.

Owns:  the one cache for values that can be computed again at a cost.
Rule 1: it is bounded by count, by size, or by both. A value larger than the bound is not kept.
Rule 2: `put`, `get` and `pop` count as a use, `peek` and `in` do not.
Rule 3: threads may share an instance that has no size bound if they only put and peek.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Lru(Generic[Key, Value]):
    """Keeps at most `count_max` values, of at most `size_max` together."""

    def __init__(
        self,
        count_max: float = math.inf,
        *,
        size_max: float = math.inf,
    ) -> None:
        self._count_max = count_max
        self._size_max = size_max
        self._rows: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def peek(self, key: Key) -> Value | None:
        """Return a value without counting that as a use."""
        row = self._rows.get(key)
        return None if row is None else row[0]

    def get(self, key: Key) -> Value | None:
        """Return a value and keep it for longer."""
        row = self._rows.get(key)
        if row is None:
            return None
        self._rows.move_to_end(key)
        return row[0]

    def pop(self, key: Key) -> Value | None:
        """Take a value out."""
        row = self._rows.pop(key, None)
        if row is None:
            return None
        self._size -= row[1]
        return row[0]

    def put(self, key: Key, value: Value, size: int = 0) -> list[Key]:
        """Keep a value, and return the keys that are forgotten for it."""
        self.pop(key)
        self._rows[key] = (value, size)
        self._size += size
        forgotten: list[Key] = []
        while self._rows and (len(self._rows) > self._count_max or self._size > self._size_max):
            oldest, (_, gone) = self._rows.popitem(last=False)
            self._size -= gone
            forgotten.append(oldest)
        return forgotten

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._size = 0
