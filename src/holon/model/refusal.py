"""How Holon says no: understood, declined, nothing changed.

Owns:  refusal codes and the one shape every surface renders.
Rule 1: a refusal names what to do next whenever there is something to do.
"""

from enum import StrEnum
from typing import TypeVar

from holon.model.errors import HolonError
from holon.model.record import Record

T = TypeVar("T")


class RefusalCode(StrEnum):
    """Stable, machine-readable reasons."""

    AGENT_NOT_FOUND = "agent_not_found"
    AGENT_STOPPED = "agent_stopped"
    AGENT_ARCHIVED = "agent_archived"
    AGENT_EXISTS = "agent_exists"
    KIND_ORIGIN_MISMATCH = "kind_origin_mismatch"
    ADMISSION_MISMATCH = "admission_mismatch"
    PUBLIC_CEILING = "public_ceiling"
    BODY_TOO_LARGE = "body_too_large"
    METADATA_TOO_LARGE = "metadata_too_large"
    LABEL_TOO_LONG = "label_too_long"
    QUEUE_FULL = "queue_full"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    BAD_IDEMPOTENCY_KEY = "bad_idempotency_key"
    TRANSITION_FORBIDDEN = "transition_forbidden"
    TIMER_NOT_FOUND = "timer_not_found"
    BAD_DURATION = "bad_duration"
    BAD_SCHEDULE = "bad_schedule"
    QUOTA_REACHED = "quota_reached"
    WORK_ITEM_NOT_FOUND = "work_item_not_found"
    WORK_ITEM_COMPLETED = "work_item_completed"
    BAD_OBJECTIVE = "bad_objective"
    TASK_NOT_FOUND = "task_not_found"
    NO_CURRENT_RUN = "no_current_run"
    STALE_RUN_ID = "stale_run_id"
    BRIEF_NOT_FOUND = "brief_not_found"
    MESSAGE_NOT_FOUND = "message_not_found"
    MEMORY_SOURCE_NOT_FOUND = "memory_source_not_found"
    WORKSPACE_NOT_FOUND = "workspace_not_found"
    WORKSPACE_ACTIVE = "workspace_active"
    WORKSPACE_OCCUPIED = "workspace_occupied"
    AT_AGENT_HOME = "at_agent_home"
    WORKSPACE_PATH_INVALID = "workspace_path_invalid"
    WORKSPACE_PATH_MISSING = "workspace_path_missing"
    WORKSPACE_PATH_NOT_DIRECTORY = "workspace_path_not_directory"
    WORKSPACE_PATH_UNREADABLE = "workspace_path_unreadable"
    WORKSPACE_PATH_PRIVATE = "workspace_path_private"
    SKILL_NOT_FOUND = "skill_not_found"
    SKILL_ALREADY_INSTALLED = "skill_already_installed"
    SKILL_CHANGED = "skill_changed"
    BUSY = "busy"
    SHUTTING_DOWN = "shutting_down"


class Refusal(Record, frozen=True, kw_only=True):
    """A declined request: a code for programs, a sentence for people, and what to do next."""

    code: RefusalCode
    message: str
    hint: str | None = None
    field: str | None = None
    resume_path: str | None = None


class RefusedError(HolonError):
    """Raised by the desks at the door; carries the refusal."""

    code = "refused"

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message, hint=refusal.hint)
        self.refusal = refusal


def accepted(decided: T | Refusal) -> T:
    """Return what was decided; raises RefusedError when that is to decline."""
    if isinstance(decided, Refusal):
        raise RefusedError(decided)
    return decided
