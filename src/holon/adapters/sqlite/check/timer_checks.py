"""Invariants of timers.

Owns:  I13: an active timer comes round again, on the grid its schedule names.
Rule 1: a cron timer's moment is not worked out again: what a zone's clocks do may have been changed
        by its government since the timer was moved on.
"""

from collections.abc import Iterator
from datetime import timedelta

from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.decide.cron import BadCronError, read_fields
from holon.model.errors import DecodeError
from holon.model.instant import from_micros
from holon.model.wake import Cron, Every, OneShot, TimerRecord
from holon.wire.codec import decode


def check_timers(facts: Facts) -> Iterator[Violation]:
    """I13: every active timer has a schedule that can be read, and stands on its grid."""
    stored = facts.texts(
        "select timer_id, next_fire_at, record from timers where status = 'active'"
    )
    for timer_id, next_fire_at, text in stored:
        if (fault := _fault(next_fire_at, text)) is not None:
            yield Violation(invariant=Invariant.TIMERS_COME_ROUND, subject=timer_id, detail=fault)


def _fault(next_fire_at: str, text: str) -> str | None:
    try:
        timer = decode(text, TimerRecord)
    except DecodeError as error:
        return f"cannot be read: {error}"
    match timer.schedule:
        case OneShot():
            return None
        case Every(interval_ms=interval_ms):
            distance = from_micros(int(next_fire_at)) - timer.anchor_at
            on_grid = interval_ms > 0 and not distance % timedelta(milliseconds=interval_ms)
            return None if on_grid else f"stands off its grid of {interval_ms} ms"
        case Cron(expression=expression):
            try:
                read_fields(expression)
            except BadCronError as bad:
                return str(bad)
            return None
