"""Writing changes to timers, wake hints and waits.

Owns:  the rows of `timers`, `wake_hints` and `waits`.
"""

from typing import TypeAlias, assert_never

from holon.adapters.sqlite.change_codec import encode, micros_or_none
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.commit import (
    CancelTimer,
    CreateTimer,
    FireTimer,
    MoveWait,
    OpenWait,
    ParkWakeHint,
    RescheduleTimer,
    TakeWakeHints,
)
from holon.model.instant import to_micros
from holon.model.wake import TimerStatus

WakeChange: TypeAlias = (
    CreateTimer
    | FireTimer
    | RescheduleTimer
    | CancelTimer
    | ParkWakeHint
    | TakeWakeHints
    | OpenWait
    | MoveWait
)


class WakeChanges:
    """Writes what changes about the reasons an agent wakes."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("wake")

    def write(self, change: WakeChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case CreateTimer():
                self._create_timer(change, at=at)
            case FireTimer():
                self._fire_timer(change, at=at)
            case RescheduleTimer():
                slots = to_micros(change.slot), to_micros(change.next_fire_at)
                self._statements.change_one(
                    self._sql["reschedule_timer"],
                    (change.timer_id, change.agent_id, *slots),
                    missing="timers_slot_is_current",
                )
            case CancelTimer(agent_id=agent_id, timer_id=timer_id):
                self._statements.change_one(
                    self._sql["cancel_timer"],
                    (timer_id, agent_id, at),
                    missing="timers_row_missing",
                )
            case ParkWakeHint():
                self._park_hint(change)
            case TakeWakeHints(agent_id=agent_id, source_keys=source_keys):
                for key in source_keys:
                    self._statements.change_one(
                        self._sql["take_wake_hint"],
                        (agent_id, key),
                        missing="wake_hints_row_missing",
                    )
            case OpenWait():
                self._open_wait(change, at=at)
            case MoveWait():
                self._move_wait(change, at=at)
            case _:
                assert_never(change)

    def _create_timer(self, change: CreateTimer, *, at: int) -> None:
        timer = change.timer
        self._statements.run(
            self._sql["create_timer"],
            (
                timer.id,
                timer.agent_id,
                timer.status.value,
                micros_or_none(timer.next_fire_at),
                micros_or_none(timer.last_fired_at),
                timer.fire_count,
                None if timer.status is TimerStatus.ACTIVE else at,
                encode(timer),
            ),
        )

    def _fire_timer(self, change: FireTimer, *, at: int) -> None:
        self._statements.change_one(
            self._sql["fire_timer"],
            (
                change.timer_id,
                change.agent_id,
                to_micros(change.slot),
                at,
                micros_or_none(change.next_fire_at),
            ),
            missing="timers_slot_is_current",
        )

    def _park_hint(self, change: ParkWakeHint) -> None:
        hint = change.hint
        self._statements.run(
            self._sql["park_wake_hint"],
            (
                hint.agent_id,
                hint.source_key,
                hint.revision,
                to_micros(hint.created_at),
                encode(hint),
            ),
        )

    def _open_wait(self, change: OpenWait, *, at: int) -> None:
        wait = change.wait
        ended_at = None if wait.state.is_open else micros_or_none(wait.ended_at) or at
        self._statements.run(
            self._sql["open_wait"],
            (
                wait.id,
                wait.agent_id,
                wait.kind.value,
                wait.state.value,
                wait.work_item_id,
                wait.source_id,
                micros_or_none(wait.deadline_at),
                wait.triggered_by,
                ended_at,
                encode(wait),
            ),
        )

    def _move_wait(self, change: MoveWait, *, at: int) -> None:
        self._statements.change_one(
            self._sql["move_wait"],
            (change.wait_id, change.agent_id, change.state.value, change.triggered_by, at),
            missing="waits_row_missing",
        )
