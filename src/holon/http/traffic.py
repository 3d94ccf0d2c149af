"""How much goes on at the sockets.

Owns:  the one place where whoever serves says it and whoever shows it asks.
"""

from collections.abc import Callable
from dataclasses import dataclass


def _none_open() -> int:
    return 0


@dataclass(slots=True)
class Traffic:
    """Of one server; whoever listens puts its count here."""

    open_count: Callable[[], int] = _none_open
