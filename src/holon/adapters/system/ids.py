"""Time-ordered random ids.

Owns:  the text of ids in production: prefix, 48 bits of milliseconds, 80 random bits.
Rule 1: within a process every id is greater than the one before, also within one millisecond and
        when the wall clock is set back: it is then a random step above the last.
Rule 2: the digits are lower-case and leave out i, l, o and u, which people misread.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from holon.model.values import IdPrefix

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_CHANCE_BITS: Final = 80
_STEP_BITS: Final = 24
_HALF_BITS: Final = 40
_PAIRS: Final = tuple(high + low for high in _DIGITS for low in _DIGITS)
_STOCK_BYTES: Final = 4_000


class RandomBits:
    """Random bits, fetched from the system many at a time: every message asks for some."""

    def __init__(self) -> None:
        self._stock = b""
        self._used = 0

    def __call__(self, bits: int) -> int:
        """Return so many fresh bits, a multiple of eight."""
        begin, end = self._used, self._used + bits // 8
        if end > len(self._stock):
            self._stock = os.urandom(_STOCK_BYTES)
            begin, end = 0, bits // 8
        self._used = end
        return int.from_bytes(self._stock[begin:end])


class TimeOrderedIds:
    """Ids that never repeat and that sort roughly by age."""

    def __init__(
        self,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        chance: Callable[[int], int] | None = None,
    ) -> None:
        self._wall_ns = wall_ns
        self._chance = chance or RandomBits()
        self._last = -1
        self._head = (-1, "")  # what ids of one millisecond have in common, and its text
        self._lock = threading.Lock()

    def fresh(self, prefix: IdPrefix) -> str:
        """Return a new id of this kind."""
        with self._lock:
            begin = self._wall_ns() // 1_000_000 << _CHANCE_BITS
            if begin > self._last:
                self._last = begin | self._chance(_CHANCE_BITS)
            else:
                self._last += 1 + self._chance(_STEP_BITS)
            return prefix + "_" + self._text_of(self._last)

    def _text_of(self, number: int) -> str:
        upper = number >> _HALF_BITS
        if upper != self._head[0]:
            millis = upper >> _HALF_BITS
            text = _digits_of(millis >> _HALF_BITS)[-2:] + _digits_of(millis) + _digits_of(upper)
            self._head = (upper, text)
        return self._head[1] + _digits_of(number)


def _digits_of(number: int) -> str:
    """Return the lowest 40 bits as eight digits."""
    small = number & 0xFF_FFFF_FFFF
    return (
        _PAIRS[small >> 30]
        + _PAIRS[small >> 20 & 1023]
        + _PAIRS[small >> 10 & 1023]
        + _PAIRS[small & 1023]
    )
