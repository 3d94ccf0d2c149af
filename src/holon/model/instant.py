"""Moments and spans of time.

Owns:  the types for time in records, and the conversions the database and the wheel need.
Rule 1: a moment is a timezone-aware UTC datetime; on the wire it is ISO-8601.
Rule 2: stored moments are whole microseconds since the epoch, so comparing them is exact.
Rule 3: nothing here reads a clock.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeAlias

import msgspec

Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Return whole microseconds since the epoch."""
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment that lies `micros` after the epoch."""
    return EPOCH + timedelta(microseconds=micros)


def later(moment: datetime, *, by_ms: int) -> datetime:
    """Return the moment `by_ms` milliseconds after `moment`."""
    return moment + timedelta(milliseconds=by_ms)
