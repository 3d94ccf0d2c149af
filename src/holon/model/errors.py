"""The Holon error tree, with stable codes.

Owns:  the error classes the runtime raises on purpose; refusals, their codes, and the one shape in
       which every surface renders them.
Rule 1: `code` is stable and machine-readable; `hint` says what a person can do next.
Rule 2: a class says what the caller may do; callers never parse messages.
Rule 3: a refusal names the next step whenever there is one.

HolonError
├── BadInputError        BadId · NotJson · Decode (BadTag · BadEnum · BadSyntax)
├── RefusedError         carries a Refusal: the request was understood and declined
├── ForbiddenTransition  a lifecycle table has no such row
├── ProviderError        a provider attempt failed (model/providers/attempts)
├── HomeUnusable         a home cannot be served as it is
└── StoreError           StoreFull, StoreReadOnly, StoreBusy (wait and retry) · StoreClosed
                         StoreBroken (stop): StoreDamaged · DatabaseReplaced · HomeReplaced ·
                         HomeLost
                         LogTooLong (the store goes on)
                         at opening: HomeInUse · SchemaTooNew · NotAHolonDatabase ·
                         StoreUnwritable · DatabaseMissing · ForeignLog
"""

from enum import StrEnum
from typing import ClassVar, TypeVar

from holon.model.record import Record

T = TypeVar("T")


class HolonError(Exception):
    """The root of every error Holon raises on purpose."""

    code: ClassVar[str] = "holon_error"
    hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint


class BadInputError(HolonError):
    """What came in cannot be read; nothing was changed. `field` names the part at fault."""

    code = "bad_input"

    def __init__(self, message: str, *, hint: str | None = None, field: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class BadIdError(BadInputError):
    """An identifier does not have the form identifiers have."""

    code = "bad_id"


class NotJsonError(BadInputError, ValueError):
    """A value has no exact JSON form."""

    code = "not_json"


class DecodeError(BadInputError):
    """Bytes do not decode to the record they should hold."""

    code = "bad_shape"


class BadTagError(DecodeError):
    """A tagged union names a variant that does not exist."""

    code = "bad_tag"


class BadEnumError(DecodeError):
    """An enum holds a value it does not have."""

    code = "bad_enum"


class BadSyntaxError(DecodeError):
    """The bytes are not JSON at all, or not Unicode."""

    code = "bad_syntax"


class ForbiddenTransitionError(HolonError):
    """A lifecycle table has no row for this state and signal."""

    code = "forbidden_transition"

    def __init__(self, state: str, signal: str) -> None:
        super().__init__(f"{state} has no transition for {signal}")
        self.state = state
        self.signal = signal


class HomeUnusableError(HolonError):
    """A HOLON_HOME cannot be used as it is; a person must look at it first."""

    code = "home_unusable"
    hint = "check its owner, its permissions and the disk, or set HOLON_HOME to another directory"


class StoreError(HolonError):
    """The durable store could not do what was asked."""

    code = "store_error"


class StoreFullError(StoreError):
    """The disk is full; nothing was written. The same commit may succeed later."""

    code = "storage_full"
    hint = "free disk space under HOLON_HOME; Holon retries by itself"


class StoreReadOnlyError(StoreFullError):
    """The disk takes no writes for now; nothing was written. What is on it can be read."""

    code = "storage_read_only"
    hint = "make the disk of HOLON_HOME writable again; Holon retries by itself"


class StoreBusyError(StoreFullError):
    """The way to the disk is full: too much waits, or another program is writing. Try again."""

    code = "storage_busy"
    hint = "try again in a moment"


class StoreBrokenError(StoreError):
    """The disk failed under a write; whether it is durable is unknown, so the host must stop."""

    code = "storage_broken"
    hint = "check the disk, then start Holon again: it recovers from what is durable"


class HomeReplacedError(StoreBrokenError):
    """Another process has become the owner of this HOLON_HOME; nothing more is written here."""

    code = "home_replaced"
    hint = "another process serves this home now: look at it with holon daemon status"


class HomeLostError(StoreBrokenError):
    """The folder of this HOLON_HOME, or its socket, is gone from its place; the host must end."""

    code = "home_lost"
    hint = "start Holon again: it recovers from what is durable"


class StoreDamagedError(StoreBrokenError):
    """Pages of the database are damaged; starting again meets the same damage."""

    code = "storage_damaged"
    hint = (
        "starting again does not help: see what is damaged with `holon debug check`, then restore"
        " a backup with `holon restore`"
    )


class DatabaseReplacedError(StoreBrokenError):
    """Another program exchanged, changed or removed the files of the database."""

    code = "database_replaced"


class LogTooLongError(StoreError):
    """The write-ahead log cannot be folded back, because another program reads the database."""

    code = "wal_over_limit"
    hint = "end the program that keeps the database open; Holon goes on, and the log keeps growing"


class StoreClosedError(StoreError):
    """The store was closed while the request waited."""

    code = "storage_closed"
    hint = "start the host again"


class HomeInUseError(StoreError):
    """Another process owns this HOLON_HOME."""

    code = "home_in_use"


class SchemaTooNewError(StoreError):
    """The database was written by a newer Holon."""

    code = "schema_too_new"


class NotAHolonDatabaseError(StoreError):
    """The file at the database path is corrupt or belongs to another program."""

    code = "not_a_holon_database"


class DatabaseMissingError(StoreError):
    """The database is gone, and its log or the homes of its agents are still there."""

    code = "database_missing"


class ForeignLogError(StoreError):
    """The write-ahead log beside the database was written for another file."""

    code = "database_log_foreign"


class LogLostError(StoreError):
    """The write-ahead log beside the database is lost, with commits that only it contained."""

    code = "database_log_lost"


class StoreUnwritableError(StoreError):
    """The directory of the database cannot be written."""

    code = "home_unwritable"


def first_error(several: BaseExceptionGroup[HolonError]) -> HolonError:
    """Return the first of the errors that ended several things at once."""
    error = several.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error


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
    """Raised by services for a declined request; carries the refusal."""

    code = "refused"

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message, hint=refusal.hint)
        self.refusal = refusal


def accepted(decided: T | Refusal) -> T:
    """Return what was decided; raises RefusedError when that is to decline."""
    if isinstance(decided, Refusal):
        raise RefusedError(decided)
    return decided
