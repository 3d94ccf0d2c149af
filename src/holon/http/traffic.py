"""How much goes on at the sockets.

Owns:  the one place where whoever serves says it and whoever shows it asks.
Rule 1: a request that was turned away leaves a count and nothing else.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _none_open() -> int:
    return 0


@dataclass(slots=True)
class Traffic:
    """Of one server; whoever listens puts its count here."""

    open_count: Callable[[], int] = _none_open
    answered: Counter[int] = field(default_factory=Counter)  # by the first digit of the status
    refusals: Counter[int] = field(default_factory=Counter)  # by status

    def take_refusals(self) -> Mapping[int, int]:
        """Return how many requests were turned away since last time, by status."""
        counted, self.refusals = self.refusals, Counter()
        return counted
