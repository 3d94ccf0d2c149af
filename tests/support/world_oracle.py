"""The oracle of a simulated world, over its database.

Owns:  the judgement. Safety can be judged at any moment between two commits; liveness only when
       faults have stopped and everything has had time to finish.
"""

from datetime import datetime, timedelta
from typing import Final

import apsw
import msgspec

from holon.adapters.sqlite.check.checker import CHECKS
from holon.adapters.sqlite.check.facts import Acked, Facts, owners_of
from holon.adapters.sqlite.check.rows import check_file
from holon.decide.wake.cron import next_cron_slot
from holon.model.events.event import Event, MessageAdmitted, MessageProcessingStarted
from holon.model.queue import TimerOrigin
from holon.model.values import MessageId, TimerId, from_micros, to_micros
from holon.model.wake import (
    Cron,
    Every,
    OneShot,
    TimerCancelled,
    TimerCreated,
    TimerFired,
    TimerRecord,
    TimerRescheduled,
    TimerSchedule,
)

EVENTS: Final = msgspec.json.Decoder(Event)
TIMERS: Final = msgspec.json.Decoder(TimerRecord)
OVERDUE_MS_MAX: Final = 60_000
TURN_MS_MAX: Final = 1_800_000  # the model may be silent for ten minutes, more than once
_RESTING = "('stopped', 'paused')"


def safety_problems(
    connection: apsw.Connection,
    *,
    acked: Acked,
    now: datetime | None = None,
    is_pruned: bool = False,
) -> list[str]:
    """Every invariant that does not hold. What counts whole histories is no use once pruned."""
    facts = Facts(connection, None if now is None else to_micros(now), owners_of(acked))
    checks = [check for check in CHECKS if check is not check_file]
    found = [str(violation) for check in checks for violation in check(facts)]
    follow_ups = [] if is_pruned else _follow_up_problems(connection)
    return [*found, *_timer_problems(connection), *follow_ups]


def liveness_problems(connection: apsw.Connection, *, now: datetime) -> list[str]:
    """Everything that should have come to an end and has not."""
    late = to_micros(now) - OVERDUE_MS_MAX * 1_000
    patience = to_micros(now) - TURN_MS_MAX * 1_000
    unfinished = connection.execute(
        "select message_id, kind, state from messages join agents using (agent_id)"
        f" where state in ('queued', 'claimed') and status not in {_RESTING}"
        f" and admitted_at < {patience}"
        f" and coalesce(not_before, 0) <= {to_micros(now)}"  # one that is held has time
    )
    hints = connection.execute(
        "select source_key from wake_hints join agents using (agent_id)"
        f" where status not in {_RESTING} and gave_up = 0"
    )
    timers = connection.execute(
        "select timer_id from timers join agents using (agent_id)"
        f" where timers.status = 'active' and next_fire_at < {late}"
        " and agents.status <> 'stopped'"
    )
    waits = connection.execute(
        "select w.wait_id, w.kind, w.state from waits w join agents a on a.agent_id = w.agent_id"
        " left join messages m on m.message_id = w.triggered_by"
        f" where (w.state = 'active' and deadline_at < {late} or w.state = 'triggered'"
        f" and coalesce(m.admitted_at, 0) < {patience}) and a.status not in {_RESTING}"
        " and not (w.kind = 'recheck' and a.gave_up)"  # it keeps until somebody outside speaks
    )
    return [
        *(f"P3 {kind} {message_id} is still {state}" for message_id, kind, state in unfinished),
        *(f"P7 hint of {source} was never delivered" for (source,) in hints),
        *(f"P16 timer {timer_id} did not fire" for (timer_id,) in timers),
        *_silent_timers(connection, now=now),
        *(f"P8 {kind} wait {wait_id} is stuck {state}" for wait_id, kind, state in waits),
    ]


