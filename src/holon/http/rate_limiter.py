"""Slows down whoever asks, or guesses, too often.

Owns:  a bucket per key, refilled with time.
Rule 1: a key that never asked costs nothing; the table is bounded and forgets the longest quiet.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from holon.model.limits import HTTP_PEERS_KEPT_COUNT_MAX
from holon.model.lru import Lru
from holon.ports.clock import Clock

_MINUTE_NS: Final = 60 * 1_000_000_000


@dataclass(slots=True)
class _Bucket:
    level: float
    at_ns: int


@dataclass(kw_only=True, slots=True)
class RateLimiter:
    """Lets `burst` through at once and `per_minute` after that, for each key."""

    clock: Clock
    burst: int
    per_minute: int
    _buckets: Lru[Hashable, _Bucket] = field(default_factory=lambda: Lru(HTTP_PEERS_KEPT_COUNT_MAX))

    def wait_s(self, key: Hashable) -> int | None:
        """How long this key has to wait before the next one, or nothing when it need not."""
        bucket = self._buckets.peek(key)
        if bucket is None:
            return None
        level = self._level(bucket)
        if level + 1 <= self.burst:
            return None
        return max(1, round((level + 1 - self.burst) * 60 / self.per_minute))

    def count(self, key: Hashable) -> None:
        """Take note of one."""
        bucket = self._buckets.peek(key) or _Bucket(0.0, self.clock.monotonic_ns())
        bucket.level = min(self._level(bucket) + 1, float(self.burst))
        bucket.at_ns = self.clock.monotonic_ns()
        self._buckets.put(key, bucket)

    def _level(self, bucket: _Bucket) -> float:
        passed_ns = self.clock.monotonic_ns() - bucket.at_ns
        return max(0.0, bucket.level - passed_ns * self.per_minute / _MINUTE_NS)
