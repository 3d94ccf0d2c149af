"""What every bench says: one number against its target.

Owns:  the line a bench prints, and small statistics. Numbers are ratios within one run, so that
       they mean the same on a slow machine and on a busy one.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Measurement", "median", "ratio_of_medians", "timed"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured number and what it was meant to be."""

    name: str
    measured: float
    target: float
    at_least: bool = False  # else the target is the most it may be
    unit: str = "×"
    detail: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the target was met."""
        if self.at_least:
            return self.measured >= self.target
        return self.measured <= self.target

    @property
    def target_text(self) -> str:
        """The target as a person reads it."""
        return f"{'≥' if self.at_least else '≤'} {self.target:.2f}{self.unit}"

    def __str__(self) -> str:
        verdict = "ok" if self.is_ok else "MISSED"
        measured = f"measured {self.measured:.2f}{self.unit}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.name}: {measured}, target {self.target_text}, {verdict}{detail}"


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return how many seconds some work took."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def ratio_of_medians(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return how the middles of two series compare."""
    return median(numerators) / median(denominators)
