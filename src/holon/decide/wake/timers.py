"""The slot grid of a timer.

Owns:  which slot a timer stands at, and what to do when a slot has come.
Rule 1: the slots of a repeating timer are anchor + n × interval, or the times its cron expression
        names. Late service, downtime and clock jumps skip slots; they never shift them.
Rule 2: however many slots were missed, one fire makes up for all of them, and says how late it is.
Rule 3: a fire is named by the slot that was due, not by the moment it happens, so that trying again
        after a crash is the same fire.
Rule 4: a wall clock that is set back must not silence a timer for as long as it had been ahead.
        What the clock named while it was ahead does not count: a repeating timer goes back to its
        first future slot, and slots that come a second time are fires of their own. Where at most
        one slot would come again the timer stays, so that a small correction repeats none.
Rule 5: a timer armed while the clock was ahead has its span counted from when that is noticed, so
        it is never early.
Rule 6: it may be the lower clock that was wrong. A timer that was moved back and comes due is
        checked once more: when the clock has passed the moment it was armed or fired last, it goes
        back to its earlier slot, instead of firing early.
Rule 7: while a tick of the timer still waits in the queue, a further slot queues no second one.
"""

from datetime import datetime, timedelta
from typing import assert_never

from holon.model.events.reads import DueTimer
from holon.model.record import Record
from holon.model.values import Instant
from holon.model.wake import Cron, Every, OneShot, TimerRecord

_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)


class FireDecision(Record, frozen=True, kw_only=True):
    """Which slot fires, where the timer stands afterwards, and whether a tick is queued.

    A timer with no next slot has completed. `late_by_ms` is how long ago the slot was.
    """

    slot: Instant
    next_fire_at: Instant | None
    queues_tick: bool
    late_by_ms: int = 0


def next_slot(timer: TimerRecord, *, now: datetime) -> datetime | None:
    """Return the first slot of a repeating timer after `now`; a one-shot timer has none.

    The grid reaches back before its anchor: a timer that was armed while the clock was ahead has
    its anchor in the future.
    """
    match timer.schedule:
        case OneShot():
            return None
        case Every(interval_ms=interval_ms):
            interval = timedelta(milliseconds=interval_ms)
            slots_passed = (now - timer.anchor_at) // interval + 1
            return timer.anchor_at + slots_passed * interval
        case Cron():
            from holon.decide.wake.cron import next_cron_slot  # brings the time zones with it

            return next_cron_slot(timer.schedule, after=now)
        case _:
            assert_never(timer.schedule)


def set_back(timer: TimerRecord, *, now: datetime) -> datetime | None:
    """Return where an active timer stands once the clock was set back, if that is earlier."""
    standing = timer.next_fire_at
    moved = _again(timer, now=now) if timer.last_fired_at else _counted_anew(timer, now=now)
    return moved if standing is not None and moved is not None and moved < standing else None


def _again(timer: TimerRecord, *, now: datetime) -> datetime | None:
    """The next slot of a timer whose last fire lies in the future; None if that is negligible."""
    if timer.last_fired_at is None or timer.last_fired_at <= now:
        return None
    was_armed_ahead = timer.created_at > now
    earliest = now if was_armed_ahead else max(now, timer.anchor_at - _MICROSECOND)
    first = next_slot(timer, now=earliest)
    second = None if first is None else next_slot(timer, now=first)
    if second is None or timer.next_fire_at is None or timer.next_fire_at <= second:
        return None
    return first


def _counted_anew(timer: TimerRecord, *, now: datetime) -> datetime | None:
    """When a timer fires first that was armed at a moment still to come."""
    if timer.created_at <= now:
        return None
    span = timer.anchor_at - timer.created_at
    match timer.schedule:
        case OneShot():
            return now + span
        case Every():
            return next_slot(timer, now=now + span - _MICROSECOND)
        case Cron():
            return next_slot(timer, now=now)
        case _:
            assert_never(timer.schedule)


def advanced_slot(timer: TimerRecord, *, now: datetime) -> datetime | None:
    """Return where a timer goes that is due only because it had been moved back, if it was."""
    standing, last = timer.next_fire_at, timer.last_fired_at
    if standing is None or timer.created_at > now:
        return None
    stood_at = timer.anchor_at if last is None or last > now else next_slot(timer, now=last)
    return stood_at if stood_at is not None and stood_at > max(now, standing) else None


def decide_fire(due: DueTimer, *, now: datetime) -> FireDecision:
    """Fire the due slot and move to the next future one."""
    slot = due.timer.next_fire_at or due.timer.anchor_at
    # A clock that went back since the slot was found due must not bring the same slot up again.
    settled_up_to = max(now, slot)
    return FireDecision(
        slot=slot,
        next_fire_at=next_slot(due.timer, now=settled_up_to),
        queues_tick=not due.tick_pending,
        late_by_ms=(settled_up_to - slot) // _MILLISECOND,
    )
