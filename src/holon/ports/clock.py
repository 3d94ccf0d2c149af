"""Time and ids.

Contract of Clock (kept by tests/contract/test_clock.py, run against every implementation):
- `now` is timezone-aware UTC and may jump either way, as wall clocks do;
- `monotonic_ns` never goes back; durations are measured with it;
- `sleep_until` returns once `now() >= deadline`, also when the wall clock jumped meanwhile, and at
  once for a deadline in the past. It serves moments a user asked for;
- `sleep_for` returns after a span of monotonic time, whatever the wall clock does. It serves the
  runtime's own waits.

Contract of IdSource: `fresh` never returns the same text twice for one database, also across
restarts; ids sort roughly by creation time, and have the form
`<prefix>_<lower-case letters and digits>`.
"""

from datetime import datetime
from typing import Protocol

from holon.model.values import IdPrefix


class Clock(Protocol):
    """The only source of time in the runtime."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Return a reading for measuring durations."""
        ...

    async def sleep_until(self, deadline: datetime) -> None:
        """Return once the deadline has come."""
        ...

    async def sleep_for(self, ms: int) -> None:
        """Return once so much time has passed."""
        ...


class IdSource(Protocol):
    """The only maker of ids."""

    def fresh(self, prefix: IdPrefix) -> str:
        """Return a new id of this kind."""
        ...
