"""How an execution pass ended: completed, continuable, waiting or failed.

Owns:  the closure union and the reasons inside it.
Rule 1: a waiting reason exists only on Waiting, a work signal only on Continuable. Nothing else can
        be written down.
Rule 2: closure is the source of truth about outcome; agent status only says what the loop is doing.
"""

from enum import StrEnum
from typing import TypeAlias

from holon.model.ids import WorkItemId
from holon.model.record import Record


class ClosureOutcome(StrEnum):
    """The four names an outcome has on the wire."""

    COMPLETED = "completed"
    CONTINUABLE = "continuable"
    WAITING = "waiting"
    FAILED = "failed"


class WaitingReason(StrEnum):
    """What a waiting agent waits for."""

    AWAITING_OPERATOR_INPUT = "awaiting_operator_input"
    AWAITING_EXTERNAL_CHANGE = "awaiting_external_change"
    AWAITING_TASK_RESULT = "awaiting_task_result"
    AWAITING_TIMER = "awaiting_timer"


class ReactivationMode(StrEnum):
    """How persisted work wants to be taken up again."""

    CONTINUE_ACTIVE = "continue_active"
    ACTIVATE_QUEUED = "activate_queued"


class WorkSignalStatus(StrEnum):
    """Whether the signalled item is the focus or waits in the queue."""

    ACTIVE = "active"
    QUEUED = "queued"


class RuntimePosture(StrEnum):
    """Whether the agent is up or resting."""

    AWAKE = "awake"
    SLEEPING = "sleeping"


class WorkSignal(Record, frozen=True, kw_only=True):
    """Persisted work that warrants a runtime-owned follow-up."""

    work_item_id: WorkItemId
    status: WorkSignalStatus
    reactivation_mode: ReactivationMode


class Completed(Record, tag_field="outcome", tag="completed", frozen=True, kw_only=True):
    """The last turn ended and nothing asks for more."""

    runtime_posture: RuntimePosture = RuntimePosture.SLEEPING
    evidence: tuple[str, ...] = ()


class Continuable(Record, tag_field="outcome", tag="continuable", frozen=True, kw_only=True):
    """The pass settled; persisted work still warrants a follow-up without a new trigger."""

    work_signal: WorkSignal
    runtime_posture: RuntimePosture = RuntimePosture.AWAKE
    evidence: tuple[str, ...] = ()


class Waiting(Record, tag_field="outcome", tag="waiting", frozen=True, kw_only=True):
    """Something outside the agent must happen first. A system wait has no reason to show."""

    waiting_reason: WaitingReason | None = None
    runtime_posture: RuntimePosture = RuntimePosture.SLEEPING
    evidence: tuple[str, ...] = ()


class Failed(Record, tag_field="outcome", tag="failed", frozen=True, kw_only=True):
    """The last turn did not end well."""

    summary: str
    runtime_posture: RuntimePosture = RuntimePosture.SLEEPING
    evidence: tuple[str, ...] = ()


Closure: TypeAlias = Completed | Continuable | Waiting | Failed


def outcome_of(closure: Closure) -> ClosureOutcome:
    """Return the wire name of a closure."""
    match closure:
        case Completed():
            return ClosureOutcome.COMPLETED
        case Continuable():
            return ClosureOutcome.CONTINUABLE
        case Waiting():
            return ClosureOutcome.WAITING
        case Failed():
            return ClosureOutcome.FAILED


def waiting_reason_of(closure: Closure) -> WaitingReason | None:
    """Return what a closure waits for, if it waits for something nameable."""
    return closure.waiting_reason if isinstance(closure, Waiting) else None
