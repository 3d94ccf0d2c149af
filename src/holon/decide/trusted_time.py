"""How far the wall clock is believed when something is to be forgotten for good.

Owns:  the moment retention goes by: the wall clock's, or an earlier one while that has jumped.
Rule 1: forgetting cannot be taken back, and a wall clock may be set ahead by mistake. What it is
        ahead of the monotonic reading counts only after it has stood there for CLOCK_TRUST_MS; what
        it goes back counts at once.
Rule 2: a stretch is monotonic time. Of each stretch the lowest lead counts, at its end: so a jump
        is believed after one to two stretches, however many others come after it.
Rule 3: a process that has just started cannot know what happened before. It believes the wall as
        far as what is on record bears it out: from what is older than a stretch up, over no gap
        longer than CLOCK_GAP_MS_MAX. A step that is shorter than that is not seen.
Rule 4: a machine that was off, or asleep, has a wall that is ahead as well. It is right, and what
        is old goes a stretch or two later.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from holon.model.instant import from_micros, to_micros
from holon.model.limits import CLOCK_GAP_MS_MAX, CLOCK_TRUST_MS
from holon.model.record import Record

_STRETCH: Final = timedelta(milliseconds=CLOCK_TRUST_MS)
_GAP_MAX: Final = timedelta(milliseconds=CLOCK_GAP_MS_MAX)
_STRETCH_NS: Final = CLOCK_TRUST_MS * 1_000_000


class ClockTrust(Record, frozen=True, kw_only=True):
    """How far the wall may be ahead of the monotonic reading, in microseconds."""

    lead_micros: int
    lowest_micros: int  # the lowest lead in the stretch that runs
    since_ns: int  # when that began


def asked_moments(now: datetime) -> tuple[datetime, ...]:
    """The moments by which the newest record is to be known at a start, oldest first."""
    step_count = 2 * CLOCK_TRUST_MS // CLOCK_GAP_MS_MAX
    return tuple(now - _STRETCH + number * _GAP_MAX / 2 for number in range(step_count + 1))


def borne_out(
    newest: Sequence[datetime | None], *, oldest: datetime | None, now: datetime
) -> datetime:
    """Return how far records bear out that it is `now`.

    `newest` are the newest ones by each asked moment, and `oldest` is the first event of the log.
    """
    if oldest is None:
        return now  # nothing has happened yet that could be forgotten
    believed = newest[0] or min(oldest, now - _STRETCH)
    for moment in (*newest[1:], now):
        if moment is None or moment - believed > _GAP_MAX:
            break
        believed = max(believed, moment)
    return believed


def first_trust(believed: datetime, *, now: datetime, monotonic_ns: int) -> ClockTrust:
    """Return what a process begins with."""
    lead = to_micros(min(believed, now)) - monotonic_ns // 1_000
    wall = to_micros(now) - monotonic_ns // 1_000
    return ClockTrust(lead_micros=lead, lowest_micros=wall, since_ns=monotonic_ns)


def looked(trust: ClockTrust, *, now: datetime, monotonic_ns: int) -> ClockTrust:
    """Return what is believed after another look at both readings."""
    wall = to_micros(now) - monotonic_ns // 1_000
    lead, lowest = min(trust.lead_micros, wall), min(trust.lowest_micros, wall)
    if monotonic_ns - trust.since_ns < _STRETCH_NS:
        return ClockTrust(lead_micros=lead, lowest_micros=lowest, since_ns=trust.since_ns)
    return ClockTrust(lead_micros=lowest, lowest_micros=wall, since_ns=monotonic_ns)


def trusted_now(trust: ClockTrust, *, monotonic_ns: int) -> datetime:
    """Return the moment that is believed to have come."""
    return from_micros(trust.lead_micros + monotonic_ns // 1_000)
