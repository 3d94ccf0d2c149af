"""Status of the runtime and of its daemon.

Owns:  the answers of /control/runtime/status and `holon daemon status`, and what both share.
Rule 1: `processing` takes precedence over `waiting`, and that over `idle`; the counts say why.
Rule 2: both shapes are read by adjacent versions: a reader ignores unknown fields, and only fields
        that existed from the beginning may be required of the other side.
"""

from enum import StrEnum

import msgspec

from holon.model.events.briefs import BriefRecord
from holon.model.events.reads import ActivityCounts
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.values import Instant
from holon.projections.budgets import MeasureView


class RuntimeState(StrEnum):
    """The activity of a healthy runtime."""

    IDLE = "idle"
    WAITING = "waiting"
    PROCESSING = "processing"


class FailurePhase(StrEnum):
    """The phase in which a failure happened."""

    STARTUP = "startup"
    SHUTDOWN = "shutdown"
    RUNTIME_TURN = "runtime_turn"


class DaemonState(StrEnum):
    """Whether a runtime is running. `stale` files name a process that has ended."""

    RUNNING = "running"
    STOPPED = "stopped"
    STALE = "stale"


class ControlConnectivity(StrEnum):
    """Whether the control surface answers."""

    CONNECTED = "connected"
    UNREACHABLE = "unreachable"
    NOT_TRIED = "not_tried"


# Read by adjacent versions: unlike other records these ignore unknown fields.
class ActivitySummary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=False
):
    """The current activity. Each count stops at a bound."""

    state: RuntimeState = RuntimeState.IDLE
    active_agent_count: int = 0
    active_task_count: int = 0
    processing_agent_count: int = 0
    waiting_agent_count: int = 0


class LastFailure(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """The last known failure, and where to find details."""

    occurred_at: Instant
    summary: str
    phase: FailurePhase
    detail_hint: str | None = None


class RuntimeProblem(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """A problem the runtime continues with, and what to do about it."""

    code: str
    message: str
    hint: str | None = None


class RuntimeStatus(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """The status of a running runtime."""

    ok: bool
    healthy: bool
    pid: int
    home_dir: str
    socket_path: str
    http_addr: str | None = None
    started_at: Instant | None = None
    config_fingerprint: str | None = None
    version: str | None = None
    activity: ActivitySummary | None = None
    startup_surface: dict[str, str] | None = None
    runtime_surface: dict[str, str] | None = None
    budgets: tuple[MeasureView, ...] = ()  # of all agents together
    last_failure: LastFailure | None = None
    problems: tuple[RuntimeProblem, ...] = ()


class DaemonStatus(Record, frozen=True, kw_only=True):
    """The answer of `holon daemon status`, whether or not a runtime answers."""

    ok: bool
    state: DaemonState
    healthy: bool
    home_dir: str
    socket_path: str
    control_connectivity: ControlConnectivity
    stale_files: tuple[str, ...]
    message: str
    http_addr: str | None = None
    pid: int | None = None
    runtime_config_fingerprint: str | None = None
    config_fingerprint_match: bool | None = None
    activity: ActivitySummary | None = None
    last_failure: LastFailure | None = None
    last_failure_path: str | None = None
    problems: tuple[RuntimeProblem, ...] = ()


def activity_summary(counts: ActivityCounts) -> ActivitySummary:
    """Return the current activity. First matching state wins."""
    return ActivitySummary(
        state=_state(counts),
        active_agent_count=counts.active_agent_count,
        active_task_count=counts.active_task_count,
        processing_agent_count=counts.processing_agent_count,
        waiting_agent_count=counts.waiting_agent_count,
    )


def turn_failure(brief: BriefRecord, *, is_up: bool = True) -> LastFailure:
    """Return a turn's failure as shown in the daemon's status.

    The transcript needs a running service: unless one `is_up`, the hint names the logs first.
    """
    failure = brief.failure
    transcript = f"`holon transcript --agent {brief.agent_id}`"
    return LastFailure(
        occurred_at=brief.created_at,
        summary=one_line(brief.text if failure is None else failure.summary),
        phase=FailurePhase.RUNTIME_TURN,
        detail_hint=f"see {transcript} or `holon daemon logs`"
        if is_up
        else f"see `holon daemon logs`; after `holon daemon start`, {transcript}",
    )


def newest_failure(*known: LastFailure | None) -> LastFailure | None:
    """Return the newest of the given failures, if any."""
    failures = [failure for failure in known if failure is not None]
    return max(failures, key=lambda failure: failure.occurred_at, default=None)


def _state(counts: ActivityCounts) -> RuntimeState:
    if counts.processing_agent_count:
        return RuntimeState.PROCESSING
    if counts.waiting_agent_count or counts.active_task_count:
        return RuntimeState.WAITING
    return RuntimeState.IDLE
