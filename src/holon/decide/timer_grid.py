"""The grid a timer keeps.

Owns:  which slot a timer stands at, and what to do when a slot has come.
Rule 1: the slots of a repeating timer are anchor + n × interval, or the times its cron expression
        names. Late service, downtime and clock jumps skip slots; they never shift them.
Rule 2: however many slots were missed, one fire makes up for all of them, and says how late it is.
Rule 3: a fire is named by the slot that was due, not by the moment it happens, so that trying again
        after a crash is the same fire.
Rule 4: while a tick of the timer still waits in the queue, a further slot queues no second one.
"""

from datetime import datetime, timedelta
from typing import assert_never

from holon.model.instant import Instant
from holon.model.record import Record
from holon.model.snapshot import DueTimer
from holon.model.wake import Cron, Every, OneShot, TimerRecord

_MILLISECOND = timedelta(milliseconds=1)


class FireDecision(Record, frozen=True, kw_only=True):
    """Which slot fires, where the timer stands afterwards, and whether a tick is queued.

    A timer with no next slot has completed. `late_by_ms` is how long ago the slot was.
    """

    slot: Instant
    next_fire_at: Instant | None
    queues_tick: bool
    late_by_ms: int = 0


def next_slot(timer: TimerRecord, *, now: datetime) -> datetime | None:
    """Return the first slot of a repeating timer after `now`; a one-shot timer has none."""
    match timer.schedule:
        case OneShot():
            return None
        case Every(interval_ms=interval_ms):
            interval = timedelta(milliseconds=interval_ms)
            slots_passed = max(0, (now - timer.anchor_at) // interval + 1)
            return timer.anchor_at + slots_passed * interval
        case Cron():
            from holon.decide.cron import next_cron_slot  # brings the time zones with it

            return next_cron_slot(timer.schedule, after=now)
        case _:
            assert_never(timer.schedule)


def decide_fire(due: DueTimer, *, now: datetime) -> FireDecision:
    """Fire the slot that is due and move on to the next one that is still to come."""
    slot = due.timer.next_fire_at or due.timer.anchor_at
    # A clock that went back since the slot was found due must not bring the same slot up again.
    settled_up_to = max(now, slot)
    return FireDecision(
        slot=slot,
        next_fire_at=next_slot(due.timer, now=settled_up_to),
        queues_tick=not due.tick_pending,
        late_by_ms=(settled_up_to - slot) // _MILLISECOND,
    )