class _TimerJudge:
    """Follows timers through the log. P16: on the grid, each slot once, nothing after a cancel.

    A slot may come once more only after the clock was set back, which the log itself has to show:
    a timer is moved back when it was armed or fired last at a moment that is still to come.
    """

    def __init__(
        self, schedules: dict[TimerId, TimerSchedule], armed_at: dict[TimerId, datetime]
    ) -> None:
        self._schedules = schedules
        self._armed_at = armed_at  # by the rows; the clock may have been set before the commit
        self._anchors: dict[TimerId, datetime] = {}
        self._moved_to: dict[TimerId, datetime] = {}
        self._stamped: dict[TimerId, datetime] = {}  # when it was armed or fired last
        self._fired: set[tuple[TimerId, datetime]] = set()
        self._cancelled: set[TimerId] = set()
        self._ticks: dict[MessageId, TimerId] = {}
        self.problems: list[str] = []

    def hear(self, event: Event, *, at: datetime) -> None:
        """Judge one event and the moment it is stamped with."""
        match event:
            case TimerCreated(timer_id=timer_id, next_fire_at=first):
                self._anchors[timer_id] = first
                self._stamped[timer_id] = max(at, self._armed_at.get(timer_id, at))
            case TimerFired(timer_id=timer_id, slot=slot):
                self._judge_fire(timer_id, slot, at=at)
                self._stamped[timer_id] = at
            case TimerRescheduled(timer_id=timer_id):
                self._judge_move(event, at=at)
                self._moved_to[timer_id] = event.next_fire_at
            case TimerCancelled(timer_id=timer_id):
                self._cancelled.add(timer_id)
            case MessageAdmitted(message_id=message_id, origin=TimerOrigin(timer_id=timer_id)):
                self._ticks[message_id] = timer_id
            case MessageProcessingStarted(message_id=message_id):
                if self._ticks.get(message_id) in self._cancelled:
                    self.problems.append(f"P16 tick {message_id} ran after a cancel")
            case _:
                return

    def _judge_fire(self, timer_id: TimerId, slot: datetime, *, at: datetime) -> None:
        if (timer_id, slot) in self._fired:
            self.problems.append(f"P16 {timer_id} fired twice for {slot}")
        self._fired.add((timer_id, slot))
        if timer_id in self._cancelled:
            self.problems.append(f"P16 {timer_id} fired after it was cancelled")
        if at < slot:
            self.problems.append(f"P16 {timer_id} fired at {at}, before its slot {slot}")
        schedule = self._schedules.get(timer_id, OneShot())
        anchor = self._anchors.get(timer_id)
        if isinstance(schedule, OneShot):
            anchor = self._moved_to.get(timer_id, anchor)
        if _is_off_grid(slot, anchor, schedule):
            self.problems.append(f"P16 {timer_id} fired off its grid at {slot}")

    def _judge_move(self, move: TimerRescheduled, *, at: datetime) -> None:
        timer_id, stamped = move.timer_id, self._stamped.get(move.timer_id)
        if move.next_fire_at < move.slot:
            if stamped is not None and stamped <= at:
                self.problems.append(f"P16 {timer_id} was moved back, and no clock was")
            moved_back = {one for one in self._fired if one[0] == timer_id}
            self._fired -= {one for one in moved_back if one[1] >= move.next_fire_at}
        elif timer_id not in self._moved_to:
            self.problems.append(f"P16 {timer_id} was put off without having been moved back")


def _timer_problems(connection: apsw.Connection) -> list[str]:
    kept = _kept_timers(connection)
    judge = _TimerJudge(
        {timer.id: timer.schedule for timer in kept}, {timer.id: timer.created_at for timer in kept}
    )
    for at, event in connection.execute("select created_at, event from events order by log_seq"):
        judge.hear(EVENTS.decode(str(event)), at=from_micros(int(str(at))))
    return judge.problems


def _silent_timers(connection: apsw.Connection, *, now: datetime) -> list[str]:
    """P16: whatever the clock did, an active timer waits no longer than it was asked to."""
    rows = connection.execute("select record, next_fire_at from timers where status = 'active'")
    found = []
    for record, next_fire_at in rows:
        timer = TIMERS.decode(str(record))
        patience = timer.anchor_at - timer.created_at
        if isinstance(timer.schedule, Every):
            patience += timedelta(milliseconds=2 * timer.schedule.interval_ms)
        if from_micros(int(str(next_fire_at))) > now + patience:
            found.append(f"P16 timer {timer.id} is silent until {next_fire_at}")
    return found


def _kept_timers(connection: apsw.Connection) -> list[TimerRecord]:
    """Every timer that is still on record."""
    return [
        TIMERS.decode(str(record)) for (record,) in connection.execute("select record from timers")
    ]


def _is_off_grid(slot: datetime, anchor: datetime | None, schedule: TimerSchedule) -> bool:
    if anchor is None:
        return False  # the event that armed the timer was pruned
    match schedule:
        case OneShot():
            return slot != anchor
        case Every(interval_ms=interval_ms):
            return (to_micros(slot) - to_micros(anchor)) % (interval_ms * 1_000) != 0
        case Cron():
            return next_cron_slot(schedule, after=slot - timedelta(microseconds=1)) != slot


def _follow_up_problems(connection: apsw.Connection) -> list[str]:
    """P4: a follow-up exists exactly when the call that made it succeeded."""
    counted = connection.execute(
        "select (select count(*) from messages where kind = 'internal_followup'),"
        " (select count(*) from tool_calls where name = 'Enqueue' and state = 'succeeded')"
    ).fetchone()
    made, succeeded = counted if counted else (0, 0)
    if made == succeeded:
        return []
    return [f"P4 {made} follow-ups for {succeeded} successful calls"]
