"""The task lifecycle: forward only, and the first ending stands.

Owns:  the order of task statuses and what to do with a report about a task.
Rule 1: a task moves to a later phase or not at all; phases may be skipped.
Rule 2: every ending shares the last phase, so nothing follows an ending, not even another one.
Rule 3: a report that comes too late is no error. It is ignored, and the decision says so.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from holon.model.record import Record
from holon.model.task import TaskStatus

_TERMINAL_PHASE: Final = 3

PHASES: Final[Mapping[TaskStatus, int]] = MappingProxyType(
    {
        TaskStatus.QUEUED: 0,
        TaskStatus.RUNNING: 1,
        TaskStatus.CANCELLING: 2,
        TaskStatus.COMPLETED: _TERMINAL_PHASE,
        TaskStatus.FAILED: _TERMINAL_PHASE,
        TaskStatus.CANCELLED: _TERMINAL_PHASE,
        TaskStatus.INTERRUPTED: _TERMINAL_PHASE,
    }
)


class Advance(Record, frozen=True, kw_only=True):
    """Record the new status."""

    status: TaskStatus


class IgnoreLate(Record, frozen=True, kw_only=True):
    """Leave the record as it stands: the report tells nothing newer."""

    current: TaskStatus
    proposed: TaskStatus


TaskAdvance: TypeAlias = Advance | IgnoreLate


def phase_of(status: TaskStatus) -> int:
    """Return how far along a status is."""
    return PHASES[status]


def is_terminal(status: TaskStatus) -> bool:
    """Whether a task with this status has ended."""
    return phase_of(status) == _TERMINAL_PHASE


def decide_advance(current: TaskStatus, proposed: TaskStatus) -> TaskAdvance:
    """Say whether a reported status replaces the recorded one."""
    if phase_of(proposed) > phase_of(current):
        return Advance(status=proposed)
    return IgnoreLate(current=current, proposed=proposed)
